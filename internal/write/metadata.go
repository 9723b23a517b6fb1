package write

import (
	"errors"
	"math/bits"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
)

// Metadata stores the metadata of metric families.
type Metadata interface {
	// PutMetadata stores the metadata of one of a tenant's metric families. It is called concurrently:
	// when the metadata is new or has changed, and again after about an hour, so that a bounded store
	// may forget. After an error of class transient that is not a [model.LimitError], the next request
	// offers the metadata again.
	PutMetadata(tenant, family string, m model.Metadata) error
}

// seenSlots is the size of the table: 256 KiB, enough for about 10,000 families with few collisions.
const seenSlots = 1 << 15

// metadataSeen remembers a hash of the last metadata of each family, one family per slot, so that unchanged
// metadata costs neither a lock nor an allocation. Families that share a slot evict each other, which
// costs only a call of PutMetadata. The hash covers tenant and family, so nothing but a collision of 64 bits
// lets the metadata of one family hide that of another.
type metadataSeen struct {
	slots [seenSlots]atomic.Uint64
}

// metadataRepeat is how long unchanged metadata is not sent to the store.
const metadataRepeat = time.Hour

// Metadata passes the metadata of a metric family to the store unless the store has it already. It
// keeps none of the slices. Metadata that cannot be stored is only counted: senders repeat it anyway,
// and no sample depends on it.
func (p *Path) Metadata(tenant string, family []byte, typ string, help, unit []byte) {
	if p.o.Metadata == nil || len(family) == 0 {
		return
	}
	if most := p.limits(tenant).MaxValueBytes; most > 0 && max(len(family), len(help), len(unit)) > most {
		p.metrics.discardedMetadata.WithLabelValues("too_long").Inc()
		return
	}
	of := xxh3.HashSeed(family, xxh3.HashStringSeed(tenant, uint64(p.o.Seed)))
	text := xxh3.HashStringSeed(typ, of+uint64(p.o.Now()/int64(metadataRepeat)))
	text = xxh3.HashSeed(unit, xxh3.HashSeed(help, text))
	slot := &p.metadataSeen.slots[bits.RotateLeft64(of, 17)%seenSlots]
	if slot.Load() == text {
		return
	}
	if !utf8.Valid(family) || !utf8.Valid(help) || !utf8.Valid(unit) {
		p.metrics.discardedMetadata.WithLabelValues("invalid").Inc()
		return
	}
	if p.gate.enter() != nil {
		return
	}
	defer p.gate.leave()
	err := p.o.Metadata.PutMetadata(tenant, string(family), model.Metadata{Type: typ, Help: string(help), Unit: string(unit)})
	var full *model.LimitError
	switch {
	case err == nil:
		p.metrics.metadata.Inc()
	case errors.As(err, &full) || !errors.Is(err, model.ErrTransient):
		// A retry would get the same error.
		p.metrics.discardedMetadata.WithLabelValues("refused").Inc()
	default:
		p.metrics.discardedMetadata.WithLabelValues("refused").Inc()
		return
	}
	slot.Store(text)
}

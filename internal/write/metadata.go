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

// Metadata is what the write path needs of the keeper of metadata.
type Metadata interface {
	// PutMetadata keeps what a tenant's sender tells of a metric family. It is called when that is new or has changed, and
	// again after about an hour, so that a keeper with a bound may forget; by many goroutines at once. After an error of
	// class transient that is no [model.LimitError] the next request offers it again.
	PutMetadata(tenant, family string, m model.Metadata) error
}

// toldSlots is the size of the table of what has been told: 256 KiB, for some 10,000 families without much trouble.
const toldSlots = 1 << 15

// told remembers by hash what was last told of a family, one family a slot, so that the usual case, nothing new, costs
// neither a lock nor an allocation. Families that share a slot push each other out, which costs a call of PutMetadata and
// no more: nothing is ever taken for known because of another family, short of equal hashes of 64 bits.
type told struct {
	slots [toldSlots]atomic.Uint64
}

// again is how long the store is not bothered with what it has been told already.
const again = time.Hour

// Metadata hands what a sender tells of a metric family to the store, unless the store knows it. The texts may be used
// again afterwards. What cannot be kept is counted and nothing else: senders repeat metadata without being asked, and no
// sample depends on it.
func (p *Path) Metadata(tenant string, family []byte, typ string, help, unit []byte) {
	if p.o.Metadata == nil || len(family) == 0 {
		return
	}
	if most := p.o.Limits.MaxValueBytes; most > 0 && max(len(family), len(help), len(unit)) > most {
		p.metrics.discardedMetadata.WithLabelValues("too_long").Inc()
		return
	}
	of := xxh3.HashSeed(family, xxh3.HashStringSeed(tenant, uint64(p.o.Seed)))
	text := xxh3.HashStringSeed(typ, of+uint64(p.o.Now()/int64(again)))
	text = xxh3.HashSeed(unit, xxh3.HashSeed(help, text))
	slot := &p.told.slots[bits.RotateLeft64(of, 17)%toldSlots]
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
		// The next request would be told the same.
		p.metrics.discardedMetadata.WithLabelValues("refused").Inc()
	default:
		p.metrics.discardedMetadata.WithLabelValues("refused").Inc()
		return
	}
	slot.Store(text)
}

package month

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/compact"
)

// Where the compactor cuts blocks, and how it reads its inputs: the defaults of compact.Options, and the
// windows of package compact.
const (
	maxBlockBytes  = 1 << 30
	bigTenantShare = 0.25
	memoryBytes    = 256 << 20
	leastWindow    = 64 << 10
	greatestWindow = 4 << 20
	windowsOfInput = 4
	// fullness is the mean size of a read as a share of the greatest window: BenchmarkMerge of package compact
	// made 1,128 reads of twelve inputs with 417 MB.
	fullness = 0.6
)

var greatestKey = model.Key{Hi: math.MaxUint64, Lo: math.MaxUint64}

// merger adds up stubs where the compactor would merge rows.
type merger struct {
	fleet *Fleet
	store *store
}

// predict implements [compact.Options.Predict].
func (m *merger) predict(ctx context.Context, inputs []catalog.Block, within model.TimeRange) ([]compact.Prediction, error) {
	merged := &stub{signal: inputs[0].Signal}
	byTenant := map[int]*share{}
	all := model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	var longest time.Duration
	open := int64(0)
	for i := range inputs {
		if inputs[i].Range.Overlaps(within) {
			open++
		}
	}
	for i := range inputs {
		b := &inputs[i]
		if !b.Range.Overlaps(within) {
			continue
		}
		if err := m.read(ctx, b, open); err != nil {
			return nil, err
		}
		o, ok := m.store.get(catalog.ObjectName(b.ID))
		if !ok || o.stub == nil {
			return nil, fmt.Errorf("%w: block %s has no stub", model.ErrCorrupt, b.ID)
		}
		r := model.TimeRange{Min: max(b.Range.Min, within.Min), Max: min(b.Range.Max, within.Max)}
		all.Min, all.Max = min(all.Min, r.Min), max(all.Max, r.Max)
		longest = max(longest, time.Duration(r.Max-r.Min))
		part := float64(r.Max-r.Min+1) / float64(b.Range.Max-b.Range.Min+1)
		for _, h := range o.stub.shares {
			sum := byTenant[h.tenant]
			if sum == nil {
				sum = &share{tenant: h.tenant}
				byTenant[h.tenant] = sum
			}
			sum.rows += h.rows * part
			sum.series = max(sum.series, min(h.series, h.rows*part))
		}
	}
	for _, sum := range byTenant {
		sum.series = m.fleet.union(sum.series, time.Duration(all.Max-all.Min)-longest)
		merged.shares = append(merged.shares, *sum)
	}
	slices.SortFunc(merged.shares, func(a, b share) int { return a.tenant - b.tenant })
	return cut(merged, all, keysOf(inputs)), nil
}

// keyRange is where the first keys of blocks lie, as the first 64 bits of keys.
type keyRange struct{ from, to uint64 }

// keysOf returns the keys of blocks of one tenant, and all keys for others.
func keysOf(blocks []catalog.Block) keyRange {
	r := keyRange{math.MaxUint64, 0}
	for i := range blocks {
		b := &blocks[i]
		if b.TenantCount != 1 {
			return keyRange{0, math.MaxUint64}
		}
		r.from, r.to = min(r.from, b.FirstKey.Hi), max(r.to, b.LastKey.Hi)
	}
	return r
}

// cut divides a merged stub into blocks, as the compactor does: a big tenant gets blocks of its own, the
// others share some.
func cut(merged *stub, r model.TimeRange, keys keyRange) (made []compact.Prediction) {
	add := func(shares []share, pieces, piece uint64) {
		b := &stub{merged.signal, shares}
		entry := describe(b, r)
		if len(shares) == 1 {
			step := (keys.to - keys.from) / pieces
			entry.FirstKey = model.Key{Hi: keys.from + piece*step, Lo: min(piece, 1)}
			entry.LastKey = model.Key{Hi: keys.from + (piece+1)*step}
			entry.KeyMin, entry.KeyMax = entry.FirstKey, entry.LastKey
		}
		made = append(made, compact.Prediction{Block: entry, Body: b})
	}
	const small = bigTenantShare * maxBlockBytes
	var together []share
	bytes := 0.0
	for _, h := range merged.shares {
		if weight := h.bytes(merged.signal); weight > small {
			pieces := uint64(math.Ceil(weight / maxBlockBytes))
			for i := range pieces {
				add([]share{{h.tenant, h.series / float64(pieces), h.rows / float64(pieces)}}, pieces, i)
			}
		} else {
			if len(together) > 0 && bytes+weight > maxBlockBytes {
				add(together, 1, 0)
				together, bytes = nil, 0
			}
			together, bytes = append(together, h), bytes+weight
		}
	}
	if len(together) > 0 {
		add(together, 1, 0)
	}
	return made
}

// read makes the requests of a pass over an input: its footer, once to weigh its tenants and once to merge,
// and its bytes through windows that grow.
func (m *merger) read(ctx context.Context, b *catalog.Block, open int64) error {
	most := int64(fullness * float64(min(greatestWindow, memoryBytes/2/windowsOfInput/open)))
	footer := min(b.Bytes, leastWindow)
	for range 2 {
		if _, err := m.store.GetRange(ctx, catalog.ObjectName(b.ID), b.Bytes-footer, footer); err != nil {
			return err
		}
	}
	size := min(leastWindow, most)
	for off := int64(0); off < b.Bytes-footer; {
		for range windowsOfInput {
			n := min(size, b.Bytes-footer-off)
			if n <= 0 {
				break
			}
			if _, err := m.store.GetRange(ctx, catalog.ObjectName(b.ID), off, n); err != nil {
				return err
			}
			off += n
		}
		size = min(2*size, most)
	}
	return nil
}

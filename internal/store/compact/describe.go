package compact

import (
	"context"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// Describe returns the catalogue entry of a block whose commit record is lost, as far as its object of size
// bytes tells. Rollups do not tell their base, so nothing will read them. The object does not tell the order
// number, the generation and the retention group of the block, nor its level. The entry has the generation 0,
// so that all deletions apply.
func Describe(ctx context.Context, b InspectBucket, id string, size int64) (catalog.Block, error) {
	name := catalog.ObjectName(id)
	read := func(ctx context.Context, off, n int64) ([]byte, error) { return b.GetRange(ctx, name, off, n) }
	r, err := part.OpenWith(ctx, &rangePages{read}, read, size)
	if err != nil {
		return catalog.Block{}, fmt.Errorf("%s: %w", name, err)
	}
	m := r.Meta()
	block := catalog.Block{
		ID: id, Signal: m.Signal, Range: m.Range, Series: m.Series, Samples: m.Samples, Lines: m.Text, LineBytes: m.TextBytes,
		Bytes: size, Created: m.Created, TenantCount: len(m.Tenants),
	}
	for _, s := range m.Sources {
		block.Sources = append(block.Sources, catalog.Source(s))
	}
	for i := range m.Tenants {
		block.Tenants = append(block.Tenants, m.Tenants[i].Name)
	}
	begun := false
	for series, err := range part.All(ctx, r.Stream()) {
		if err != nil {
			return catalog.Block{}, fmt.Errorf("%s: %w", name, err)
		}
		k := series.Key
		if !begun {
			begun, block.KeyMin, block.KeyMax, block.FirstKey = true, k, k, k
		}
		var x model.Rollup
		if rows := &series.Rows.Samples; rows.Len() > 0 && rows.Kind(0) == model.KindHistogram && model.ParseRollup(rows.Blob(0), &x) {
			block.Resolution, block.Base, block.Policies = x.Step*int64(time.Second), "unknown", "unknown"
		}
		block.LastKey = k
		if k.Less(block.KeyMin) {
			block.KeyMin = k
		}
		if block.KeyMax.Less(k) {
			block.KeyMax = k
		}
	}
	if len(block.Sources) == 0 {
		return catalog.Block{}, fmt.Errorf("%s: %w: the block has no sources", name, model.ErrCorrupt)
	}
	block.Complete()
	return block, nil
}

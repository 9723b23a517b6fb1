package compact

import (
	"context"

	"github.com/shaledb/shale/internal/store/catalog"
)

// cleanBlock says that a deletion need not be applied to a block.
type cleanBlock struct {
	generation uint64
	block      string
}

// nextDeletion returns a merge of a block that still has deleted rows, or nil. A block in which no series
// satisfies the deletion stays as it is.
func (c *Compactor) nextDeletion(ctx context.Context, blocks []catalog.Block, deletions catalog.Deletions, tried map[string]bool) (*job, error) {
	for _, d := range deletions {
		for i := range blocks {
			b := &blocks[i]
			k := cleanBlock{d.Generation, b.ID}
			if c.clean[k] || !c.mayMerge(b, tried) || len((catalog.Deletions{d}).Applying(b, d.Tenant)) == 0 {
				continue
			}
			found, err := c.hasSeries(ctx, b, d)
			if err != nil {
				tried[b.ID] = true
				return nil, err
			}
			if !found {
				c.clean[k] = true
				continue
			}
			cells := everything(b.Level)
			if start, ok := inOneDay(b.Range); ok && b.Level == catalog.Settled {
				cells = oneDay(start)
			}
			return &job{why: becauseDelete, inputs: []catalog.Block{*b}, cells: cells}, nil
		}
	}
	return nil, nil
}

// hasSeries reports whether any series of a block satisfies a deletion.
func (c *Compactor) hasSeries(ctx context.Context, b *catalog.Block, d *catalog.Deletion) (bool, error) {
	m := &merge{c: c, ctx: ctx}
	r, err := m.reader(ctx, b, leastWindow)
	if err != nil {
		return false, err
	}
	if r.Meta().Tenant(d.Tenant) == nil {
		return false, nil
	}
	ranks, err := r.Select(ctx, d.Tenant, d.ModelMatchers())
	if err != nil {
		return false, &inputError{b.ID, err}
	}
	return len(ranks) > 0, nil
}

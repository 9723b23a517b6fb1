package compact

import (
	"context"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// cleanBlock says that a deletion need not be applied to a block.
type cleanBlock struct {
	generation uint64
	block      string
}

// nextDeletion returns a merge of a block that still has deleted rows, or nil. It notes the blocks in which
// no series satisfies the deletions that concern them: they stay as they are.
func (c *Compactor) nextDeletion(ctx context.Context, blocks []catalog.Block, deletions catalog.Deletions, tried map[string]bool) (*job, error) {
	for i := range blocks {
		b := &blocks[i]
		if !c.mayMerge(b, tried) {
			continue
		}
		j, err := c.rewrite(ctx, b, blocks, deletions, tried)
		if err != nil {
			tried[b.ID] = true
		}
		if j != nil || err != nil {
			return j, err
		}
	}
	return nil, nil
}

// rewrite returns the merge that drops the deleted rows of a block, or nil if that is not needed or must
// wait. A small block that waits for the end of its day is joined with others that have such rows.
func (c *Compactor) rewrite(ctx context.Context, b *catalog.Block, blocks []catalog.Block, deletions catalog.Deletions, tried map[string]bool) (*job, error) {
	checked := b.Generation
	for _, d := range deletions {
		if k := (cleanBlock{d.Generation, b.ID}); d.Concerns(b) && !c.clean[k] {
			found, err := c.hasSeries(ctx, b, d)
			switch {
			case err != nil:
				return nil, err
			case found && d.Due(c.o.Now()):
				// An earlier one that may still be cancelled holds it up, until it is on record that no series of the
				// block satisfies that one: a merge would not apply this one, and be due again.
				if _, _, generation := split([]catalog.Block{*b}, deletions, c.o.Now()); generation < d.Generation {
					c.noteChecked(b, checked)
					return nil, nil
				}
				if inputs := c.alike(ctx, b, d, blocks, deletions, tried); len(inputs) > 1 {
					return &job{why: becauseDelete, inputs: inputs, cells: halves(dayOf(c.o.Now() - int64(c.o.Grace)))}, nil
				}
				return rewriteOf(becauseDelete, b), nil
			case found: // it may still be cancelled, and later ones must wait with it
				c.noteChecked(b, checked)
				return nil, nil
			}
			c.clean[k] = true
		}
		checked = d.Generation
	}
	c.noteChecked(b, checked)
	return nil, nil
}

// alike returns the small blocks of a signal that wait for the end of their day, among them b, from which a
// deletion drops rows, as far as they may be merged. Ingesters that ship often leave hundreds of them. It may
// return b alone.
func (c *Compactor) alike(ctx context.Context, b *catalog.Block, d *catalog.Deletion, blocks []catalog.Block, deletions catalog.Deletions, tried map[string]bool) []catalog.Block {
	waits := func(x *catalog.Block) bool { return x.Level < catalog.Settled && x.Bytes <= c.o.MaxBlockBytes/4 }
	if !waits(b) {
		return nil
	}
	p := &planner{o: &c.o, now: c.o.Now(), deletions: deletions, may: func(x *catalog.Block) bool { return c.mayMerge(x, tried) }}
	for i := range blocks {
		if blocks[i].Signal == b.Signal {
			p.live = append(p.live, blocks[i])
		}
	}
	sortByOrder(p.live)
	var all []catalog.Block
	for i := range p.live {
		x := &p.live[i]
		if len(all) == c.o.MaxInputs {
			break
		}
		if !waits(x) || !p.may(x) || !d.Concerns(x) || c.clean[cleanBlock{d.Generation, x.ID}] {
			continue
		}
		if _, _, generation := split([]catalog.Block{*x}, deletions, p.now); generation < d.Generation {
			continue // an earlier one that must wait would hold all up
		}
		// Errors come again when it is the turn of the block itself.
		if found, err := c.hasSeries(ctx, x, d); err == nil && found {
			all = append(all, *x)
		}
	}
	inputs := longest(all, p.live, p.may, p.fits)
	// Otherwise an earlier deletion of another block that must wait holds this one up.
	if _, _, generation := split(inputs, deletions, p.now); generation < d.Generation {
		return nil
	}
	return inputs
}

// rewriteOf is the merge of one block by itself.
func rewriteOf(why string, b *catalog.Block) *job {
	cells := everything(b.Level)
	if start, ok := inOneDay(b.Range); ok && b.Level == catalog.Settled {
		cells = oneDay(start)
	}
	return &job{why: why, inputs: []catalog.Block{*b}, cells: cells}
}

// noteChecked notes that no deletion up to a generation hides any row of a block, if one of them concerns it.
func (c *Compactor) noteChecked(b *catalog.Block, generation uint64) {
	if generation > b.Generation && slices.ContainsFunc(c.known, func(d *catalog.Deletion) bool { return d.Generation <= generation && d.Concerns(b) }) {
		c.checked[b.ID] = generation
	}
}

// markClean writes what noteChecked has noted, so that readers need not look for rows of these deletions, and
// the deletions count as carried out.
func (c *Compactor) markClean(ctx context.Context) error {
	if len(c.checked) == 0 {
		return nil
	}
	var blocks []catalog.CleanBlock
	for id, generation := range c.checked {
		blocks = append(blocks, catalog.CleanBlock{Block: id, Generation: generation})
	}
	slices.SortFunc(blocks, func(a, b catalog.CleanBlock) int {
		if a.Block < b.Block {
			return -1
		}
		return 1
	})
	clear(c.checked)
	for len(blocks) > 0 {
		n := min(len(blocks), maxReplaced)
		if err := c.o.Catalog.MarkClean(ctx, blocks[:n]); err != nil {
			return err
		}
		blocks = blocks[n:]
	}
	return nil
}

// hasSeries reports whether any series of a block satisfies a deletion.
func (c *Compactor) hasSeries(ctx context.Context, b *catalog.Block, d *catalog.Deletion) (found bool, err error) {
	m := &merge{c: c, ctx: ctx}
	err = m.caught(func() (err error) {
		found, err = m.hasSeries(ctx, b, d)
		return err
	})
	return found, err
}

func (m *merge) hasSeries(ctx context.Context, b *catalog.Block, d *catalog.Deletion) (bool, error) {
	r, err := m.reader(ctx, b, leastWindow)
	if err != nil {
		return false, err
	}
	if r.Meta().Tenant(d.Tenant) == nil {
		return false, nil
	}
	m.reading = b.ID
	ranks, err := r.Select(ctx, d.Tenant, d.ModelMatchers())
	if err != nil {
		return false, &inputError{b.ID, err}
	}
	return len(ranks) > 0, nil
}

// split divides deletions into those that a merge of the inputs applies and those that wait: all from the
// first one on that concerns an input and may still be cancelled. The result of the merge gets the generation
// of the last one that is applied.
func split(inputs []catalog.Block, all catalog.Deletions, now int64) (apply, wait catalog.Deletions, generation uint64) {
	for i, d := range all {
		if !d.Due(now) && slices.ContainsFunc(inputs, func(b catalog.Block) bool { return d.Concerns(&b) }) {
			return all[:i], all[i:], d.Generation - 1
		}
		generation = d.Generation
	}
	for i := range inputs {
		generation = max(generation, inputs[i].Generation)
	}
	return all, nil, generation
}

// separated reports whether a deletion that must wait keeps the inputs apart: it concerns some of them, and
// the block made of all would count its other rows as deleted, or none.
func separated(inputs []catalog.Block, all catalog.Deletions, now int64) bool {
	_, wait, generation := split(inputs, all, now)
	if len(wait) == 0 {
		return false
	}
	var sources []catalog.Source
	for i := range inputs {
		sources = append(sources, inputs[i].Sources...)
	}
	made := catalog.Block{Generation: generation, Sources: joinSources(sources), Range: model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}}
	for _, d := range wait {
		for i := range inputs {
			if b := &inputs[i]; d.Reaches(b) && d.Precedes(b) != d.Precedes(&made) {
				return true
			}
		}
	}
	return false
}

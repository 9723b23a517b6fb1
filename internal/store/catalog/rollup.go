package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/entry"
)

// Rollups. A block of rollups has the rows of one other block, its base, summed up in slots. A merge that
// replaces the base need not know of it: a block of rollups counts only
//
//   - while its base is visible, as another form of the same rows, or
//   - alone, if retention has hidden the base and said so in the same record.
//
// All others are dead: compaction hides them, and nothing reads them. So at each moment the rows of a base
// are shown once, whatever order several processes commit in. If one process merges a block while retention
// in another one hides it, the merge wins: its result has the rows, and the rollups are dead.

// ofRollups reports whether the record says anything about rollups.
func (c *commit) ofRollups() bool {
	return len(c.alone) > 0 || slices.ContainsFunc(c.blocks, func(b Block) bool { return b.Resolution > 0 })
}

// divide moves rollups out of the blocks of a view.
func (v *view) divide(records map[string]*commit) {
	if !slices.ContainsFunc(v.blocks, func(b Block) bool { return b.Resolution > 0 }) {
		return
	}
	alone, merged := map[string]bool{}, map[string]bool{}
	for _, r := range records {
		for _, id := range r.alone {
			alone[id] = true
		}
		if slices.ContainsFunc(r.blocks, func(b Block) bool { return b.Resolution == 0 }) {
			for _, id := range r.replaces {
				merged[id] = true
			}
		}
	}
	raw := make([]Block, 0, len(v.blocks))
	for _, b := range v.blocks {
		switch {
		case b.Resolution == 0:
			raw = append(raw, b)
		case v.ids[b.Base]:
			v.rollups = append(v.rollups, b)
		case alone[b.ID] && !merged[b.Base]:
			b.Alone = true
			v.rollups = append(v.rollups, b)
		default:
			v.dead = append(v.dead, b)
		}
	}
	v.blocks = raw
}

// needing returns the blocks from which deleted rows must be dropped. Rollups whose base is visible need not
// be changed: a new base makes them dead.
func (v *view) needing() []Block {
	if len(v.rollups) == 0 {
		return v.blocks
	}
	return slices.Concat(v.blocks, slices.DeleteFunc(slices.Clone(v.rollups), func(b Block) bool { return !b.Alone }))
}

// UnrolledBlock says that rules of rollups sum up nothing of a block.
type UnrolledBlock struct {
	Block string `json:"block"`
	// Policies names the rules; see [Block].
	Policies string `json:"policies"`
}

// State is what compaction sees at one moment. Its slices and maps must not be changed.
type State struct {
	// Blocks are the visible blocks without rollups.
	Blocks []Block
	// Rollups are those that count, and Dead the visible ones that do not.
	Rollups, Dead []Block
	Deletions     Deletions
	// Unrolled are blocks of which no rollups are made.
	Unrolled map[UnrolledBlock]bool
}

// State returns the visible blocks, all rollups and all deletions at one moment.
func (c *Catalog) State() State {
	v := c.view.Load()
	return State{v.blocks, v.rollups, v.dead, v.deletions, v.unrolled}
}

// WithRollups is [Catalog.Overlapping] with the rollups that count, and all deletions, at one moment.
func (c *Catalog) WithRollups(r model.TimeRange, s model.Signal, tenant string) (blocks, rollups []Block, deletions Deletions) {
	v := c.view.Load()
	return overlapping(v.blocks, r, s, tenant), overlapping(v.rollups, r, s, tenant), v.byTenant[tenant]
}

// AddRollups makes rollups of a base visible, and others of it invisible, atomically. Without blocks it only
// hides. On [ErrReplaced] nothing has changed. Errors of class transient are those of [Catalog.Replace].
func (c *Catalog) AddRollups(ctx context.Context, base string, old []string, blocks []Block) error {
	return c.addRollups(ctx, base, old, blocks, nil)
}

// RewriteAlone puts blocks, none or one, in the place of a block of rollups that is alone. The result is
// alone.
func (c *Catalog) RewriteAlone(ctx context.Context, old string, blocks []Block) error {
	var ids []string
	for i := range blocks {
		ids = append(ids, blocks[i].ID)
	}
	return c.addRollups(ctx, "", []string{old}, blocks, ids)
}

// unrolled returns those of the visible blocks of which no rollups are made. mu must be held.
func (c *Catalog) unrolled(visible map[string]bool) map[UnrolledBlock]bool {
	all := map[UnrolledBlock]bool{}
	for _, r := range c.records {
		for _, x := range r.unrolled {
			if visible[x.Block] {
				all[x] = true
			}
		}
	}
	return all
}

// MarkUnrolled notes blocks of which no rollups are made, so that compaction does not read them again.
func (c *Catalog) MarkUnrolled(ctx context.Context, blocks []UnrolledBlock) error {
	if err := c.commits.Take(ctx); err != nil {
		return fmt.Errorf("catalogue: %w", err)
	}
	defer c.commits.Give()
	v := c.view.Load()
	blocks = slices.DeleteFunc(slices.Clone(blocks), func(x UnrolledBlock) bool { return !v.ids[x.Block] || v.unrolled[x] })
	if len(blocks) == 0 {
		return nil
	}
	var names []string
	for _, x := range blocks {
		names = append(names, x.Block+" "+x.Policies)
	}
	if err := c.put(ctx, &commit{id: entry.ListID("unrolled", names), committed: c.now(), unrolled: blocks}); err != nil {
		return fmt.Errorf("catalogue: mark blocks without rollups: %w", err)
	}
	return nil
}

func (c *Catalog) addRollups(ctx context.Context, base string, old []string, blocks []Block, alone []string) error {
	if err := c.commits.Take(ctx); err != nil {
		return fmt.Errorf("catalogue: %w", err)
	}
	defer c.commits.Give()
	blocks = completed(blocks)
	var ids []string
	for i := range blocks {
		ids = append(ids, blocks[i].ID)
	}
	v := c.view.Load()
	needed := old
	if base != "" {
		needed = append([]string{base}, old...)
	}
	for _, id := range needed {
		if !v.ids[id] {
			return fmt.Errorf("catalogue: rollups: block %s: %w", id, ErrReplaced)
		}
	}
	if len(old)+len(blocks) == 0 {
		return nil
	}
	r := &commit{id: entry.ListID("rollups", old, ids), committed: c.now(), replaces: old, blocks: blocks, alone: alone}
	if err := c.put(ctx, r); err != nil {
		return fmt.Errorf("catalogue: rollups: %w", err)
	}
	return nil
}

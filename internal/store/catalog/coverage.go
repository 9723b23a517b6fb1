package catalog

import (
	"cmp"
	"slices"
)

// Coverage says up to which batch a ship has taken the rows of a journal to the bucket.
type Coverage struct {
	Node string
	// Epoch names the journal by its start time.
	Epoch uint64
	// From and To bound the sequence numbers that a ship adds. From follows the To of the ship before, and is
	// 1 in the first one. To is From-1 in a ship that adds none.
	From, To uint64
	// Appended is in Unix nanoseconds. All batches that were appended before it are covered. 0: unknown.
	Appended int64
	// Closed says that no batch will follow. Then no later ship of the journal is accepted.
	Closed bool
	// Leaders says which leader of a partition had taken the record To: its number, from 1. 0: unknown, or the
	// journal has no leaders. Whoever goes on can ask whether that record is still there.
	Leaders uint64
}

// Skip is a range of a journal that cannot be read, and that an operator has decided to do without.
type Skip struct {
	Node     string
	Epoch    uint64
	From, To uint64 // To is ToEnd if all is given up that the journal had
	Why      string
}

// ToEnd is the To of a [Skip] of all that a journal had. How much that was is not known.
const ToEnd = maxNumber

// GivenUp is a Skip with what is known of the times at which its batches were appended, in Unix nanoseconds.
type GivenUp struct {
	Skip
	// After is the [Coverage.Appended] of the ship that has the Skip. 0: unknown.
	After int64
	// Before is when the Skip was decided.
	Before int64
}

// GivenUp returns all that operators have decided to do without, in the order of the decisions. Records of
// ships that have a Skip stay, and it is here before [Catalog.Covered] passes it. It must not be changed.
func (c *Catalog) GivenUp() []GivenUp { return *c.givenUp.Load() }

// noteSkips adds what a record gives up, or takes it away. mu must be held.
func (c *Catalog) noteSkips(r *commit, known bool) {
	if len(r.skipped) == 0 {
		return
	}
	all := slices.DeleteFunc(slices.Clone(*c.givenUp.Load()), func(g GivenUp) bool { return slices.Contains(r.skipped, g.Skip) })
	for _, s := range r.skipped {
		if !known {
			break
		}
		g := GivenUp{Skip: s, Before: r.committed}
		if v := r.coverage(journal{s.Node, s.Epoch}); v != nil {
			g.After = v.Appended
		}
		all = append(all, g)
	}
	slices.SortStableFunc(all, func(a, b GivenUp) int { return cmp.Compare(a.Before, b.Before) })
	c.givenUp.Store(&all)
}

// journal names the journal of a node.
type journal struct {
	node  string
	epoch uint64
}

func (v *Coverage) journal() journal { return journal{v.Node, v.Epoch} }

// Covered returns what the last ship of a journal covers. To is 0 if there is none.
func (c *Catalog) Covered(node string, epoch uint64) Coverage {
	return c.Progress(node, epoch).Coverage
}

// Passed reports whether ships cover all fences of a deletion, so that none of its orders is read again. What
// is not shipped of a journal that is given up never will be; nil: none is.
func (c *Catalog) Passed(d *Deletion, givenUp func(epoch uint64) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(d.Fences, func(f Fence) bool {
		return c.progress(journal{f.Node, f.Epoch}).To < f.Seq && (givenUp == nil || !givenUp(f.Epoch))
	})
}

// Progress says how far a journal is shipped, and by what.
type Progress struct {
	Coverage
	Ship uint64 // the number of the last ship of the journal; 0: there is none
	Life string // of the last ship; empty: it has none
}

// Progress returns how far a journal is shipped.
func (c *Catalog) Progress(node string, epoch uint64) Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.progress(journal{node, epoch})
}

// progress returns how far a journal is shipped. mu must be held.
func (c *Catalog) progress(j journal) Progress {
	if r := c.covered[j]; r != nil {
		return Progress{*r.coverage(j), r.ship, r.life()}
	}
	return Progress{Coverage: Coverage{Node: j.node, Epoch: j.epoch, From: 1}}
}

// coverage returns the entry of a journal, or nil.
func (r *commit) coverage(j journal) *Coverage {
	for i := range r.covered {
		if r.covered[i].journal() == j {
			return &r.covered[i]
		}
	}
	return nil
}

// addCoverage notes which ship covers a journal last. mu must be held.
func (c *Catalog) addCoverage(r *commit) {
	c.lastShip = max(c.lastShip, r.ship)
	c.noteSkips(r, true)
	for i := range r.covered {
		j := r.covered[i].journal()
		if last := c.covered[j]; last == nil || last.ship <= r.ship {
			c.covered[j] = r
		}
	}
}

// forgetCoverage finds the ships that cover the journals of a forgotten one last. mu must be held.
func (c *Catalog) forgetCoverage(r *commit) {
	c.noteSkips(r, false)
	for i := range r.covered {
		j := r.covered[i].journal()
		if c.covered[j] != r {
			continue
		}
		delete(c.covered, j)
		for _, o := range c.records {
			if last := c.covered[j]; o.coverage(j) != nil && (last == nil || last.ship < o.ship) {
				c.covered[j] = o
			}
		}
	}
}

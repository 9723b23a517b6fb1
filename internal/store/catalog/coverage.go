package catalog

import (
	"slices"

	"github.com/shaledb/shale/internal/store/catalog/entry"
)

const ToEnd = entry.ToEnd // of a [Skip] of all that a journal had

// What ships say of journals.
type (
	Coverage = entry.Coverage
	Skip     = entry.Skip
	GivenUp  = entry.GivenUp
	journal  = entry.Journal
)

// GivenUp returns all that was given up, before [Catalog.Covered] passes it. It must not be changed.
func (c *Catalog) GivenUp() []GivenUp { return *c.givenUp.Load() }

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
		return c.progress(journal{Node: f.Node, Epoch: f.Epoch}).To < f.Seq && (givenUp == nil || !givenUp(f.Epoch))
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
	return c.progress(journal{Node: node, Epoch: epoch})
}

// progress returns how far a journal is shipped. mu must be held.
func (c *Catalog) progress(j journal) Progress {
	if r := c.covered[j]; r != nil {
		return Progress{*r.coverage(j), r.ship, r.life()}
	}
	return Progress{Coverage: Coverage{Node: j.Node, Epoch: j.Epoch, From: 1}}
}

// coverage returns the entry of a journal, or nil.
func (r *commit) coverage(j journal) *Coverage {
	for i := range r.covered {
		if r.covered[i].Journal() == j {
			return &r.covered[i]
		}
	}
	return nil
}

// addCoverage notes which ship covers a journal last. mu must be held.
func (c *Catalog) addCoverage(r *commit) {
	c.lastShip = max(c.lastShip, r.ship)
	c.givenUp.Store(entry.WithSkips(c.givenUp.Load(), r.skipped, r.covered, r.committed))
	for i := range r.covered {
		j := r.covered[i].Journal()
		if last := c.covered[j]; last == nil || last.ship <= r.ship {
			c.covered[j] = r
		}
	}
}

// forgetCoverage finds the ships that cover the journals of a forgotten one last. mu must be held.
func (c *Catalog) forgetCoverage(r *commit) {
	c.givenUp.Store(entry.WithoutSkips(c.givenUp.Load(), r.skipped))
	for i := range r.covered {
		j := r.covered[i].Journal()
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

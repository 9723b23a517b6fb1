package catalog

import "github.com/shaledb/shale/internal/model"

// Changes is told of changes of the rows that queries see.
type Changes interface {
	// Range says that rows of a signal in a range have come or gone. has says whether that concerns a tenant.
	Range(s model.Signal, r model.TimeRange, has func(tenant string) bool)
}

// tell tells of the changes between two views. A ship of this process moves rows that queries saw before,
// and its merges keep all rows that queries see. Others may know further rows, or have other rules. mu must
// be held.
func (c *Catalog) tell(old, now *view) {
	for i := range now.blocks {
		if b := &now.blocks[i]; !old.ids[b.ID] && (c.tellOwn || !c.holder[b.ID].ours) {
			c.changes.Range(b.Signal, b.Range, b.HasTenant)
		}
	}
	var hidden map[string]bool // by this process
	for i := range old.blocks {
		b := &old.blocks[i]
		if now.ids[b.ID] {
			continue
		}
		if hidden == nil {
			hidden = map[string]bool{}
			for _, r := range c.records {
				for _, id := range r.replaces {
					hidden[id] = hidden[id] || r.ours && !c.tellOwn
				}
			}
		}
		if !hidden[b.ID] {
			c.changes.Range(b.Signal, b.Range, b.HasTenant)
		}
	}
	c.tellDeletions(old.deletions, now.deletions)
	c.tellDeletions(now.deletions, old.deletions)
}

// tellDeletions tells of the deletions that are in a list and not in another. Both are ascending.
func (c *Catalog) tellDeletions(in, notIn Deletions) {
	for _, d := range in {
		for len(notIn) > 0 && notIn[0].Generation < d.Generation {
			notIn = notIn[1:]
		}
		if len(notIn) == 0 || notIn[0].Generation != d.Generation {
			c.changes.Range(d.Signal, d.Range, func(tenant string) bool { return tenant == d.Tenant })
		}
	}
}

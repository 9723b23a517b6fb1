package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/entry"
)

// Delete hides rows, see [Deletion], and returns the deletion with its generation. A request that was
// committed before stays as it is. After an error of class transient the deletion may have happened or not;
// repeating it is harmless.
func (c *Catalog) Delete(ctx context.Context, d Deletion) (Deletion, error) {
	if known := c.requested(d.Tenant, d.Request); known != nil {
		return *known, nil
	}
	d.Generation = 0
	if err := d.Compile(c.filters); err != nil {
		return d, fmt.Errorf("catalogue: delete: %w", err)
	}
	if err := c.commits.Take(ctx); err != nil {
		return d, fmt.Errorf("catalogue: delete: %w", err)
	}
	defer c.commits.Give()
	// A generation must not be assigned twice, even if its record has been collected: blocks refer to it as
	// applied. The greatest is never collected, so that a refresh shows it.
	if err := c.Refresh(ctx); err != nil {
		return d, fmt.Errorf("catalogue: delete: %w", err)
	}
	for {
		if known := c.requested(d.Tenant, d.Request); known != nil {
			return *known, nil
		}
		c.mu.Lock()
		d.Generation = c.maxGeneration + 1
		c.mu.Unlock()
		d.Committed = c.now()
		stored, data, err := (&commit{id: deletionID(d.Generation), committed: d.Committed, deletion: &d}).stored()
		if err == nil {
			err = stored.deletion.Compile(c.filters)
		}
		if err != nil {
			return d, fmt.Errorf("catalogue: delete: %w", err)
		}
		created, err := c.b.PutIfAbsent(ctx, recordName(stored.id), data)
		if err != nil {
			return d, fmt.Errorf("catalogue: delete: %w", err)
		}
		if created {
			c.know(stored)
			c.keep(ctx, stored, data)
			return *stored.deletion, nil
		}
		// Another process has taken the generation, or the response to an earlier try was lost.
		taken, err := c.readOne(ctx, stored.id)
		if err == nil && taken == nil {
			err = fmt.Errorf("%w: %s: %w", model.ErrTransient, stored.id, bucket.ErrNotFound)
		}
		if err != nil {
			return d, fmt.Errorf("catalogue: delete: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return d, errors.Join(model.ErrTransient, err)
		}
		c.know(taken)
		c.rememberAll(ctx, []*commit{taken})
	}
}

// request names the request of a deletion.
type request struct{ tenant, id string }

// requested returns the deletion of a request, also a cancelled one, or nil.
func (c *Catalog) requested(tenant, id string) *Deletion {
	if id == "" {
		return nil
	}
	return c.view.Load().requests[request{tenant, id}]
}

// DeletionsOf returns the deletions of a tenant that were not cancelled, in the order of their generations.
func (c *Catalog) DeletionsOf(tenant string) Deletions { return c.view.Load().byTenant[tenant] }

// Requested reports whether the deletion of a request is known, also if it was cancelled.
func (c *Catalog) Requested(tenant, id string) bool { return c.requested(tenant, id) != nil }

// CancelDeletion makes the rows of a deletion visible again, as far as compaction has not dropped them. A
// request that is not known, or was cancelled before, is not an error. The caller decides whether the
// deletion may still be cancelled.
func (c *Catalog) CancelDeletion(ctx context.Context, tenant, request string) error {
	if err := c.commits.Take(ctx); err != nil {
		return fmt.Errorf("catalogue: cancel a deletion: %w", err)
	}
	defer c.commits.Give()
	d := c.requested(tenant, request)
	if d == nil {
		if err := c.Refresh(ctx); err != nil {
			return fmt.Errorf("catalogue: cancel a deletion: %w", err)
		}
		if d = c.requested(tenant, request); d == nil {
			return nil
		}
	}
	c.mu.Lock()
	done := c.cancelled()[d.Generation]
	c.mu.Unlock()
	if done {
		return nil
	}
	if err := c.put(ctx, &commit{id: cancelID(d.Generation), committed: c.now(), cancels: d.Generation}); err != nil {
		return fmt.Errorf("catalogue: cancel a deletion: %w", err)
	}
	return nil
}

// MarkClean notes for blocks up to which generation no deletion hides any of their rows, although their
// tenants and times say that it might. Then readers need not look for such rows, and the deletions can be
// collected.
func (c *Catalog) MarkClean(ctx context.Context, blocks []CleanBlock) error {
	if err := c.commits.Take(ctx); err != nil {
		return fmt.Errorf("catalogue: mark clean blocks: %w", err)
	}
	defer c.commits.Give()
	v := c.view.Load()
	blocks = slices.DeleteFunc(slices.Clone(blocks), func(x CleanBlock) bool { return !v.ids[x.Block] })
	if len(blocks) == 0 {
		return nil
	}
	var names []string
	for _, x := range blocks {
		names = append(names, fmt.Sprintf("%s %d", x.Block, x.Generation))
	}
	if err := c.put(ctx, &commit{id: entry.ListID("clean", names), committed: c.now(), clean: blocks}); err != nil {
		return fmt.Errorf("catalogue: mark clean blocks: %w", err)
	}
	return nil
}

// Requested is a deletion with its progress.
type Requested struct {
	*Deletion
	// Left counts the visible blocks that may still hold rows that the deletion hides, and Total those that it
	// concerned from the start, as far as they are visible.
	Left, Total int
}

// Due reports whether rows of the deletion may be dropped.
func (d *Deletion) Due(now int64) bool { return d.NotBefore <= now }

// DeletionTenants returns the tenants that have deletions, in any order.
func (c *Catalog) DeletionTenants() []string {
	return slices.Collect(maps.Keys(c.view.Load().byTenant))
}

// Requests returns the deletions of a tenant that were not cancelled, in the order of their generations.
func (c *Catalog) Requests(tenant string) []Requested {
	v := c.view.Load()
	var all []Requested
	blocks := v.needing()
	for _, d := range v.byTenant[tenant] {
		r := Requested{Deletion: d}
		for i := range blocks {
			b := &blocks[i]
			if d.Reaches(b) && d.follows(b) {
				r.Total++
			}
			if d.Concerns(b) {
				r.Left++
			}
		}
		all = append(all, r)
	}
	return all
}

// CacheGeneration returns a text that changes when a deletion is made or cancelled.
func (c *Catalog) CacheGeneration() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := int64(0)
	for _, r := range c.records {
		if r.cancels > 0 {
			last = max(last, r.committed)
		}
	}
	if last == 0 {
		return strconv.FormatUint(c.maxGeneration, 10)
	}
	return fmt.Sprintf("%d-%d", c.maxGeneration, last)
}

// collectDeletions deletes the records of deletions that were committed before a time and concern no row on
// its way nor visible block, unless they were cancelled, and then the cancellations of collected ones. A
// cancelled one stays as long as an order of it may be read: without its record, its decision would be
// carried out. The greatest generation stays, so that it is never assigned twice.
func (c *Catalog) collectDeletions(ctx context.Context, before int64, holds func(*Deletion) bool, done *Collected) error {
	if holds == nil {
		holds = func(d *Deletion) bool { return len(d.Fences) > 0 }
	}
	blocks := c.view.Load().needing()
	var old []*commit
	c.mu.Lock()
	all, cancelled := c.allDeletions(), c.cancelled()
	c.mu.Unlock()
	for i, d := range all {
		if i == len(all)-1 || d.Committed > before || !d.Due(before+int64(time.Second)) && !cancelled[d.Generation] {
			continue
		}
		if !holds(d) && (cancelled[d.Generation] || !slices.ContainsFunc(blocks, func(b Block) bool { return d.Concerns(&b) })) {
			c.mu.Lock()
			old = append(old, c.records[deletionID(d.Generation)])
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	for _, r := range c.records {
		if r.cancels > 0 && r.committed <= before && c.records[deletionID(r.cancels)] == nil {
			old = append(old, r)
		}
	}
	c.mu.Unlock()
	n, err := c.deleteRecords(ctx, old)
	done.Deletions += n
	return err
}

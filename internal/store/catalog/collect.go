package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// CollectOptions define garbage. A zero duration keeps that kind of garbage; a zero Grace means no grace.
type CollectOptions struct {
	// Grace is how long hidden blocks stay: the longest query plus a refresh of the catalogue by other
	// processes.
	Grace time.Duration
	// UploadGrace is how long an object without a record stays. It must be longer than an upload may wait for
	// its commit, which is about one hour (see [Catalog.Ship]).
	UploadGrace time.Duration
	// UploadSearch is the time between two searches for objects without a record, each of which lists all
	// blocks. While a block has lost its record, each collection searches.
	UploadSearch time.Duration
	// DeletionGrace is how long a deletion stays that no visible block needs. It must be longer than any merge
	// takes.
	DeletionGrace time.Duration
	// Holds reports whether rows that a deletion hides, or its orders, may still be on their way to the bucket.
	// Nil: those of a deletion with fences may.
	Holds func(d *Deletion) bool
}

// Collected counts deleted objects.
type Collected struct {
	Blocks, Records, Orphans, Deletions int
}

// Collect deletes objects that have been hidden for longer than their grace, uploads that were never
// committed, and deletions that no block needs any more. A failure does not stop it; the next call retries.
// Errors are those of the bucket.
func (c *Catalog) Collect(ctx context.Context, o CollectOptions) (done Collected, err error) {
	c.collecting.Lock()
	defer c.collecting.Unlock()
	defer func() { c.metrics.collected(done) }()
	errs := []error{c.collectHidden(ctx, c.now()-int64(o.Grace), &done)}
	if o.DeletionGrace > 0 {
		errs = append(errs, c.collectDeletions(ctx, c.now()-int64(o.DeletionGrace), o.Holds, &done))
	}
	if o.UploadGrace > 0 && c.searchDue(o.UploadSearch) {
		errs = append(errs, c.collectOrphans(ctx, c.now()-int64(o.UploadGrace), &done))
	}
	errs = append(errs, c.heal(ctx), c.purgeLists(ctx))
	if err := errors.Join(errs...); err != nil {
		return done, fmt.Errorf("catalogue: collect: %w", err)
	}
	return done, nil
}

// searchDue reports whether it is time to search for objects without a record. collecting must be held.
func (c *Catalog) searchDue(every time.Duration) bool {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orphans == nil || len(c.strays) > 0 || now-c.sought >= int64(every) || now < c.sought
}

// collectHidden deletes blocks that were hidden before a time. A record is deleted only when all its blocks
// may go and the blocks that it hides have no record any more: otherwise they would become visible.
//
// It needs no claims, as collectOrphans does. A slower process may commit a hidden block once more, by a
// merge of the same inputs. But it refreshes the catalogue before that, and the inputs are hidden since
// before the block was: it would have to stop between that refresh and the commit for longer than the grace.
func (c *Catalog) collectHidden(ctx context.Context, before int64, done *Collected) error {
	var errs []error
	for {
		blocks, records := c.garbage(before)
		deleted := 0
		for _, id := range blocks {
			if err := c.b.Delete(ctx, ObjectName(id)); err != nil {
				errs = append(errs, err)
				continue
			}
			c.mu.Lock()
			c.gone[id] = true
			c.mu.Unlock()
			done.Blocks++
			deleted++
		}
		// After the objects, so that an object is never without a record that leads here.
		records = slices.DeleteFunc(records, func(r *commit) bool {
			return slices.ContainsFunc(r.blocks, func(b Block) bool { return !c.isGone(b.ID) })
		})
		n, err := c.deleteRecords(ctx, records)
		if err != nil {
			errs = append(errs, err)
		}
		done.Records += n
		deleted += n
		// The deleted records may have been the last reason to keep others.
		if deleted == 0 || len(errs) > 0 || ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
}

func (c *Catalog) isGone(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone[id]
}

// garbage returns the blocks whose objects may be deleted now, and the records that may be deleted after
// them. A lost record hides blocks, but gives no reason to delete them: if somebody has put an older bucket
// in place, they are all that is left of the rows.
func (c *Catalog) garbage(before int64) (blocks []string, records []*commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hidden := c.hidden(func(r *commit) bool { return !c.lost[r.id] })
	for _, r := range c.records {
		visible := func(id string) bool {
			_, gone := hidden[id]
			return !gone && c.holder[id] != nil
		}
		whole := r.deletion == nil && r.cancels == 0 && !c.shipStays(r) && !slices.ContainsFunc(r.alone, visible) &&
			!slices.ContainsFunc(r.clean, func(x CleanBlock) bool { return visible(x.Block) }) &&
			!slices.ContainsFunc(r.unrolled, func(x UnrolledBlock) bool { return visible(x.Block) })
		for i := range r.blocks {
			id := r.blocks[i].ID
			if at, ok := hidden[id]; !ok || at > before || c.uploading[id] > 0 {
				whole = false
			} else if !c.gone[id] {
				blocks = append(blocks, id)
			}
		}
		if len(r.blocks) == 0 && r.committed > before {
			whole = false
		}
		if whole && !slices.ContainsFunc(r.replaces, func(id string) bool { return c.holder[id] != nil }) {
			records = append(records, r)
		}
	}
	return blocks, records
}

// deleteRecords deletes records and returns how many. The order tells other processes that this is not a
// loss: first the list of collected records, then the copies, then the records.
func (c *Catalog) deleteRecords(ctx context.Context, rs []*commit) (deleted int, err error) {
	if len(rs) == 0 {
		return 0, nil
	}
	if err := putCollected(ctx, c.b, c.now(), rs, false); err != nil {
		return 0, err
	}
	var errs []error
	for _, r := range rs {
		name := recordName(r.id)
		err := c.b.Delete(ctx, copyName(name))
		if err == nil {
			err = c.b.Delete(ctx, name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		deleted++
		c.mu.Lock()
		c.forget(r)
		c.publish()
		c.mu.Unlock()
		c.unremember(ctx, []string{r.id})
	}
	return deleted, errors.Join(errs...)
}

package catalog

import (
	"context"
	"errors"
	"strings"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// Every record has a copy of the same bytes: copies/ and its name. The copy is written after the record and
// deleted before it. So a copy without a record says that the record is lost, and what it was. A record
// without a copy says nothing: its writer may have crashed. Collect makes the copy then.

// copyName returns the name of the copy of an object.
func copyName(name string) string { return CopyPrefix + name }

// healAtOnce bounds the copies that one collection makes.
const healAtOnce = 1000

// listCopies returns the ids of the records that have a copy.
func (c *Catalog) listCopies(ctx context.Context) (map[string]bool, error) {
	copied := map[string]bool{}
	err := c.b.List(ctx, copyName(RecordPrefix), func(name string, _ int64) error {
		if id, err := recordOf(strings.TrimPrefix(name, CopyPrefix)); err == nil {
			copied[id] = true
		}
		return nil
	})
	return copied, err
}

// keep stores a record that was just committed a second time: in the bucket and in the memory. It also
// removes the markers of the uploads. The record counts already, so a failure is not one of the commit:
// Collect makes up for it.
func (c *Catalog) keep(ctx context.Context, r *commit, data []byte) {
	if err := c.putCopy(ctx, r.id, data); err != nil {
		c.log.Warn("cannot write the copy of a commit record; the next garbage collection will", "record", recordName(r.id), "err", err)
	}
	c.remember(ctx, r.id, data)
	for i := range r.blocks {
		c.unmark(ctx, r.blocks[i].ID)
	}
}

func (c *Catalog) putCopy(ctx context.Context, id string, data []byte) error {
	if err := c.b.Put(ctx, copyName(recordName(id)), strings.NewReader(string(data)), int64(len(data))); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.copied[id] = true
	return nil
}

// spare returns a record from its copy in the bucket, or else from the memory. It returns bucket.ErrNotFound
// if neither has it, and an error of class corrupt if the copy is damaged and the memory does not have it.
func (c *Catalog) spare(ctx context.Context, id string) (*commit, error) {
	name := recordName(id)
	data, err := c.b.Get(ctx, copyName(name))
	if err == nil {
		var r *commit
		if r, err = c.parseCompiled(name, data); err == nil {
			return r, nil
		}
	}
	if c.memory == nil || !errors.Is(err, bucket.ErrNotFound) && !errors.Is(err, model.ErrCorrupt) {
		return nil, err
	}
	data, e := c.memory.Get(ctx, name)
	if e != nil {
		return nil, err
	}
	r, e := c.parseCompiled(name, data)
	if e != nil {
		c.log.Warn("the memory of a commit record is damaged", "record", name, "err", e)
		return nil, err
	}
	return r, nil
}

// heal makes missing copies of the records that are still needed: of those with a visible block, those that
// hide a block, ships that must stay, and deletions. Another process may be about to collect the other ones.
func (c *Catalog) heal(ctx context.Context) error {
	c.mu.Lock()
	live := c.view.Load().ids
	var bare []*commit
	for id, r := range c.records {
		needed := r.deletion != nil || r.cancels > 0 || c.shipStays(r)
		for i := range r.blocks {
			needed = needed || live[r.blocks[i].ID]
		}
		for _, hidden := range r.replaces {
			needed = needed || len(r.blocks) == 0 && c.holder[hidden] != nil
		}
		if needed && !c.copied[id] && !c.lost[id] && len(bare) < healAtOnce {
			bare = append(bare, r)
		}
	}
	c.mu.Unlock()
	for _, r := range bare {
		if err := c.makeCopy(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// makeCopy writes the copy of a known record. If the record is gone by now and on a list of collected ones,
// its copy must not outlive it. Otherwise the record is lost, and the copy is what is left of it.
func (c *Catalog) makeCopy(ctx context.Context, r *commit) error {
	_, data, err := r.stored()
	if err != nil {
		return err
	}
	if err := c.putCopy(ctx, r.id, data); err != nil {
		return err
	}
	if _, err := c.b.Get(ctx, recordName(r.id)); !errors.Is(err, bucket.ErrNotFound) {
		return err
	}
	gone := map[string]*commit{r.id: r}
	if _, err := collectedAmong(ctx, c.b, gone, func(string) bool { return false }); err != nil || len(gone) > 0 {
		return err
	}
	return c.b.Delete(ctx, copyName(recordName(r.id)))
}

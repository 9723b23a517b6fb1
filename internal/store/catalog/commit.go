package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// maxUpload bounds the time from the start of an upload to its commit. It is far below the age at which an
// object without a record counts as garbage, so that a process that slept in between does not commit a
// deleted object.
const maxUpload = time.Hour

// Ship makes the rows of a shipped block visible: it calls upload, which writes the object, and then writes
// the record. If the block was committed before, Ship does nothing, even if the block is hidden by now. After
// an error of class transient the commit may have happened or not; call Ship again.
func (c *Catalog) Ship(ctx context.Context, b Block, upload func(context.Context) error) error {
	known, err := c.committed(ctx, b.ID)
	if known || err != nil {
		return err
	}
	done, err := c.Uploading(ctx, b.ID)
	if err != nil {
		return fmt.Errorf("catalogue: announce the upload of %s: %w", b.ID, err)
	}
	defer done()
	began := time.Now()
	if err := upload(ctx); err != nil {
		return fmt.Errorf("catalogue: upload %s: %w", b.ID, err)
	}
	// The monotonic clock stops while the machine sleeps; the wall clock does not.
	if now := time.Now(); now.Sub(began) > maxUpload || now.Round(0).Sub(began.Round(0)) > maxUpload {
		return fmt.Errorf("catalogue: ship %s: %w: the upload took longer than %s", b.ID, model.ErrTransient, maxUpload)
	}
	return c.Commit(ctx, b)
}

// committed reports whether a shipped block has a record. A record whose response was lost becomes known
// here.
func (c *Catalog) committed(ctx context.Context, id string) (bool, error) {
	c.mu.Lock()
	known := c.holder[id] != nil
	delete(c.gone, id) // the caller may have written the object again
	c.mu.Unlock()
	if !known {
		r, err := c.readOne(ctx, id)
		if r == nil || err != nil {
			return false, err
		}
		c.know(r)
		c.rememberAll(ctx, []*commit{r})
	}
	c.unmark(ctx, id)
	return true, nil
}

// Commit makes a shipped block visible, whose object must be complete. The catalogue assigns its order number
// and generation. After an error of class transient the commit may have happened or not; call Commit again. A
// block that was committed before stays as it is, because its order number must not change.
func (c *Catalog) Commit(ctx context.Context, b Block) error {
	c.commits.Lock()
	defer c.commits.Unlock()
	if known, err := c.committed(ctx, b.ID); known || err != nil {
		return err
	}
	b.Complete()
	c.mu.Lock()
	b.OrderLo = max(c.maxOrder+1, b.SeqHi)
	b.OrderHi, b.Generation = b.OrderLo, c.maxGeneration
	c.maxOrder = b.OrderHi // also if it fails: the record may be there
	c.mu.Unlock()
	if err := c.put(ctx, &commit{id: b.ID, committed: c.now(), blocks: []Block{b}}); err != nil {
		return fmt.Errorf("catalogue: commit: %w", err)
	}
	return nil
}

// ErrReplaced says that an input of a merge is no longer visible: another compactor was faster, or the input
// has expired. Nothing needs repair. It has no class of model.
var ErrReplaced = errors.New("an input was replaced in the meantime")

// Replace makes the blocks of a merge visible and their inputs invisible, atomically. The objects must be
// complete. blocks is empty if all rows were deleted. On [ErrReplaced] nothing has changed. After an error of
// class transient the change may have happened or not; Refresh shows which.
func (c *Catalog) Replace(ctx context.Context, inputs []string, blocks []Block) error {
	c.commits.Lock()
	defer c.commits.Unlock()
	ids := make([]string, 0, len(blocks))
	blocks = append([]Block(nil), blocks...)
	for i := range blocks {
		blocks[i].Complete()
		ids = append(ids, blocks[i].ID)
	}
	v := c.view.Load()
	for _, id := range inputs {
		if !v.ids[id] {
			return fmt.Errorf("catalogue: merge: block %s: %w", id, ErrReplaced)
		}
	}
	// The id covers the blocks: processes that merge the same inputs in different ways must not overwrite each
	// other.
	id := listID("merged", inputs, ids)
	if err := c.put(ctx, &commit{id: id, committed: c.now(), replaces: inputs, blocks: blocks}); err != nil {
		return fmt.Errorf("catalogue: merge: %w", err)
	}
	return nil
}

// put writes a record and makes it known. The caller holds commits.
func (c *Catalog) put(ctx context.Context, r *commit) error {
	stored, data, err := r.stored()
	if err != nil {
		return err
	}
	if err := c.b.Put(ctx, recordName(r.id), strings.NewReader(string(data)), int64(len(data))); err != nil {
		return err
	}
	c.know(stored)
	c.keep(ctx, stored, data)
	return nil
}

func (c *Catalog) know(r *commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(r)
	c.publish()
}

// stored encodes a record and reads it back. A record that cannot be read must not be written: no process
// could open the catalogue any more.
func (r *commit) stored() (*commit, []byte, error) {
	data, err := r.encode()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %v", recordName(r.id), model.ErrInvalid, err)
	}
	back, err := parseRecord(recordName(r.id), data)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %v", model.ErrInvalid, err)
	}
	return back, data, nil
}

// deletionID names the record of a generation. The name depends on nothing else, so that exactly one of two
// concurrent writers succeeds.
func deletionID(generation uint64) string { return fmt.Sprintf("delete-%016d", generation) }

// maxDeletions bounds the deletions that every query of a tenant has to check.
const maxDeletions = 4096

// Delete deletes rows, see [Deletion], and returns the deletion with its generation. Rows in blocks that are
// committed later are not deleted: ship what should be deleted first. After an error of class transient the
// deletion may have happened or not; repeating it is harmless.
func (c *Catalog) Delete(ctx context.Context, d Deletion) (Deletion, error) {
	d.Generation, d.match = 0, nil
	if err := d.compile(); err != nil {
		return d, fmt.Errorf("catalogue: delete: %w", err)
	}
	c.commits.Lock()
	defer c.commits.Unlock()
	// A generation must not be assigned twice, even if its record has been collected: blocks refer to it as
	// applied. The greatest is never collected, so that a refresh shows it.
	if err := c.Refresh(ctx); err != nil {
		return d, fmt.Errorf("catalogue: delete: %w", err)
	}
	for {
		c.mu.Lock()
		d.Generation = c.maxGeneration + 1
		c.mu.Unlock()
		if n := len(c.view.Load().deletions); n >= maxDeletions {
			return d, fmt.Errorf("catalogue: delete: %w: %d deletions wait for compaction, the limit is %d", model.ErrTransient, n, maxDeletions)
		}
		d.Committed = c.now()
		stored, data, err := (&commit{id: deletionID(d.Generation), committed: d.Committed, deletion: &d}).stored()
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
		// Another process has taken the generation.
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

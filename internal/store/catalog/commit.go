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

// maxUpload is how long an upload may be complete before it is committed. It is far below the age at which an object
// without a record is taken for garbage, so that a process which slept in between does not commit what has been deleted.
const maxUpload = time.Hour

// Ship makes the rows of a shipped block visible: upload, which makes its object, and then the record. If the block has
// been committed before, whether or not it is still visible, nothing is done. After an error of class transient it may
// have happened or not, and is to be repeated.
func (c *Catalog) Ship(ctx context.Context, b Block, upload func(context.Context) error) error {
	defer c.Uploading(b.ID)()
	known, err := c.committed(ctx, b.ID)
	if known || err != nil {
		return err
	}
	began := time.Now()
	if err := upload(ctx); err != nil {
		return fmt.Errorf("catalogue: upload %s: %w", b.ID, err)
	}
	// The clock of the process stands still while the machine sleeps; that of the wall does not.
	if now := time.Now(); now.Sub(began) > maxUpload || now.Round(0).Sub(began.Round(0)) > maxUpload {
		return fmt.Errorf("catalogue: ship %s: %w: the upload took more than %s", b.ID, model.ErrTransient, maxUpload)
	}
	return c.Commit(ctx, b)
}

// Uploading keeps the object of a block, which no record holds yet, from being collected until done is called.
func (c *Catalog) Uploading(id string) (done func()) {
	c.mark(id, 1)
	return func() { c.mark(id, -1) }
}

func (c *Catalog) mark(id string, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uploading[id] += by; c.uploading[id] == 0 {
		delete(c.uploading, id)
	}
}

// committed reports whether a shipped block has a record. One that was written while its answer was lost becomes known.
func (c *Catalog) committed(ctx context.Context, id string) (bool, error) {
	c.mu.Lock()
	known := c.holder[id] != nil
	delete(c.gone, id) // whoever asks may have made the object again
	c.mu.Unlock()
	if known {
		return true, nil
	}
	r, err := c.readOne(ctx, id)
	if r == nil || err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(r)
	c.publish()
	return true, nil
}

// Commit makes a shipped block, whose object is complete, visible. The catalogue gives it its order number and
// generation. After an error of class transient it may have happened or not, and is to be repeated; a block that has
// been committed before is left as it is, for its order number must not change.
func (c *Catalog) Commit(ctx context.Context, b Block) error {
	c.commits.Lock()
	defer c.commits.Unlock()
	if known, err := c.committed(ctx, b.ID); known || err != nil {
		return err
	}
	b.complete()
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

// ErrReplaced says that an input of a merge is not visible any more: somebody else was faster, or it has expired. There
// is nothing to repair. It is of no class of model.
var ErrReplaced = errors.New("an input has been replaced meanwhile")

// Replace makes the blocks of a merge, whose objects are complete, visible and their inputs invisible, at once. There may
// be no blocks, if all rows were deleted. With [ErrReplaced] nothing is done. After an error of class transient it may
// have happened or not, which a Refresh shows.
func (c *Catalog) Replace(ctx context.Context, inputs []string, blocks []Block) error {
	c.commits.Lock()
	defer c.commits.Unlock()
	ids := make([]string, 0, len(blocks))
	blocks = append([]Block(nil), blocks...)
	for i := range blocks {
		blocks[i].complete()
		ids = append(ids, blocks[i].ID)
	}
	v := c.view.Load()
	for _, id := range inputs {
		if !v.ids[id] {
			return fmt.Errorf("catalogue: merge: block %s: %w", id, ErrReplaced)
		}
	}
	// The blocks are in the id: programs that merge the same inputs in different ways must not overwrite each other.
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
	return nil
}

func (c *Catalog) know(r *commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(r)
	c.publish()
}

// stored encodes a record and reads it back: what could not be read again must not be written, for it would lock
// everybody out of the catalogue.
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

// deletionID names the record of a generation. It holds nothing else, so that of two who write it at one time exactly
// one succeeds.
func deletionID(generation uint64) string { return fmt.Sprintf("delete-%016d", generation) }

// maxDeletions bounds what every query of a tenant has to look at.
const maxDeletions = 4096

// Delete deletes rows, see [Deletion], and returns the deletion with its generation. Rows that come later, in blocks
// that are committed later, are not deleted: what has not been shipped yet is to be shipped first. After an error of
// class transient it may have happened or not; to repeat it does no harm.
func (c *Catalog) Delete(ctx context.Context, d Deletion) (Deletion, error) {
	d.Generation, d.match = 0, nil
	if err := d.compile(); err != nil {
		return d, fmt.Errorf("catalogue: delete: %w", err)
	}
	c.commits.Lock()
	defer c.commits.Unlock()
	// A generation that was in use once, and whose record has been collected, must not come again: blocks say that it
	// has been applied. The greatest is never collected.
	if err := c.Refresh(ctx); err != nil {
		return d, fmt.Errorf("catalogue: delete: %w", err)
	}
	for {
		c.mu.Lock()
		d.Generation = c.maxGeneration + 1
		c.mu.Unlock()
		if n := len(c.view.Load().deletions); n >= maxDeletions {
			return d, fmt.Errorf("catalogue: delete: %w: %d deletions wait for compaction", model.ErrTransient, n)
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
			return *stored.deletion, nil
		}
		// Another one has taken the generation.
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
	}
}

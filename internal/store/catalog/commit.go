package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/entry"
)

// ErrReplaced says that an input of a merge is no longer visible: another compactor was faster, or the input
// has expired. Nothing needs repair. It has no class of model.
var ErrReplaced = errors.New("an input was replaced in the meantime")

// Replace makes the blocks of a merge visible and their inputs invisible, atomically. The objects must be
// complete. blocks is empty if all rows were deleted. On [ErrReplaced] nothing has changed. After an error of
// class transient the change may have happened or not; Refresh shows which.
func (c *Catalog) Replace(ctx context.Context, inputs []string, blocks []Block) error {
	if err := c.commits.Take(ctx); err != nil {
		return fmt.Errorf("catalogue: merge: %w", err)
	}
	defer c.commits.Give()
	ids := make([]string, 0, len(blocks))
	blocks = completed(blocks)
	for i := range blocks {
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
	id := entry.ListID("merged", inputs, ids)
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
	stored.ours = true
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

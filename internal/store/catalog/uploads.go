package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// A marker is written before a block is uploaded and deleted after the block has a record. So an object
// below blocks/ that has neither a record nor a marker once had a record, which is lost. Each upload has a
// marker of its own: two compactors may upload the same block, and the slower one may come too late.

// markerName names a marker of the upload of a block.
func markerName(id string) string { return uploadPrefix + id + "." + nonce() }

// markedBlock returns the block of a marker.
func markedBlock(name string) string {
	name = strings.TrimPrefix(name, uploadPrefix)
	return name[:max(0, strings.LastIndexByte(name, '.'))]
}

// Uploading announces the upload of a block's object. Until done is called, this process does not collect the
// object. It waits if the process is just deleting what an earlier upload has left.
func (c *Catalog) Uploading(ctx context.Context, id string) (done func(), err error) {
	if err := c.reserveUpload(ctx, id); err != nil {
		return nil, err
	}
	name := markerName(id)
	if _, err := c.b.PutIfAbsent(ctx, name, []byte(id+"\n")); err != nil {
		c.uploaded(id)
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.markers[id] = append(c.markers[id], name)
	return func() { c.uploaded(id) }, nil
}

// unmarked reports whether the bucket is one of a version without markers: it wrote no copies either, and
// nothing remembers the bucket yet.
func (c *Catalog) unmarked(ctx context.Context) (bool, error) {
	if c.memory == nil {
		return false, nil
	}
	occupied := func(string, int64) error { return errOccupied }
	if c.memory.List(ctx, "", occupied) != nil {
		return false, nil // it remembers something, or it fails, which is told elsewhere
	}
	err := c.b.List(ctx, copyPrefix, occupied)
	if errors.Is(err, errOccupied) {
		return false, nil
	}
	return err == nil, err
}

// markOldUploads marks the blocks without a record of such a bucket, so that they do not count as blocks
// whose records are lost. In a bucket without any record they may well have lost theirs.
func (c *Catalog) markOldUploads(ctx context.Context) error {
	l, err := c.findLeftovers(ctx)
	if err != nil {
		return err
	}
	for id := range l.strays {
		if _, err := c.b.PutIfAbsent(ctx, markerName(id), []byte(id+"\n")); err != nil {
			return err
		}
	}
	return nil
}

// reserveUpload keeps the collector away from a block.
func (c *Catalog) reserveUpload(ctx context.Context, id string) error {
	for {
		c.mu.Lock()
		deleted := c.deleting[id]
		if deleted == nil {
			c.uploading[id]++
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
		select {
		case <-deleted:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", model.ErrTransient, ctx.Err())
		}
	}
}

// uploaded ends the protection of an object. The marker stays if the block was not committed: then the object
// is garbage.
func (c *Catalog) uploaded(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uploading[id]--; c.uploading[id] == 0 {
		delete(c.uploading, id)
		delete(c.markers, id)
	}
}

// unmark deletes the markers of this process of a block that has a record now. A marker that stays is
// collected later.
func (c *Catalog) unmark(ctx context.Context, id string) {
	c.mu.Lock()
	names := c.markers[id]
	delete(c.markers, id)
	c.mu.Unlock()
	for _, name := range names {
		if err := c.b.Delete(ctx, name); err != nil {
			c.log.Debug("cannot delete the marker of an upload; it is collected later", "marker", name, "err", err)
		}
	}
}

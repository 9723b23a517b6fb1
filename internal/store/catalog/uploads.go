package catalog

import (
	"context"
	"strings"
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
// object.
func (c *Catalog) Uploading(ctx context.Context, id string) (done func(), err error) {
	name := markerName(id)
	if _, err := c.b.PutIfAbsent(ctx, name, []byte(id+"\n")); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.markers[id] = append(c.markers[id], name)
	c.uploading[id]++
	return func() { c.uploaded(id) }, nil
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

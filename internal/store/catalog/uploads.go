package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// A marker is written before a block is uploaded and deleted after the block has a record. So an object
// below blocks/ that has neither a record nor a marker once had a record, which is lost. Each upload has a
// marker of its own: two compactors may upload the same block, and the slower one may come too late.
//
// A collector that deletes what a failed upload has left also writes a marker, its claim. The uploader
// writes its marker and then looks for claims; the collector writes its claim and then looks for markers and
// records. So at least one of the two sees the other and gives way, and no block is deleted between its
// upload and its commit.

// claimMark begins the random end of a claim's name.
const claimMark = "deleting="

const (
	// claimedFor is how long an uploader gives way to a claim, from when it first saw it. After that, the
	// collector must have died.
	claimedFor = 5 * time.Minute
	// maxClaim is how long a collector relies on its claims.
	maxClaim = time.Minute
)

// markerName names a marker of the upload of a block.
func markerName(id string) string { return UploadPrefix + id + "." + nonce() }

// claimName names a claim to delete a block.
func claimName(id string) string { return UploadPrefix + id + "." + claimMark + nonce() }

// markedBlock returns the block of a marker or claim.
func markedBlock(name string) (id string, claim bool) {
	name = strings.TrimPrefix(name, UploadPrefix)
	dot := max(0, strings.LastIndexByte(name, '.'))
	return name[:dot], strings.HasPrefix(name[dot:], "."+claimMark)
}

// Uploading announces the uploads of the objects of blocks. Until done is called, no process collects them.
// It waits while this process deletes what an earlier upload has left. While another one does, the error is
// of class transient.
func (c *Catalog) Uploading(ctx context.Context, ids ...string) (done func(), err error) {
	var reserved, marked []string
	release := func() {
		for _, id := range reserved {
			c.uploaded(id)
		}
	}
	defer func() {
		if done != nil {
			return
		}
		release()
		for _, name := range marked {
			if e := c.b.Delete(ctx, name); e != nil {
				c.log.Debug("cannot delete the marker of an upload; it is collected later", "marker", name, "err", e)
			}
		}
	}()
	for _, id := range ids {
		if err := c.reserveUpload(ctx, id); err != nil {
			return nil, err
		}
		reserved = append(reserved, id)
		name := markerName(id)
		if _, err := c.b.PutIfAbsent(ctx, name, []byte(id+"\n")); err != nil {
			return nil, err
		}
		marked = append(marked, name)
	}
	if err := c.giveWay(ctx, ids); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, id := range ids {
		c.markers[id] = append(c.markers[id], marked[i])
	}
	return release, nil
}

// giveWay returns an error of class transient if a collector is about to delete the object of one of the
// blocks. It deletes claims whose collector has died. It lists once, however many blocks there are.
func (c *Catalog) giveWay(ctx context.Context, ids []string) error {
	prefix := UploadPrefix
	if len(ids) == 1 {
		prefix += ids[0] + "." + claimMark
	}
	claims := map[string]string{} // blocks by claim
	err := c.b.List(ctx, prefix, func(name string, _ int64) error {
		if id, claim := markedBlock(name); claim && slices.Contains(ids, id) {
			claims[name] = id
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name, seen := range c.noteClaims(ids, claims) {
		if time.Since(seen) < claimedFor {
			return fmt.Errorf("%w: a process is deleting what an earlier upload of %s has left (%s); a claim counts for %s", model.ErrTransient, ObjectName(claims[name]), name, claimedFor)
		}
		if err := c.b.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// noteClaims notes the claims to blocks, and returns when each was seen first. The clock of this process
// alone decides: those of two machines may differ.
func (c *Catalog) noteClaims(ids []string, claims map[string]string) map[string]time.Time {
	now, since := time.Now(), map[string]time.Time{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, id := range claims {
		if since[name] = now; !c.claims[id][name].IsZero() {
			since[name] = c.claims[id][name]
		}
	}
	for _, id := range ids {
		delete(c.claims, id)
	}
	for name, id := range claims {
		if c.claims[id] == nil {
			c.claims[id] = map[string]time.Time{}
		}
		c.claims[id][name] = since[name]
	}
	return since
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

// uploaded ends the protection of an object. The marker stays if the block was not committed: the object is
// garbage then, or the next attempt commits it.
func (c *Catalog) uploaded(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uploading[id]--; c.uploading[id] == 0 {
		delete(c.uploading, id)
	}
}

// unmark deletes the markers of this process of a block that has a record now, also those of failed attempts.
// A marker that stays is collected later.
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

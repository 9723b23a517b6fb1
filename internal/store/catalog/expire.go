package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Expire hides the blocks whose rows are all older than before, and deletes what has been hidden for longer than grace:
// objects of blocks first, then their records, then the records that hid them. grace is the time of the longest query
// and of a refresh of the catalogue by others. It is to be called from time to time; what fails is tried again then.
// A before of math.MinInt64 hides nothing.
func (c *Catalog) Expire(ctx context.Context, before int64, grace time.Duration) error {
	var old []string
	for _, b := range c.Live() {
		last := b.Range.Max
		if b.Range.Min > last { // no rows
			last = b.Created
		}
		if last < before {
			old = append(old, b.ID)
		}
	}
	if len(old) > 0 {
		if err := c.commit(ctx, c.tombstone(old)); err != nil {
			return fmt.Errorf("catalogue: expire: %w", err)
		}
	}
	if err := c.collect(ctx, c.now()-int64(grace)); err != nil {
		return fmt.Errorf("catalogue: delete: %w", err)
	}
	return nil
}

// tombstone returns a record that only hides. Its id follows from what it hides, so that repeating it makes no second.
func (c *Catalog) tombstone(ids []string) *record {
	slices.Sort(ids)
	h := sha256.New()
	for _, id := range ids {
		h.Write([]byte(id))
		h.Write([]byte{0})
	}
	return &record{
		Version: recordVersion, ID: "expired-" + hex.EncodeToString(h.Sum(nil)[:16]), Committed: c.now(), Replaces: ids,
	}
}

// collect deletes what was hidden before a time. A record goes only when those that it hides have none any more: else
// they would come back. One failure does not keep the rest from being deleted.
func (c *Catalog) collect(ctx context.Context, hidden int64) error {
	var errs []error
	for {
		garbage := c.garbage(hidden)
		deleted := 0
		for _, r := range garbage {
			if err := c.delete(ctx, r); err != nil {
				errs = append(errs, err)
				continue
			}
			deleted++
		}
		// What has gone may have been all that kept other records.
		if deleted == 0 || len(errs) > 0 || ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
}

// garbage returns the records that may go now.
func (c *Catalog) garbage(hidden int64) []*record {
	c.mu.Lock()
	defer c.mu.Unlock()
	replaced := c.replaced()
	var found []*record
	for id, r := range c.records {
		at, gone := replaced[id]
		if r.Block == nil {
			at, gone = r.Committed, true
		}
		if gone && at <= hidden && !slices.ContainsFunc(r.Replaces, func(id string) bool { return c.records[id] != nil }) {
			found = append(found, r)
		}
	}
	return found
}

func (c *Catalog) delete(ctx context.Context, r *record) error {
	if r.Block != nil {
		if err := c.b.Delete(ctx, ObjectName(r.ID)); err != nil {
			return err
		}
	}
	// Last, so that an object is never without a record that leads here.
	if err := c.b.Delete(ctx, recordName(r.ID)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.records, r.ID) // it was hidden, and hid nothing that is left: what can be seen stays the same
	return nil
}

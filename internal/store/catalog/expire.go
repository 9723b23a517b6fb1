package catalog

import (
	"context"
	"fmt"
	"time"
)

// Expire hides the blocks whose rows are all older than before, and deletes blocks that have been hidden for
// longer than grace: first the objects, then the records that held them, then the records that hid them.
// grace is the longest query plus a refresh of the catalogue by other processes. Call it periodically; a call
// retries what failed before. A before of math.MinInt64 hides nothing.
func (c *Catalog) Expire(ctx context.Context, before int64, grace time.Duration) error {
	if err := c.expire(ctx, before); err != nil {
		return fmt.Errorf("catalogue: expire: %w", err)
	}
	_, err := c.Collect(ctx, CollectOptions{Grace: grace})
	return err
}

func (c *Catalog) expire(ctx context.Context, before int64) error {
	c.commits.Lock()
	defer c.commits.Unlock()
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
	if len(old) == 0 {
		return nil
	}
	// The id follows from the hidden blocks, so that a repeated call writes the same record.
	return c.put(ctx, &commit{id: listID("expired", old), committed: c.now(), replaces: old})
}

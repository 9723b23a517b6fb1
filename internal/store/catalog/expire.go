package catalog

import (
	"context"
	"fmt"
	"time"
)

// Expire hides the blocks whose rows are all older than before, and deletes what has been hidden for longer than grace:
// objects of blocks first, then the records that held them, then the records that hid them. grace is the time of the
// longest query and of a refresh of the catalogue by others. It is to be called from time to time; what fails is tried
// again then. A before of math.MinInt64 hides nothing.
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
	// Its id follows from what it hides, so that repeating it makes no second.
	return c.put(ctx, &commit{id: listID("expired", old), committed: c.now(), replaces: old})
}

package catalog

import (
	"context"
	"fmt"
	"time"
)

// Expire hides the blocks that have expired, and deletes blocks that have been hidden for longer than grace:
// first the objects, then the records that held them, then the records that hid them. grace is the longest
// query plus a refresh of the catalogue by other processes. Call it periodically; a call retries what failed
// before.
func (c *Catalog) Expire(ctx context.Context, expired func(*Block) bool, grace time.Duration) error {
	if err := c.expire(ctx, expired); err != nil {
		return fmt.Errorf("catalogue: expire: %w", err)
	}
	_, err := c.Collect(ctx, CollectOptions{Grace: grace})
	return err
}

func (c *Catalog) expire(ctx context.Context, expired func(*Block) bool) error {
	c.commits.Lock()
	defer c.commits.Unlock()
	var old []string
	var bytes int64
	for _, b := range c.Live() {
		if expired(&b) {
			old, bytes = append(old, b.ID), bytes+b.Bytes
		}
	}
	if len(old) == 0 {
		return nil
	}
	// The id follows from the hidden blocks, so that a repeated call writes the same record.
	if err := c.put(ctx, &commit{id: listID("expired", old), committed: c.now(), replaces: old}); err != nil {
		return err
	}
	c.metrics.expiredBlocks.Add(float64(len(old)))
	c.metrics.expiredBytes.Add(float64(bytes))
	return nil
}

package catalog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/store/catalog/entry"
)

// Expire hides the blocks that have expired, of rollups those that are alone, and deletes blocks that have
// been hidden for longer than grace: first the objects, then the records that held them, then the records
// that hid them. grace is the longest query plus a refresh of the catalogue by other processes. Call it
// periodically; a call retries what failed before.
func (c *Catalog) Expire(ctx context.Context, expired func(*Block) bool, grace time.Duration) error {
	if err := c.expire(ctx, expired); err != nil {
		return fmt.Errorf("catalogue: expire: %w", err)
	}
	_, err := c.Collect(ctx, CollectOptions{Grace: grace})
	return err
}

func (c *Catalog) expire(ctx context.Context, expired func(*Block) bool) error {
	if err := c.commits.Take(ctx); err != nil {
		return fmt.Errorf("catalogue: %w", err)
	}
	defer c.commits.Give()
	var old, alone []string
	var bytes int64
	v := c.view.Load()
	for _, b := range v.blocks {
		if expired(&b) {
			old, bytes = append(old, b.ID), bytes+b.Bytes
		}
	}
	for _, b := range v.rollups {
		switch {
		case b.Alone && expired(&b):
			old, bytes = append(old, b.ID), bytes+b.Bytes
		case !b.Alone && slices.Contains(old, b.Base):
			alone = append(alone, b.ID)
		}
	}
	if len(old) == 0 {
		return nil
	}
	// The id follows from the hidden blocks, so that a repeated call writes the same record.
	r := &commit{id: entry.ListID("expired", old), committed: c.now(), replaces: old, alone: alone}
	if len(alone) > 0 {
		r.id = entry.ListID("expired", old, alone)
	}
	if err := c.put(ctx, r); err != nil {
		return err
	}
	c.metrics.expiredBlocks.Add(float64(len(old)))
	c.metrics.expiredBytes.Add(float64(bytes))
	return nil
}

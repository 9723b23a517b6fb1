package memcached

import (
	"context"
	"time"

	"github.com/shaledb/shale/internal/cache"
)

// freshPause is the time between two looks at the queue.
const freshPause = 2 * time.Millisecond

// Fresh is [cache.Secondary.Fresh]. Half of the queue is left to pages that queries have read.
func (t *Tier) Fresh(ctx context.Context, k cache.Key, value []byte) bool {
	if !t.o.Fresh {
		return false
	}
	n := int64(len(value) + fillOverhead)
	if len(value) == 0 || len(value) > t.most || n > t.o.QueueBytes/2 || len(k.Object) > mostName/2 {
		t.m.refused(refusedSize)
		return true
	}
	for t.queued.Load()+n > t.o.QueueBytes/2 || len(t.queue) >= queueLength/2 {
		select {
		case <-ctx.Done():
			return false
		case <-t.stop:
			return false
		case <-time.After(freshPause):
		}
	}
	if !t.enqueue(fill{k, value}) {
		t.m.refused(refusedQueue)
		return false
	}
	t.m.fresh.Add(float64(len(value)))
	return true
}

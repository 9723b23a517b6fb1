package memcached

import (
	"context"
	"errors"
	"time"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/memcache"
	"github.com/shaledb/shale/internal/memcache/meta"
	"github.com/shaledb/shale/internal/memcache/pipe"
)

const (
	// fillers is how many values are stored at the same time. Each filler has a frame of its own, and the
	// connection another copy.
	fillers = 2
	// queueLength bounds the number of values that wait to be stored.
	queueLength = 4096
	// fillTimeout bounds the time of storing a value. No query waits for it.
	fillTimeout = time.Second
	// keptFrame is the largest frame whose memory is used again.
	keptFrame = 1 << 20
	// fillOverhead is counted for each value besides its bytes.
	fillOverhead = 200
)

// fill is a value that is to be stored.
type fill struct {
	key   cache.Key
	value []byte
}

// Offer is [cache.Secondary.Offer]. A value that is to be stored takes three times its bytes, so one of more
// than half of the queue is not taken. A value that is too large for the server is not split: it would take
// several round trips, and would be lost with the first of its pieces that is.
func (t *Tier) Offer(k cache.Key, _ cache.Asker, value []byte) {
	if len(value) == 0 || len(value) > t.most || len(k.Object) > mostName/2 {
		t.m.refused(refusedSize)
		return
	}
	if !t.enqueue(fill{k, value}) {
		t.m.refused(refusedQueue)
	}
}

// enqueue reports whether there is room for a value that is to be stored.
func (t *Tier) enqueue(f fill) bool {
	n := int64(len(f.value) + fillOverhead)
	if t.queued.Add(n) <= t.o.QueueBytes {
		select {
		case t.queue <- f:
			return true
		default:
		}
	}
	t.queued.Add(-n)
	return false
}

// fill stores values until the tier ends.
func (t *Tier) fill() {
	var name, frame []byte
	for {
		select {
		case <-t.stop:
			return
		case f := <-t.queue:
			name = t.appendName(name[:0], f.key)
			frame = appendFrame(frame[:0], name, f.value)
			t.store(t.keyOf(name), frame, len(f.value))
			if t.queued.Add(-int64(len(f.value) + fillOverhead)); cap(frame) > keptFrame {
				frame = nil
			}
		}
	}
}

// store stores a frame, and counts what came of it.
func (t *Tier) store(key, frame []byte, size int) {
	flags := meta.Flags{Letters: meta.Of("T"), TTL: int64(t.o.TTL / time.Second)}
	calls := []memcache.Call{{Request: meta.Request{Verb: meta.Set, Key: key, Flags: flags}, Value: frame}}
	t.client.Write(context.Background(), time.Now().Add(fillTimeout), calls)
	var refused *pipe.RefusedError
	switch err := calls[0].Err; {
	case err == nil && calls[0].Code == meta.HD:
		t.m.stored.Inc()
		t.m.written.Add(float64(len(frame)))
		return
	case errors.Is(err, memcache.ErrTooLarge):
		t.m.refused(refusedSize)
	case errors.Is(err, memcache.ErrOut), errors.Is(err, memcache.ErrNoServer):
		t.m.refused(refusedOut)
		return
	case errors.As(err, &refused):
		t.m.refused(refusedServer)
	default:
		t.m.refused(refusedFailed)
		return
	}
	// The server works and will not have the value: readers are not to wait for it.
	calls[0] = memcache.Call{Request: meta.Request{Verb: meta.Delete, Key: key, Flags: meta.Flags{Letters: meta.Of("q")}}}
	t.client.Write(context.Background(), time.Now().Add(fillTimeout), calls)
}

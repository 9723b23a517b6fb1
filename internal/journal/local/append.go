package local

import (
	"context"
	"fmt"
	"sync"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
)

// pending is a batch on its way through the journal.
type pending struct {
	batch *model.Batch
	// buf is the encoded record behind room for its frame header. The committer writes the header and may do with the
	// bytes what it likes.
	buf  []byte
	room int64
	done chan error // of capacity 1
}

// maxPooledBytes keeps a buffer of unusual size from staying in the pool. Agents send a megabyte of lines at a time, as a rule.
const maxPooledBytes = 2 << 20

// Append returns once the batch is durable and has been applied, in this order; the batch is the caller's again. Batches
// of one goroutine get ascending sequence numbers. ctx bounds the wait for a place in the queue; from then on the
// batch belongs to the journal and the call ends when the disk has answered.
//
// Errors: transient when the record could not be made durable (it will not be applied, though a crash right then may
// leave it to be found by Replay), closed, invalid for a batch beyond [MaxRecordBytes].
func (j *Journal) Append(ctx context.Context, b *model.Batch) error {
	hint := journal.SizeHint(b)
	if hint > MaxRecordBytes {
		return fmt.Errorf("journal: %w: a batch of %d bytes, and %d are allowed", model.ErrInvalid, hint, MaxRecordBytes)
	}
	// The place is taken before the batch is encoded, so that the buffers are bounded and not only what is queued.
	room := min(int64(hint+journal.JoinHint(b)), j.o.MaxQueueBytes)
	if err := j.enter(ctx, room); err != nil {
		return err
	}
	p := j.pendings.Get().(*pending)
	p.batch, p.room = b, room
	p.buf = append(p.buf[:0], emptyFrame[:]...)
	p.buf = journal.EncodeBatch(p.buf, b)
	var err error
	if n := len(p.buf) - frameHeader; n > MaxRecordBytes {
		err = fmt.Errorf("journal: %w: a batch of %d bytes, and %d are allowed", model.ErrInvalid, n, MaxRecordBytes)
	} else {
		putRecordSum(p.buf)
		err = j.queue.put(p)
	}
	if err != nil {
		j.leave(room)
	} else {
		err = <-p.done
	}
	if p.batch = nil; cap(p.buf) > maxPooledBytes {
		p.buf = nil
	}
	j.pendings.Put(p)
	return err
}

// enter takes a place for a batch, from before it is encoded until it has been applied.
func (j *Journal) enter(ctx context.Context, bytes int64) error {
	if err := j.room.Acquire(ctx, bytes); err != nil {
		return fmt.Errorf("journal: %w: the queue of %d bytes is full: %w", model.ErrTransient, j.o.MaxQueueBytes, err)
	}
	j.held.Add(bytes)
	return nil
}

func (j *Journal) leave(bytes int64) {
	j.held.Add(-bytes)
	j.room.Release(bytes)
}

var emptyFrame [frameHeader]byte

// queue is what waits for the committer.
type queue struct {
	wake chan struct{} // of capacity 1: there is something, or the queue has been closed

	mu    sync.Mutex
	list  []*pending
	bytes int64
	open  bool
}

func (q *queue) init() { q.wake = make(chan struct{}, 1) }

func (q *queue) put(p *pending) error {
	q.mu.Lock()
	if !q.open {
		q.mu.Unlock()
		return fmt.Errorf("journal: %w", model.ErrClosed)
	}
	q.list = append(q.list, p)
	q.bytes += int64(len(p.buf))
	q.mu.Unlock()
	q.ring()
	return nil
}

func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take moves everything that waits to g, and waits until there is something. It returns false when the queue is closed
// and empty.
func (q *queue) take(g *group) bool {
	for {
		q.mu.Lock()
		open := q.open
		g.list, q.list = q.list, g.list[:0]
		g.bytes, q.bytes = q.bytes, 0
		q.mu.Unlock()
		if len(g.list) > 0 {
			return true
		}
		if !open {
			return false
		}
		<-q.wake
	}
}

func (q *queue) setOpen(open bool) {
	q.mu.Lock()
	q.open = open
	q.mu.Unlock()
	q.ring()
}

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
	// buf is the encoded record after room for its frame header. The committer writes the header and may
	// overwrite the bytes.
	buf  []byte
	room int64
	done chan error // of capacity 1
}

// maxPooledBytes keeps very large buffers out of the pool. Log agents usually send a megabyte at a time.
const maxPooledBytes = 2 << 20

// Append returns once the batch is durable and has been applied, in this order. Batches of one goroutine get
// ascending sequence numbers. ctx bounds the wait for room in the queue. From then on the batch belongs to
// the journal until Append returns, which waits for the disk.
//
// Error classes: transient if the record could not be made durable (it is not applied, but Replay may find it
// after a crash), closed, and invalid for a batch beyond [MaxRecordBytes].
func (j *Journal) Append(ctx context.Context, b *model.Batch) error {
	hint := journal.SizeHint(b)
	if hint > MaxRecordBytes {
		return fmt.Errorf("journal: %w: batch has %d bytes and the limit is %d", model.ErrInvalid, hint, MaxRecordBytes)
	}
	// Room is reserved before the batch is encoded, so that the bound covers encoding buffers too and not only
	// the queue.
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
		err = fmt.Errorf("journal: %w: batch has %d bytes and the limit is %d", model.ErrInvalid, n, MaxRecordBytes)
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

// enter reserves room for a batch, from before it is encoded until it has been applied.
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

// queue holds the batches that wait for the committer.
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

// take moves all waiting batches to g, and waits for one if there is none. It returns false when the queue is
// closed and empty.
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

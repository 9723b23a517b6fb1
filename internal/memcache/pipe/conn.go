package pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/memcache/meta"
)

const (
	// maxInFlight bounds the batches that wait for responses. maxWaiting bounds the bytes of requests that wait
	// to be written: besides them there is at most one batch.
	maxInFlight = 128
	maxWaiting  = 256 << 10
	// writeGrace is added to the deadline of a caller that writes: a write takes time only if the server has
	// stopped to read, which ends the connection.
	writeGrace = 10 * time.Millisecond
	// maxStrays bounds the responses that no request waits for. A server that sends more is broken.
	maxStrays = 1000
	// keptBuffer is the largest buffer that is kept for further requests.
	keptBuffer = 64 << 10
)

// Options build a Conn.
type Options struct {
	// MaxValue bounds the values of responses. A larger one ends the connection.
	MaxValue int
	// Stall is how long a connection with requests in flight may go without any response before it is ended.
	Stall time.Duration
	// Observe, if set, is told how long each batch took, even if its caller has given up. Stray, if set, is
	// told of each response that no request waits for.
	Observe func(took time.Duration)
	Stray   func()
}

// Conn is a connection. It is safe for concurrent use.
type Conn struct {
	o    Options
	conn net.Conn
	done sync.WaitGroup
	wake chan struct{} // there is something to write

	mu       sync.Mutex
	next     uint64   // number of the next call
	inflight []*batch // in the order of their requests
	waiting  []byte   // requests to be written
	spare    []byte
	writing  bool // a goroutine writes
	strays   int
	err      error
}

// New begins to use a connection, which it owns from now on.
func New(conn net.Conn, o Options) *Conn {
	c := &Conn{o: o, conn: conn, next: 1, wake: make(chan struct{}, 1)}
	c.done.Go(c.read)
	c.done.Go(c.write)
	return c
}

// Err returns what ended the connection, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Load returns the number of batches in flight.
func (c *Conn) Load() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.inflight)
}

// Close ends the connection and waits for its goroutines.
func (c *Conn) Close() {
	c.fail(ErrClosed)
	c.done.Wait()
}

// Do sends calls and waits for their responses until the deadline. An error is about all calls: the
// connection has ended or is busy, or the time is over. Then the calls have no responses, and will get none.
func (c *Conn) Do(ctx context.Context, deadline time.Time, calls []Call) error {
	if len(calls) == 0 || len(calls) > MaxCalls {
		return fmt.Errorf("a batch of %d calls: expected 1 to %d", len(calls), MaxCalls)
	}
	wait := time.Until(deadline)
	if wait <= 0 {
		return ErrTimeout
	}
	b := batches.Get().(*batch)
	if err := c.begin(b, deadline, calls); err != nil {
		batches.Put(b)
		return err
	}
	b.timer.Reset(wait)
	var gaveUp error
	select {
	case <-b.done:
	case <-b.timer.C:
		gaveUp = ErrTimeout
	case <-ctx.Done():
		gaveUp = ctx.Err()
	}
	b.timer.Stop()
	if gaveUp != nil && c.giveUp(b) {
		return gaveUp
	}
	err := b.err
	b.calls, b.err = nil, nil
	batches.Put(b)
	return err
}

// giveUp leaves a batch to the connection, or reports false if it was completed in the meantime.
func (c *Conn) giveUp(b *batch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-b.done:
		return false
	default:
	}
	for i := range b.calls {
		b.calls[i].reset()
	}
	b.calls = nil
	return true
}

// begin queues a batch, and writes it if no other goroutine writes.
func (c *Conn) begin(b *batch, deadline time.Time, calls []Call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case len(c.inflight) >= maxInFlight || len(c.waiting) > maxWaiting:
		return ErrBusy
	}
	b.first, b.count, b.calls, b.begun = c.next, len(calls), calls, time.Now()
	c.next += uint64(len(calls))
	for i := range calls {
		call := &calls[i]
		call.reset()
		call.Request.Flags.Letters |= meta.Of("O")
		call.Request.Flags.Opaque = b.first + uint64(i)
		call.Request.Size = len(call.Value)
		c.waiting = call.Request.Append(c.waiting)
		if call.Request.Verb == meta.Set {
			c.waiting = append(append(c.waiting, call.Value...), "\r\n"...)
		}
	}
	c.waiting = append(c.waiting, "mn\r\n"...)
	if len(c.inflight) == 0 {
		c.expect()
	}
	c.inflight = append(c.inflight, b)
	if c.writing {
		return nil
	}
	// The caller writes by itself, which saves a switch of goroutines. What others queue in the meantime is
	// left to the goroutine that writes, and so is what the server does not take before the deadline.
	c.writing = true
	if unsent, err := c.send(deadline.Add(writeGrace)); errors.Is(err, os.ErrDeadlineExceeded) {
		c.waiting = append(slices.Clone(unsent), c.waiting...)
	} else if err != nil {
		c.failLocked(fmt.Errorf("%w: %v", ErrClosed, err))
	}
	if c.writing = len(c.waiting) > 0; c.writing {
		c.wake <- struct{}{}
	}
	return nil
}

// expect bounds the time until the next response.
func (c *Conn) expect() { _ = c.conn.SetReadDeadline(time.Now().Add(c.o.Stall)) }

// send writes what waits, without the lock, and returns what it could not write by the deadline, which is
// valid until the next call. The caller holds the lock and has set writing.
func (c *Conn) send(deadline time.Time) (unsent []byte, err error) {
	buf := c.waiting
	c.waiting, c.spare = c.spare[:0], nil
	c.mu.Unlock()
	_ = c.conn.SetWriteDeadline(deadline)
	n, err := c.conn.Write(buf)
	c.mu.Lock()
	if cap(buf) <= keptBuffer {
		c.spare = buf[:0]
	}
	return buf[n:], err
}

// write writes what the callers leave to it.
func (c *Conn) write() {
	for range c.wake {
		c.mu.Lock()
		for len(c.waiting) > 0 && c.err == nil {
			if _, err := c.send(time.Now().Add(c.o.Stall)); err != nil {
				c.failLocked(fmt.Errorf("%w: %v", ErrClosed, err))
			}
		}
		c.writing = false
		ended := c.err != nil
		c.mu.Unlock()
		if ended {
			return
		}
	}
}

// fail ends the connection.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(err)
}

// failLocked ends the connection, and all batches with an error.
func (c *Conn) failLocked(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	_ = c.conn.Close() // what it lost is in err
	for _, b := range c.inflight {
		b.err = err
		b.done <- struct{}{}
	}
	c.inflight, c.waiting = nil, nil
	select {
	case c.wake <- struct{}{}: // so that write ends
	default:
	}
}

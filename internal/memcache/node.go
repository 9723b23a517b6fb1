package memcache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/memcache/meta"
	"github.com/shaledb/shale/internal/memcache/pipe"
	"github.com/shaledb/shale/internal/sketch"
)

var (
	// ErrOut: the server has failed often, and is left alone for a moment.
	ErrOut = errors.New("the memcached server has failed often and is left alone for a moment")
	// ErrNoServer: no server is known yet.
	ErrNoServer = errors.New("no memcached server is known")
	// ErrTooLarge: the value is larger than the server takes. It was not sent.
	ErrTooLarge = errors.New("the value is larger than the memcached server takes")
	// ErrKey: the key is too long, or has spaces or control characters. It was not sent.
	ErrKey = errors.New("not a key of memcached")
)

const (
	// itemOverhead is what an item takes besides its key and value: header, ends, flags, unique number. An item
	// of more than slab_chunk_max, half of the limit by default, has 48 bytes more for each of its chunks.
	itemOverhead = 256
	// patience is how many times the 99th percentile of its latency a server is waited for.
	patience = 4
	// leastWait is waited for any server: less than that is noise of scheduling.
	leastWait = 2 * time.Millisecond
	// leastPatience is waited for a server that is very fast: its machine may pause, and batches differ in size.
	leastPatience = 25 * time.Millisecond
)

// node is one server.
type node struct {
	c    *Client
	name string // as it was given
	addr string // HOST:PORT
	m    *nodeMetrics

	breaker breaker
	out     bool             // the breaker is not closed; guarded by its lock
	latency sketch.Durations // guarded by timed
	timed   sync.Mutex
	itemMax atomic.Int64
	version atomic.Pointer[string]
	// reads and writes have connections of their own: a small response is not to wait for a large value that
	// goes the other way.
	reads  []*line
	writes *line
	turn   atomic.Uint32
	done   sync.WaitGroup // dials
}

func newNode(c *Client, name, addr string) *node {
	n := &node{c: c, name: name, addr: addr, m: c.m.of(addr)}
	n.latency = sketch.Durations{Least: 20 * time.Microsecond, Few: 20, Most: 1000}
	n.breaker.now, n.breaker.changed = time.Now, n.changed
	n.itemMax.Store(1 << 20) // of a server with default settings
	n.writes = &line{n: n}
	for range c.o.Connections {
		n.reads = append(n.reads, &line{n: n})
	}
	return n
}

// changed reports a new state of the breaker. A trial that fails is not reported again.
func (n *node) changed(s State) {
	was := n.out
	n.out = s != Closed
	if n.out == was {
		return
	}
	if !n.out {
		n.m.out.Set(0)
		n.c.o.Logger.Info("a memcached server is used again", "server", n.addr)
		return
	}
	n.m.out.Set(1)
	n.c.o.Logger.Warn("a memcached server fails or is too slow for half of the requests, and is left alone; one request at a time tries it", "server", n.addr)
}

func (n *node) observe(took time.Duration) {
	n.timed.Lock()
	n.latency.Add(took)
	n.timed.Unlock()
	n.m.seconds.Observe(took.Seconds())
}

// wait returns how long a read of the server may take.
func (n *node) wait() time.Duration {
	most := n.c.Most()
	n.timed.Lock()
	p99, ok := n.latency.Quantile(0.99)
	n.timed.Unlock()
	if ok {
		return min(most, max(patience*p99, leastPatience))
	}
	return most
}

// carry sends calls, and sets the error of each that has no answer. A read waits no longer than the server is
// worth.
func (n *node) carry(ctx context.Context, deadline time.Time, calls []Call, write bool) {
	if write {
		n.send(ctx, deadline, n.writes, calls)
		return
	}
	if own := time.Now().Add(n.wait()); own.Before(deadline) {
		deadline = own
	}
	n.send(ctx, deadline, n.reads[int(n.turn.Add(1))%len(n.reads)], calls)
}

// send sends calls in batches.
func (n *node) send(ctx context.Context, deadline time.Time, l *line, calls []Call) {
	for len(calls) > 0 {
		batch := calls[:min(len(calls), pipe.MaxCalls)]
		calls = calls[len(batch):]
		err := n.batch(ctx, deadline, l, batch)
		if err == nil {
			continue
		}
		for i := range batch {
			batch[i].Err = err
		}
	}
}

func (n *node) batch(ctx context.Context, deadline time.Time, l *line, calls []Call) error {
	ok, trial := n.breaker.allow()
	if !ok {
		n.m.results[resultOut].Inc()
		return ErrOut
	}
	conn, err := l.get(ctx, deadline)
	if err == nil {
		err = conn.Do(ctx, deadline, calls)
	}
	switch {
	case err == nil:
		n.breaker.end(succeeded, trial)
		n.m.results[resultAnswered].Inc()
	case blames(err):
		n.breaker.end(failed, trial)
		if errors.Is(err, pipe.ErrTimeout) {
			n.m.results[resultTimeout].Inc()
		} else {
			n.m.results[resultFailed].Inc()
		}
	default:
		n.breaker.end(unknown, trial)
		n.m.results[resultGivenUp].Inc()
	}
	return err
}

// check returns an error if a call cannot be sent to the server.
func (n *node) check(c *Call) error {
	switch {
	case !meta.ValidKey(c.Request.Key):
		return ErrKey
	case c.Request.Verb == meta.Set && int64(len(c.Request.Key)+len(c.Value)+itemOverhead) > n.itemMax.Load():
		return ErrTooLarge
	}
	return nil
}

// close ends all connections and waits for dials.
func (n *node) close() {
	n.writes.close()
	for _, l := range n.reads {
		l.close()
	}
	n.done.Wait()
	n.c.m.forget(n.addr)
}

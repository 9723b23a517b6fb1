package router

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/memcache/hash"
	"github.com/shaledb/shale/internal/memcache/slab"
)

// backend is a server of a pool.
type backend struct {
	pool   string
	server Server
	links  []*link
	c      counters
	log    *ErrorLog
	done   *sync.WaitGroup

	// itemMax is the largest item that the server takes, in bytes; 0: not known. learned is closed when it was
	// asked.
	itemMax   atomic.Int64
	noCAS     atomic.Bool
	learned   chan struct{}
	learnOnce sync.Once

	// owner is the state of the pool, in which it has a number.
	owner atomic.Pointer[state]
	index atomic.Int32
}

func newBackend(pool string, s Server, connections int, log *ErrorLog, done *sync.WaitGroup) *backend {
	b := &backend{pool: pool, server: s, log: log, done: done, learned: make(chan struct{})}
	for range connections {
		b.links = append(b.links, newLink(b))
	}
	return b
}

func (b *backend) timeout() time.Duration { return b.owner.Load().conf.Timeout }

// link returns the connection of a key: the same key has the same one, so that a client reads what it wrote.
func (b *backend) link(key []byte) *link {
	if len(b.links) == 1 {
		return b.links[0]
	}
	return b.links[hash.FNV1a64(key)%uint32(len(b.links))]
}

// open dials a connection that no request waits for.
func (l *link) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil && !l.dialing && !l.closed {
		l.dialing = true
		l.b.done.Go(l.dial)
	}
}

// usualItemMax is the limit of a server without options. What is smaller is sent without asking for the
// limit.
const usualItemMax = 1 << 20

// tooLarge reports whether the server would refuse an item, before any of it is sent.
func (b *backend) tooLarge(r *request) (limit int64, is bool) {
	need := int64(slab.ItemSize(len(r.key), r.size, 0, !b.noCAS.Load()))
	if need <= usualItemMax/2 {
		return 0, false
	}
	limit = b.itemMax.Load()
	if limit == 0 {
		b.links[0].open()
		patience := time.NewTimer(2 * settingsTimeout)
		defer patience.Stop()
		select {
		case <-b.learned:
		case <-patience.C:
		}
		if limit = b.itemMax.Load(); limit == 0 {
			limit = usualItemMax
		}
	}
	return limit, need > limit
}

// refuse finishes a request that was not sent.
func (b *backend) refuse(r *request, err error) {
	b.owner.Load().c.forwardErrors.Add(1)
	r.failWith(err)
	r.finish()
}

// failWith makes the response of a request that failed. It is worded as twemproxy does.
func (r *request) failWith(err error) {
	r.failed = true
	r.resp = append(append(append(r.resp[:0], "SERVER_ERROR "...), reason(err)...), '\r', '\n')
}

// reason is what a client is told of an error.
func reason(err error) string {
	switch kind, errno := class(err); {
	case kind == "timeout":
		return "Connection timed out"
	case errno != 0:
		text := errno.Error()
		return string(text[0]-'a'+'A') + text[1:]
	case kind == "eof":
		return "Connection closed by the server"
	case kind == "protocol":
		return "Invalid argument" // as twemproxy calls it
	}
	return "Connection failed"
}

// answered hands a complete response to its request.
func (b *backend) answered(e entry, hit bool, bytes, now int64) {
	b.c.responses.Add(1)
	b.c.responseBytes.Add(bytes)
	b.owner.Load().ok(int(b.index.Load()))
	if e.r == nil {
		b.c.strays.Add(1)
		return
	}
	b.c.took(e.op, now-e.begun)
	if e.op.values() || e.op == opMetaGet {
		if hit {
			b.c.hits.Add(1)
		} else {
			b.c.misses.Add(1)
		}
	}
	e.r.finish()
}

// ended fails the requests of a connection that has ended, or was not made.
func (b *backend) ended(err error, failed []entry, sent, received int64) {
	kind, errno := class(err)
	if len(failed) == 0 && kind == "closing" {
		return
	}
	switch kind {
	case "eof":
		b.c.eof.Add(1)
	case "timeout":
		b.c.timedOut.Add(1)
	case "closing":
	default:
		b.c.errors.Add(1)
	}
	waiting := b.fail(err, failed)
	b.log.write(Event{Pool: b.pool, Backend: b.server.Display, Class: kind, Errno: int(errno), Text: err.Error(), Sent: sent, Received: received, Failed: waiting}, first(failed))
	b.owner.Load().failure(int(b.index.Load())) // first: the next request of a client sees the ejection
	b.handBack(failed)
}

// fail makes the responses of failed requests, and returns how many there are.
func (b *backend) fail(err error, failed []entry) (n int) {
	for _, e := range failed {
		if e.r != nil {
			n++
			e.r.failWith(err)
		}
	}
	return n
}

// handBack hands failed requests back: what they have is not to be read after that.
func (b *backend) handBack(failed []entry) {
	for _, e := range failed {
		if e.r != nil {
			e.r.finish()
		}
	}
}

func first(failed []entry) *request {
	for _, e := range failed {
		if e.r != nil {
			return e.r
		}
	}
	return nil
}

// late fails requests whose responses did not come in time.
func (b *backend) late(failed []entry, sent, received int64) {
	b.c.timedOut.Add(1)
	b.fail(errTimeout, failed)
	b.log.write(Event{Pool: b.pool, Backend: b.server.Display, Class: "timeout", Errno: int(errTimeout), Text: "no response in time", Sent: sent, Received: received, Failed: len(failed)}, failed[0].r)
	b.owner.Load().failure(int(b.index.Load())) // first: the next request of a client sees the ejection
	b.handBack(failed)
}

func (b *backend) close() {
	for _, l := range b.links {
		l.close()
	}
}

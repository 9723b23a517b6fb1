package router

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/shaledb/shale/internal/memcache/stats"
)

const (
	// maxQueue bounds the requests of a connection that wait for responses, and maxUnsent the bytes that wait to
	// be sent. A client waits for room.
	maxQueue  = 16 << 10
	maxUnsent = 4 << 20
	// keptBuffer is the largest buffer that is kept for later.
	keptBuffer = 256 << 10
	// maxAnswerLine is the longest line of a response.
	maxAnswerLine = 8 << 10
	// dialTimeout bounds a dial in a pool without a timeout, and settingsTimeout the question for the limit of
	// items.
	dialTimeout     = 10 * time.Second
	settingsTimeout = time.Second
)

var (
	errTimeout  = syscall.ETIMEDOUT
	errProtocol = errors.New("unexpected response")
	errClosing  = errors.New("the router has dropped the server")
)

// entry is a request that a server has not responded to. Without a request, its response is passed over.
type entry struct {
	r     *request
	op    op
	begun int64
	sent  int
}

// link is one connection to a server, which is dialled when a request needs it.
type link struct {
	b *backend

	mu      sync.Mutex
	room    sync.Cond
	conn    net.Conn // nil: there is none
	dialing bool
	closed  bool
	writing bool
	unsent  []byte
	spare   []byte
	queue   []entry // a ring
	head    int
	queued  int
	cause   error // why the connection was ended from this side

	read, written atomic.Int64 // bytes of this connection
	lastRead      atomic.Int64 // nanoseconds
	reading       atomic.Bool  // a response has begun and is not complete
}

func newLink(b *backend) *link {
	l := &link{b: b, queue: make([]entry, 64)}
	l.room.L = &l.mu
	return l
}

// push queues a request and its bytes. It dials if there is no connection. The request is finished if that
// is not possible.
func (l *link) push(r *request, body []byte) {
	l.mu.Lock()
	for !l.closed && (l.queued >= maxQueue || len(l.unsent) >= maxUnsent) {
		l.room.Wait()
	}
	if l.closed {
		l.mu.Unlock()
		l.b.refuse(r, errClosing)
		return
	}
	before := len(l.unsent)
	l.unsent = appendRequest(l.unsent, r, body)
	sent := len(l.unsent) - before
	if l.queued == len(l.queue) {
		l.grow()
	}
	l.queue[(l.head+l.queued)&(len(l.queue)-1)] = entry{r, r.op, r.begun, sent}
	l.queued++
	if l.conn == nil && !l.dialing {
		l.dialing = true
		l.b.done.Go(l.dial)
	}
	l.mu.Unlock()
	l.b.c.requests.Add(1)
	l.b.c.requestBytes.Add(int64(sent))
}

func (l *link) grow() {
	bigger := make([]entry, 2*len(l.queue))
	for i := range l.queued {
		bigger[i] = l.queue[(l.head+i)&(len(l.queue)-1)]
	}
	l.queue, l.head = bigger, 0
}

func appendRequest(b []byte, r *request, body []byte) []byte {
	if r.op.values() {
		b = append(append(b, opNames[r.op]...), ' ')
		if r.extra != nil {
			b = append(append(b, r.extra...), ' ')
		}
		for i, key := range r.keys {
			if i > 0 {
				b = append(b, ' ')
			}
			b = append(b, key...)
		}
	} else {
		b = append(b, r.line...)
	}
	b = append(b, '\r', '\n')
	if r.size >= 0 {
		b = append(b, body...)
	}
	return b
}

// flush sends what is unsent, unless another goroutine does.
func (l *link) flush() {
	l.mu.Lock()
	if l.writing || l.conn == nil {
		l.mu.Unlock()
		return
	}
	l.writing = true
	for len(l.unsent) > 0 && l.conn != nil {
		out, conn := l.unsent, l.conn
		l.unsent, l.spare = l.spare[:0], nil
		l.mu.Unlock()
		if t := l.b.timeout(); t > 0 {
			_ = conn.SetWriteDeadline(time.Now().Add(t)) // an error shows at the write
		}
		n, err := conn.Write(out)
		l.written.Add(int64(n))
		l.mu.Lock()
		if cap(out) <= keptBuffer {
			l.spare = out[:0]
		}
		l.room.Broadcast()
		if err != nil && l.conn == conn {
			l.end(err)
			break
		}
	}
	l.writing = false
	l.mu.Unlock()
}

// end ends the connection; its reader fails the requests. The caller holds the lock.
func (l *link) end(cause error) {
	if l.cause == nil {
		l.cause = cause
	}
	if l.conn != nil {
		_ = l.conn.Close() // what is wrong with it is in cause
	}
}

// dial connects, and reads responses until the connection ends.
func (l *link) dial() {
	timeout := l.b.timeout()
	if timeout == 0 {
		timeout = dialTimeout
	}
	network := "tcp"
	if strings.HasPrefix(l.b.server.Addr, "/") {
		network = "unix"
	}
	conn, err := net.DialTimeout(network, l.b.server.Addr, timeout)
	if err == nil && !l.b.learn(conn) {
		// What it has been asked may still be answered, and must not be taken for another response.
		_ = conn.Close()
		conn, err = net.DialTimeout(network, l.b.server.Addr, timeout)
	}
	l.mu.Lock()
	l.dialing = false
	if err == nil && l.closed {
		_ = conn.Close() // it was not used
		err = errClosing
	}
	if err != nil {
		failed := l.take()
		l.mu.Unlock()
		l.b.ended(err, failed, 0, 0)
		return
	}
	l.conn, l.cause = conn, nil
	l.read.Store(0)
	l.written.Store(0)
	l.lastRead.Store(time.Now().UnixNano())
	l.mu.Unlock()
	l.b.c.connections.Add(1)
	l.b.done.Go(l.flush)
	current, err := l.responses(conn)
	l.mu.Lock()
	_ = conn.Close() // what is wrong with it is in err
	if l.cause != nil {
		err = l.cause
	}
	l.conn = nil
	failed := l.take()
	l.mu.Unlock()
	l.b.c.connections.Add(-1)
	if current.op != opUnknown {
		failed = append([]entry{current}, failed...)
	}
	l.b.ended(err, failed, l.written.Load(), l.read.Load())
}

// take removes all requests. The caller holds the lock.
func (l *link) take() (all []entry) {
	for i := range l.queued {
		all = append(all, l.queue[(l.head+i)&(len(l.queue)-1)])
	}
	clear(l.queue)
	l.head, l.queued, l.unsent = 0, 0, l.unsent[:0]
	l.room.Broadcast()
	return all
}

// next removes the oldest request.
func (l *link) next() (entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queued == 0 {
		return entry{}, false
	}
	e := l.queue[l.head]
	l.queue[l.head] = entry{}
	l.head = (l.head + 1) & (len(l.queue) - 1)
	if l.queued--; l.queued == maxQueue-1 {
		l.room.Broadcast()
	}
	return e, true
}

// expire fails requests that have waited for too long. Their responses, if they still come, are passed over:
// the requests after them are not at fault. A connection from which nothing comes at all is ended, and one
// that has stopped in the middle of a response.
func (l *link) expire(now time.Time, timeout time.Duration) {
	l.mu.Lock()
	var late []entry
	for i := range l.queued {
		e := &l.queue[(l.head+i)&(len(l.queue)-1)]
		if now.UnixNano()-e.begun < int64(timeout) {
			break
		}
		if e.r != nil {
			late = append(late, *e)
			e.r = nil
		}
	}
	silent := now.UnixNano() - l.lastRead.Load()
	stalled := l.queued > 0 && l.queue[l.head].r == nil && silent > int64(max(4*timeout, time.Second))
	if l.conn != nil && (stalled || l.reading.Load() && silent > int64(timeout)) {
		l.end(errTimeout)
	}
	written, read := l.written.Load(), l.read.Load()
	l.mu.Unlock()
	if late != nil {
		l.b.late(late, written, read)
	}
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.end(errClosing)
	l.room.Broadcast()
	l.mu.Unlock()
}

// learn asks a server for the largest item that it takes, and reports whether the connection can be used
// after that. The limit of a server that does not say it is not known.
func (b *backend) learn(conn net.Conn) (usable bool) {
	c := stats.On(conn, b.server.Addr, settingsTimeout)
	settings, err := c.Ask("settings")
	if err == nil {
		m := settings.Map()
		if n, err := strconv.ParseInt(m["item_size_max"], 10, 64); err == nil && n > 0 {
			b.itemMax.Store(n)
		}
		b.noCAS.Store(m["cas_enabled"] == "no")
	}
	_ = conn.SetDeadline(time.Time{}) // an error shows at the next use
	b.learnOnce.Do(func() { close(b.learned) })
	return err == nil || errors.Is(err, stats.ErrUnsupported)
}

// responses reads responses and hands them to their requests, until an error. It returns the request whose
// response was not complete.
func (l *link) responses(conn net.Conn) (current entry, err error) {
	in := reader{conn: conn, l: l, buf: make([]byte, 64<<10)}
	for {
		// The first byte of a response is awaited before its request is taken, so that it can expire.
		if err := in.fill(1); err != nil {
			return entry{}, err
		}
		e, ok := l.next()
		if !ok {
			return entry{}, fmt.Errorf("%w: %.60q, and no request waits", errProtocol, in.buf[in.from:in.to])
		}
		began := l.read.Load() - int64(in.to-in.from)
		l.reading.Store(true)
		hit, err := in.response(e)
		l.reading.Store(false)
		if err != nil {
			return e, err
		}
		l.b.answered(e, hit, l.read.Load()-int64(in.to-in.from)-began, l.lastRead.Load())
	}
}

// class names the kind of an error for the log and the counters.
func class(err error) (class string, errno syscall.Errno) {
	errors.As(err, &errno)
	var timeout net.Error
	switch {
	case errors.Is(err, errProtocol):
		return "protocol", errno
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "eof", errno
	case errno == syscall.ECONNREFUSED:
		return "refused", errno
	case errno == syscall.ECONNRESET, errno == syscall.EPIPE:
		return "reset", errno
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout", syscall.ETIMEDOUT
	case errors.Is(err, errClosing):
		return "closing", errno
	}
	return "other", errno
}

package graphite

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// The size of a connection's read buffer, in bytes: what it begins with, and what a busy one grows to, beyond which a
// system call costs nothing per line any more.
const (
	minBuffer = 8 << 10
	maxBuffer = 512 << 10
)

// tcpLinger lets the lines that come within it share a push. Nobody waits for an answer; at 100,000 points/s of four
// connections it saves half of the syncs and a third of the CPU, and more makes little difference.
const tcpLinger = 50 * time.Millisecond

// buffers is the memory that read buffers may take beyond their first size.
type buffers struct{ free atomic.Int64 }

func (b *buffers) take(n int) bool {
	if b.free.Add(int64(-n)) < 0 {
		b.free.Add(int64(n))
		return false
	}
	return true
}

// conn reads one connection.
type conn struct {
	l      *Listener
	nc     net.Conn
	parser *parser
	gather *gather

	buf []byte
	n   int // bytes of buf that are no whole line yet
	// skipping: the rest of a line that was too long is being passed over.
	skipping bool
	// quiet counts reads in a row that needed little of the buffer.
	quiet int
}

// connection serves a connection until it ends, and returns when its rows are durable.
func (l *Listener) connection(nc net.Conn) {
	peer := nc.RemoteAddr().String()
	c := &conn{l: l, nc: nc, parser: l.newParser(peer), gather: newGather(l, l.metrics.tcp, 0, tcpLinger), buf: make([]byte, minBuffer)}
	l.metrics.buffers.Add(minBuffer)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.gather.run(l.ctx)
	}()
	c.read()
	c.gather.end()
	l.buffers.free.Add(int64(len(c.buf) - minBuffer))
	l.metrics.buffers.Sub(float64(len(c.buf)))
	c.buf = nil
	<-done
}

func (l *Listener) newParser(peer string) *parser {
	p := &parser{now: l.o.Sink.Now, maxLine: l.o.MaxLineBytes}
	p.keys.Seed, p.keys.Signal = l.o.Sink.Seed(), model.Metrics
	p.complain = func(line []byte, why string) { l.log.badLine(peer, line, why) }
	return p
}

// read parses what comes until the connection ends or fails.
func (c *conn) read() {
	for {
		c.l.setDeadline(c.nc, time.Time{})
		n, err := c.nc.Read(c.buf[c.n:])
		c.l.metrics.tcp.bytes.Add(float64(n))
		filled := c.n+n == len(c.buf)
		if n > 0 && !c.take(n) {
			return
		}
		if err != nil {
			c.last(err)
			return
		}
		c.adapt(n, filled)
	}
}

// last handles what stands behind the last newline. At the end of a stream it is a line; a connection that broke, or
// was closed here, has left half a line behind, whose number may be shorter than was meant.
func (c *conn) last(err error) {
	switch {
	case c.n == 0 || c.skipping:
	case errors.Is(err, io.EOF):
		c.deliver(c.buf[:c.n])
	default:
		c.parser.counts.lines++
		c.parser.bad(c.buf[:c.n], "the connection ended inside the line")
		c.l.count(c.l.metrics.tcp, c.parser)
	}
}

// setDeadline sets until when a connection is read, which is that of Close when that has begun. The zero time is that
// of an idle connection.
func (l *Listener) setDeadline(nc net.Conn, by time.Time) {
	if idle := l.o.IdleTimeout; idle > 0 && by.IsZero() {
		by = time.Now().Add(idle)
	}
	_ = nc.SetReadDeadline(by)
	// Close sets its deadline after stopBy, so that whichever comes second here is right.
	if by := l.stopBy.Load(); by != 0 {
		_ = nc.SetReadDeadline(time.Unix(0, by))
	}
}

// take handles n more bytes in the buffer. It returns false if the listener gives up.
func (c *conn) take(n int) bool {
	begin, end := 0, c.n+n
	last := bytes.LastIndexByte(c.buf[c.n:end], '\n')
	if last >= 0 {
		last += c.n
		if c.skipping {
			begin = bytes.IndexByte(c.buf[:end], '\n') + 1
			c.skipping = false
		}
		if begin <= last && !c.deliver(c.buf[begin:last+1]) {
			return false
		}
		begin = last + 1
	}
	c.n = copy(c.buf, c.buf[begin:end])
	if c.skipping {
		c.n = 0
	} else if c.n > c.l.o.MaxLineBytes {
		c.parser.counts.lines++
		c.parser.bad(c.buf[:c.n], "the line is too long")
		c.l.count(c.l.metrics.tcp, c.parser)
		c.skipping, c.n = true, 0
	}
	return true
}

// deliver parses whole lines, when there is memory for their rows. Until then the connection is not read, which is
// what holds its sender back.
func (c *conn) deliver(lines []byte) bool {
	rows := countLines(lines)
	need := int64(len(lines) + rows*rowBytes)
	if most := c.l.o.Sink.Limits().MaxInflightBytes; most > 0 {
		// Chunks are smaller than this anyway; asking for more than there can be would never succeed.
		need = min(need, most/2)
	}
	grant, err := c.l.o.Sink.AdmitWait(c.l.ctx, c.l.tenant, need)
	if err != nil {
		c.l.lost(c.l.metrics.tcp, rows, err)
		return false
	}
	c.parser.rest = lines
	whole := c.gather.add(c.l.ctx, c.parser, grant)
	c.l.count(c.l.metrics.tcp, c.parser)
	if !whole {
		c.l.lost(c.l.metrics.tcp, countLines(c.parser.rest), c.l.ctx.Err())
	}
	return whole
}

// countLines counts the lines of b, of which the last one needs no newline.
func countLines(b []byte) int {
	n := bytes.Count(b, []byte{'\n'})
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// adapt makes the buffer larger when a read filled it and smaller when it has long been too large.
func (c *conn) adapt(n int, filled bool) {
	switch {
	case filled:
		c.quiet = 0
		if size := min(2*len(c.buf), maxBuffer); size > len(c.buf) {
			c.resize(size)
		}
	case n < len(c.buf)/8 && len(c.buf) > minBuffer:
		if c.quiet++; c.quiet == 64 && c.n <= minBuffer/2 {
			c.resize(minBuffer)
		}
	default:
		c.quiet = 0
	}
	// A line may be longer than the first buffer. This much is every connection's, whatever the others take.
	if c.n == len(c.buf) {
		c.resizeAlways(2 * len(c.buf))
	}
}

// resize gives the buffer another size, if the memory is there.
func (c *conn) resize(size int) {
	if more := size - len(c.buf); more < 0 {
		c.l.buffers.free.Add(int64(-more))
	} else if !c.l.buffers.take(more) {
		return
	}
	c.move(size)
}

func (c *conn) resizeAlways(size int) {
	c.l.buffers.free.Add(int64(len(c.buf) - size))
	c.move(size)
}

func (c *conn) move(size int) {
	c.l.metrics.buffers.Add(float64(size - len(c.buf)))
	buf := make([]byte, size)
	c.n = copy(buf, c.buf[:c.n])
	c.buf = buf
	c.quiet = 0
}

// count hands the parser's counts on.
func (l *Listener) count(t *transport, p *parser) {
	t.lines.Add(float64(p.counts.lines))
	for _, c := range []struct {
		n      int
		reason string
	}{{p.counts.bad, t.badReason}, {p.counts.nan, write.ReasonNaN}, {p.counts.badTime, write.ReasonTimeRange}} {
		if c.n > 0 {
			l.o.Sink.Discard(c.reason, c.n)
		}
	}
	t.bad.Add(float64(p.counts.bad))
	p.counts = counts{}
}

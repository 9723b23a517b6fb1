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

// A connection's read buffer starts with minBuffer bytes and grows to maxBuffer while the connection is
// busy. Beyond that size, system calls cost next to nothing per line.
const (
	minBuffer = 8 << 10
	maxBuffer = 512 << 10
)

// tcpLinger lets lines that arrive within it share a push. No sender waits for a response, so the delay
// is free, and it saves many syncs.
const tcpLinger = 50 * time.Millisecond

// buffers limits the memory that read buffers use beyond their first size.
type buffers struct{ free atomic.Int64 }

func (b *buffers) tryReserve(n int) bool {
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
	from   *sender
	parser *parser
	queue  *queue

	buf []byte
	n   int // bytes of buf that hold an incomplete line
	// skipping means that the rest of a line that was too long is being dropped.
	skipping bool
	// quiet counts consecutive reads that filled little of the buffer.
	quiet int
}

// serveLines serves a plaintext connection until it ends, and returns when its rows are durable.
func (l *Listener) serveLines(from *sender) {
	nc := from.nc
	c := &conn{
		l: l, nc: nc, from: from, parser: l.newParser(nc.RemoteAddr().String(), from.tenant),
		queue: newQueue(l, from.tenant, l.metrics.tcp, 0, tcpLinger), buf: make([]byte, minBuffer),
	}
	peerOf(nc).queue.Store(c.queue)
	peerOf(nc).ended(false)
	l.metrics.buffers.Add(minBuffer)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.queue.run(l.ctx)
	}()
	c.read()
	c.queue.close()
	l.buffers.free.Add(int64(len(c.buf) - minBuffer))
	l.metrics.buffers.Sub(float64(len(c.buf)))
	c.buf = nil
	<-done
	l.syncRules()
}

// syncRules makes durable what rules have kept of points, which may not be stored themselves. Some senders,
// such as the relay of another Shale, take the end of a connection for a confirmation.
func (l *Listener) syncRules() {
	if l.o.Rules != nil {
		// Its owner counts and logs an error. The points themselves are stored nevertheless.
		_ = l.o.Rules.Sync()
	}
}

func (l *Listener) newParser(peer, tenant string) *parser {
	p := &parser{tenant: tenant, now: l.o.Sink.Now, maxLine: l.o.MaxLineBytes, rules: l.o.Rules, ruled: map[string]int{}}
	p.keys.Seed, p.keys.Signal = l.o.Sink.Seed(), model.Metrics
	p.reportBad = func(line []byte, why string) { l.log.badLine(peer, line, why) }
	return p
}

// read parses lines until the connection ends or fails.
func (c *conn) read() {
	for {
		c.l.setDeadline(c.nc, time.Time{})
		n, err := c.nc.Read(c.buf[c.n:])
		c.l.metrics.tcp.bytes.Add(float64(n))
		filled := c.n+n == len(c.buf)
		if n > 0 && !c.consume(n) {
			return
		}
		if err != nil {
			c.finish(err)
			return
		}
		c.adapt(n, filled)
	}
}

// finish handles the bytes after the last newline. If the sender closed the stream, they are a line,
// unless they may be cut inside their time. If the connection broke or was closed here, they may be cut
// inside any number, so they are dropped.
func (c *conn) finish(err error) {
	why := "the connection ended in the middle of the line"
	switch {
	case c.n == 0 || c.skipping:
		return
	case errors.Is(err, io.EOF):
		if !c.parser.mayBeCut(c.buf[:c.n]) {
			c.deliver(c.buf[:c.n])
			return
		}
		why = "the last line has no newline and a time of less than ten digits: it may be cut"
	}
	c.parser.counts.lines++
	c.parser.bad(c.buf[:c.n], why)
	c.l.count(c.l.metrics.tcp, c.parser)
}

// mayBeCut reports whether the time of a line, its last field, may have lost digits. It has ten digits
// since September 2001, so a cut one is earlier.
func (p *parser) mayBeCut(line []byte) bool {
	_, rest := token(line)
	_, rest = token(rest)
	stamp, _ := token(rest)
	seconds, ok := number(stamp, &p.scratch)
	return ok && seconds >= 0 && seconds < 1e9
}

// setDeadline sets the read deadline of a connection. The zero time stands for the idle timeout. Once
// Close has begun, its deadline applies instead.
func (l *Listener) setDeadline(nc net.Conn, by time.Time) {
	if idle := l.o.IdleTimeout; idle > 0 && by.IsZero() {
		by = time.Now().Add(idle)
	}
	_ = nc.SetReadDeadline(by)
	// Close stores stopBy before it sets its own deadline, so whichever of the two runs last sets the
	// right one.
	if by := l.stopBy.Load(); by != 0 {
		_ = nc.SetReadDeadline(time.Unix(0, by))
	}
}

// consume handles n more bytes in the buffer. It returns false if the connection must end.
func (c *conn) consume(n int) bool {
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
	if last >= 0 {
		peerOf(c.nc).ended(c.n > 0)
	}
	if c.skipping {
		c.n = 0
	} else if c.n > c.l.o.MaxLineBytes {
		c.parser.counts.lines++
		c.parser.bad(c.buf[:c.n], tooLongLine)
		c.l.count(c.l.metrics.tcp, c.parser)
		c.skipping, c.n = true, 0
	}
	return true
}

// deliver parses whole lines once there is memory for their rows. While it waits the connection is not
// read, which slows the sender down.
func (c *conn) deliver(lines []byte) bool {
	rows := countLines(lines)
	if err := c.from.check(); err != nil {
		c.l.lost(c.from.tenant, c.l.metrics.tcp, rows, err)
		return false
	}
	need := int64(len(lines) + rows*rowBytes)
	if most := c.l.o.Sink.Limits(c.from.tenant).MaxInflightBytes; most > 0 {
		// Waiting for more than the whole budget would never end. Chunks are smaller than this anyway.
		need = min(need, most/2)
	}
	grant, err := c.l.o.Sink.AdmitWait(c.l.ctx, c.from.tenant, need)
	if err != nil {
		c.l.lost(c.from.tenant, c.l.metrics.tcp, rows, err)
		return false
	}
	c.parser.rest = lines
	whole := c.queue.add(c.l.ctx, c.parser, grant)
	c.l.count(c.l.metrics.tcp, c.parser)
	if !whole {
		c.l.lost(c.from.tenant, c.l.metrics.tcp, countLines(c.parser.rest), c.l.ctx.Err())
	}
	return whole
}

// countLines counts the lines of b. The last one needs no newline.
func countLines(b []byte) int {
	n := bytes.Count(b, []byte{'\n'})
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// adapt grows the buffer when a read filled it, and shrinks it when it has been too large for many
// reads.
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
	// A line may be longer than the first buffer. A connection always gets room for one line, even
	// beyond the limit.
	if c.n == len(c.buf) {
		c.resizeAlways(2 * len(c.buf))
	}
}

// resize changes the size of the buffer if the limit for all buffers allows it.
func (c *conn) resize(size int) {
	if more := size - len(c.buf); more < 0 {
		c.l.buffers.free.Add(int64(-more))
	} else if !c.l.buffers.tryReserve(more) {
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

// count adds the parser's counts to the metrics and resets them.
func (l *Listener) count(t *transport, p *parser) {
	t.lines.Add(float64(p.counts.lines))
	for _, c := range []struct {
		n      int
		reason string
	}{{p.counts.bad, t.badReason}, {p.counts.nan, write.ReasonNaN}, {p.counts.badTime, write.ReasonTimeRange}} {
		if c.n > 0 {
			l.o.Sink.Discard(p.tenant, c.reason, c.n)
		}
	}
	if n := p.counts.nan; n > 0 {
		// Agents send NaN all the time for what they cannot measure, so a line a minute is enough.
		l.o.Sink.LogRefusal(p.tenant, write.ReasonNaN, write.Counts{Samples: n}, "the value is NaN: "+string(p.firstNaN))
	}
	for reason, n := range p.ruled {
		l.o.Sink.Discard(p.tenant, reason, n)
	}
	clear(p.ruled)
	t.bad.Add(float64(p.counts.bad))
	p.counts = counts{}
}

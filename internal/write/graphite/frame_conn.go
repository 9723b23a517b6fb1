package graphite

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite/pickle"
)

// Reasons why a pickle is lost: values of the label reason of shale_graphite_lost_pickles_total.
const (
	tooLong     = "too_long"
	tooSlow     = "too_slow"
	cutOff      = "cut_off"
	undecodable = "undecodable"
	stopped     = "stopped"
	revoked     = "revoked"
)

// reasonBadPoint is the reason under which unreadable points of pickles are discarded.
const reasonBadPoint = "bad_item"

// frames are what one protocol of frames has of its own. A frame is a length in four bytes and its content.
type frames struct {
	what      string // a frame, in errors
	transport *transport
	received  prometheus.Counter
	lost      *prometheus.CounterVec
	// decode decodes a frame and delivers its points. It returns false if the listener is stopping.
	decode func(c *frameConn, in []byte) bool
}

// framePoints are those of a decoded frame. They are delivered in slices.
type framePoints interface {
	feeder
	nextSlice(most int) (n int, bytes int64)
	take(n int)
	left() int
}

// frameConn reads one connection of a protocol of frames.
type frameConn struct {
	*frames
	l        *Listener
	nc       net.Conn
	from     *sender
	peer     string
	r        *bufio.Reader
	parser   *parser
	queue    *queue
	pickled  pickledPoints
	protobuf protobufPoints
	reserved reservation
	// deadline is the deadline of the frame that is being read; zero between frames.
	deadline time.Time
}

// serveFrames serves a connection until it ends, and returns when its rows are durable.
func (l *Listener) serveFrames(f *frames, from *sender) {
	nc := from.nc
	c := &frameConn{
		frames: f, l: l, nc: nc, from: from, peer: nc.RemoteAddr().String(),
		queue: newQueue(l, from.tenant, f.transport, 0, 0), reserved: reservation{l: l, tenant: from.tenant},
	}
	c.parser = l.newParser("", from.tenant)
	c.parser.reportBad = func(item []byte, why string) { l.log.badPoint(c.what, c.peer, item, why) }
	c.r = bufio.NewReaderSize(c, minBuffer)
	peerOf(nc).queue.Store(c.queue)
	l.metrics.buffers.Add(minBuffer)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.queue.run(l.ctx)
	}()
	for c.readFrame() {
	}
	c.queue.close()
	l.metrics.buffers.Sub(minBuffer)
	c.r = nil
	<-done
	l.syncRules()
}

// Read reads from the connection and sets its deadline. It fills the buffered reader.
func (c *frameConn) Read(b []byte) (int, error) {
	c.l.setDeadline(c.nc, c.deadline)
	n, err := c.nc.Read(b)
	c.transport.bytes.Add(float64(n))
	return n, err
}

// maxFrame returns the length of the longest pickle. The rest of the budget is for decoding and for the
// rows.
func (l *Listener) maxFrame() int64 {
	most := int64(l.o.MaxFrameBytes)
	if all := l.o.Sink.Limits(model.DefaultTenant).MaxInflightBytes; all > 0 {
		most = min(most, all/16)
	}
	return most
}

// maxDecoding returns the memory that decoding a pickle of n bytes may use.
func (l *Listener) maxDecoding(n int64) int64 {
	most := 16*n + firstFrameBytes
	if all := l.o.Sink.Limits(model.DefaultTenant).MaxInflightBytes; all > 0 {
		most = min(most, all/4)
	}
	return most
}

// readFrame reads one frame. It returns false when the connection must be closed. As with carbon, a pickle
// that cannot be decoded is lost alone, since the length tells where the next frame begins.
func (c *frameConn) readFrame() (more bool) {
	c.deadline = time.Time{}
	peerOf(c.nc).ended(c.r.Buffered() > 0)
	head, err := c.r.Peek(4)
	if err != nil {
		if len(head) > 0 {
			c.lose(c.lossReason(err), fmt.Errorf("reading the length of a %s: %w", c.what, err), head)
		}
		return false
	}
	n := int64(binary.BigEndian.Uint32(head))
	if most := c.l.maxFrame(); n > most {
		c.lose(tooLong, c.tooLongError(head, n, most), head)
		return false
	}
	if _, err := c.r.Discard(4); err != nil {
		return false
	}
	c.deadline = time.Now().Add(c.l.o.FrameTimeout)
	defer c.reserved.release()
	if n <= minBuffer {
		in, err := c.r.Peek(int(n))
		if err != nil {
			c.lose(c.lossReason(err), err, in)
			return false
		}
		more = c.frame(in)
		_, err = c.r.Discard(int(n))
		return more && err == nil
	}
	large := c.l.frameBuffers.get(n > maxSmall)
	defer c.l.frameBuffers.put(large)
	if err := c.receive(large, int(n)); err != nil {
		c.lose(c.lossReason(err), err, large.b)
		return false
	}
	return c.frame(large.b)
}

// receive reads a frame of n bytes. It reserves more memory only after the bytes that fill the present
// buffer have arrived.
func (c *frameConn) receive(b *frameBuffer, n int) error {
	if _, err := c.r.Peek(minBuffer); err != nil {
		return err
	}
	if had := b.memory(); had > 0 {
		if err := c.reserved.reserve(int64(had)); err != nil {
			return err
		}
	}
	for len(b.b) < n {
		if len(b.b) == cap(b.b) {
			waited := c.reserved.waited
			if err := b.grow(n, &c.reserved); err != nil {
				return err
			}
			c.deadline = c.deadline.Add(c.reserved.waited - waited)
		}
		k, err := c.r.Read(b.b[len(b.b):min(n, cap(b.b))])
		b.b = b.b[:len(b.b)+k]
		if err != nil && len(b.b) < n {
			return err
		}
	}
	return nil
}

// lossReason returns the loss reason for a read error.
func (c *frameConn) lossReason(err error) string {
	switch {
	case errors.Is(err, model.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) && c.l.stopBy.Load() != 0:
		return stopped
	case errors.Is(err, os.ErrDeadlineExceeded) && !peerOf(c.nc).gaveWay.Load():
		return tooSlow
	}
	return cutOff
}

func (f *frames) tooLongError(head []byte, n, most int64) error {
	hint := ""
	if !slices.ContainsFunc(head, func(c byte) bool { return c < ' ' || c > '~' }) {
		hint = "; is a plaintext sender using the " + f.what + " port?"
	}
	return fmt.Errorf("%w: graphite: the sender announced a %s of %d bytes, the limit is %d (limit: a 16th of limits.inflight-bytes, at most 16 MiB)%s",
		model.ErrInvalid, f.what, n, most, hint)
}

// frame handles the content of a frame.
func (c *frameConn) frame(in []byte) bool {
	if err := c.from.check(); err != nil {
		c.lose(revoked, err, nil)
		return false
	}
	c.received.Inc()
	return c.decode(c, in)
}

// lose counts a lost frame. The number of its points is unknown.
func (c *frameConn) lose(why string, err error, begin []byte) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	c.lost.WithLabelValues(why).Inc()
	c.l.log.badFrame(c.what, c.peer, why, err, begin)
}

// decodePickle decodes a pickle and delivers its points.
func decodePickle(c *frameConn, in []byte) bool {
	d := c.l.decoders.get(len(in) > maxSmall/4)
	defer c.l.decoders.put(d)
	v, err := d.decode(in, &c.reserved, c.l.maxDecoding(int64(len(in))))
	switch {
	case errors.Is(err, model.ErrInvalid):
		c.lose(undecodable, err, in)
		return true
	case err != nil:
		c.lose(stopped, err, in)
		return false
	case v.Kind() != pickle.List && v.Kind() != pickle.Tuple:
		c.lose(undecodable, fmt.Errorf("%w: pickle: expected a list of points, got %s", model.ErrInvalid, v.Kind()), in)
		return true
	}
	c.pickled = pickledPoints{p: c.parser, d: &d.d, e: d.d.Elements(v)}
	return c.deliver(&c.pickled, d.d.Len(v))
}

// deliver adds n points once there is memory for their rows. While it waits the connection is not read,
// which slows the sender down.
func (c *frameConn) deliver(p framePoints, n int) bool {
	for n > 0 {
		k, need := p.nextSlice(n)
		if most := c.l.o.Sink.Limits(c.from.tenant).MaxInflightBytes; most > 0 {
			// Waiting for more than the whole budget would never end.
			need = min(need, most/2)
		}
		grant, err := c.reserved.grant(need)
		if err != nil {
			c.l.lost(c.from.tenant, c.transport, n, err)
			return false
		}
		p.take(k)
		whole := c.queue.add(c.l.ctx, p, grant)
		c.l.count(c.transport, c.parser)
		n -= k
		if !whole {
			c.l.lost(c.from.tenant, c.transport, n+p.left(), c.l.ctx.Err())
			return false
		}
	}
	if c.reserved.overBudget {
		// The rows are beyond the budget too, and other frames wait for the last resort.
		c.queue.drain(c.l.ctx)
	}
	return true
}

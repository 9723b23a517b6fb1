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

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite/pickle"
)

// Why a pickle is lost. They are the values of the label reason of shale_graphite_lost_pickles_total.
const (
	tooLong     = "too_long"
	tooSlow     = "too_slow"
	cutOff      = "cut_off"
	undecodable = "undecodable"
	stopped     = "stopped"
)

// reasonBadItem is the reason for which items of pickles are discarded.
const reasonBadItem = "bad_item"

// pickleConn reads one connection of pickles: frames of a length, of four bytes, big-endian, and a pickle.
type pickleConn struct {
	l      *Listener
	nc     net.Conn
	peer   string
	r      *bufio.Reader
	parser *parser
	gather *gather
	items  items
	lease  lease
	// by is when the frame that is being read must be there; zero: none is.
	by time.Time
}

// pickles serves a connection of pickles until it ends, and returns when its rows are durable.
func (l *Listener) pickles(nc net.Conn) {
	c := &pickleConn{l: l, nc: nc, peer: nc.RemoteAddr().String(), gather: newGather(l, l.metrics.pickle, 0, 0), lease: lease{l: l}}
	c.parser = l.newParser("")
	c.parser.complain = func(item []byte, why string) { l.log.badItem(c.peer, item, why) }
	c.r = bufio.NewReaderSize(c, minBuffer)
	l.metrics.buffers.Add(minBuffer)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.gather.run(l.ctx)
	}()
	for c.frame() {
	}
	c.gather.end()
	l.metrics.buffers.Sub(minBuffer)
	c.r = nil
	<-done
}

// Read reads from the connection, for the buffer.
func (c *pickleConn) Read(b []byte) (int, error) {
	c.l.setDeadline(c.nc, c.by)
	n, err := c.nc.Read(b)
	c.l.metrics.pickle.bytes.Add(float64(n))
	return n, err
}

// maxFrame is the length of the longest pickle. A part of the budget is left for what is made of it.
func (l *Listener) maxFrame() int64 {
	most := int64(l.o.MaxFrameBytes)
	if all := l.o.Sink.Limits().MaxInflightBytes; all > 0 {
		most = min(most, all/16)
	}
	return most
}

// maxDecoding is the memory that a pickle of n bytes may take while it is read.
func (l *Listener) maxDecoding(n int64) int64 {
	most := 16*n + firstBody
	if all := l.o.Sink.Limits().MaxInflightBytes; all > 0 {
		most = min(most, all/4)
	}
	return most
}

// frame takes one frame. It returns false when the connection is to be closed. A pickle that cannot be read is lost
// alone, as with carbon: it is known where the next one begins.
func (c *pickleConn) frame() (more bool) {
	c.by = time.Time{}
	head, err := c.r.Peek(4)
	if err != nil {
		if len(head) > 0 {
			c.lost(c.why(err), fmt.Errorf("inside the length: %w", err), head)
		}
		return false
	}
	n := int64(binary.BigEndian.Uint32(head))
	if most := c.l.maxFrame(); n > most {
		c.lost(tooLong, tooLongError(head, n, most), head)
		return false
	}
	if _, err := c.r.Discard(4); err != nil {
		return false
	}
	c.by = time.Now().Add(c.l.o.FrameTimeout)
	defer c.lease.release()
	if n <= minBuffer {
		in, err := c.r.Peek(int(n))
		if err != nil {
			c.lost(c.why(err), err, in)
			return false
		}
		more = c.decode(in)
		_, err = c.r.Discard(int(n))
		return more && err == nil
	}
	large := c.l.bodies.take(n > smallSpare)
	defer c.l.bodies.give(large)
	if err := c.receive(large, int(n)); err != nil {
		c.lost(c.why(err), err, large.b)
		return false
	}
	return c.decode(large.b)
}

// receive reads a frame of n bytes. Memory is taken when the bytes that fill what there is have come.
func (c *pickleConn) receive(b *body, n int) error {
	if _, err := c.r.Peek(minBuffer); err != nil {
		return err
	}
	if had := b.memory(); had > 0 {
		if err := c.lease.take(int64(had)); err != nil {
			return err
		}
	}
	for len(b.b) < n {
		if len(b.b) == cap(b.b) {
			waited := c.lease.waited
			if err := b.grow(n, &c.lease); err != nil {
				return err
			}
			c.by = c.by.Add(c.lease.waited - waited)
		}
		k, err := c.r.Read(b.b[len(b.b):min(n, cap(b.b))])
		b.b = b.b[:len(b.b)+k]
		if err != nil && len(b.b) < n {
			return err
		}
	}
	return nil
}

// why names what an error of reading means.
func (c *pickleConn) why(err error) string {
	switch {
	case errors.Is(err, model.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) && c.l.stopBy.Load() != 0:
		return stopped
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tooSlow
	}
	return cutOff
}

func tooLongError(head []byte, n, most int64) error {
	hint := ""
	if !slices.ContainsFunc(head, func(c byte) bool { return c < ' ' || c > '~' }) {
		hint = "; does a sender of text use the port of pickles?"
	}
	return fmt.Errorf("%w: graphite: a pickle of %d bytes is announced, and %d are the most (limit: a 16th of limits.inflight-bytes, up to 16 MiB)%s",
		model.ErrInvalid, n, most, hint)
}

// lost counts a pickle that cannot be taken, of which nobody knows how many points it has.
func (c *pickleConn) lost(why string, err error, begin []byte) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	c.l.metrics.lostPickles.WithLabelValues(why).Inc()
	c.l.log.badFrame(c.peer, why, err, begin)
}

// decode reads a pickle and takes its points. It returns false if the listener gives up.
func (c *pickleConn) decode(in []byte) bool {
	c.l.metrics.pickles.Inc()
	d := c.l.decodings.take(len(in) > smallSpare/4)
	defer c.l.decodings.give(d)
	v, err := d.decode(in, &c.lease, c.l.maxDecoding(int64(len(in))))
	switch {
	case errors.Is(err, model.ErrInvalid):
		c.lost(undecodable, err, in)
		return true
	case err != nil:
		c.lost(stopped, err, in)
		return false
	case v.Kind() != pickle.List && v.Kind() != pickle.Tuple:
		c.lost(undecodable, fmt.Errorf("%w: pickle: it holds %s and not a list of points", model.ErrInvalid, v.Kind()), in)
		return true
	}
	c.items = items{p: c.parser, d: &d.d, e: d.d.Elements(v)}
	return c.deliver(d.d.Len(v))
}

// deliver takes n items, when there is memory for their rows. Until then the connection is not read, which is what
// holds its sender back.
func (c *pickleConn) deliver(n int) bool {
	for n > 0 {
		k, need := c.items.slice(n)
		if most := c.l.o.Sink.Limits().MaxInflightBytes; most > 0 {
			// Asking for more than there can be would never succeed.
			need = min(need, most/2)
		}
		grant, err := c.lease.grant(need)
		if err != nil {
			c.l.lost(c.l.metrics.pickle, n, err)
			return false
		}
		c.items.n = k
		whole := c.gather.add(c.l.ctx, &c.items, grant)
		c.l.count(c.l.metrics.pickle, c.parser)
		n -= k
		if !whole {
			c.l.lost(c.l.metrics.pickle, n+c.items.n, c.l.ctx.Err())
			return false
		}
	}
	if c.lease.last {
		// Its rows are beyond the budget, too, and others wait for the last resort.
		c.gather.drain(c.l.ctx)
	}
	return true
}

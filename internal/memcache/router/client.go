package router

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// maxBatch bounds the requests of a client that are sent on before their responses are awaited.
	maxBatch = 256
	// smallBuffer is what a client has for its requests while they are small.
	smallBuffer = 16 << 10
	// largeResponse is sent without a copy.
	largeResponse = 32 << 10
)

// client is a connection of a client. One goroutine reads as many requests as have come, sends them on, and
// writes the responses in their order.
type client struct {
	p    *pool
	conn net.Conn

	buf      []byte
	from, to int
	batch    []*request
	used     int // requests of the batch
	spare    []*request
	touched  []*link
	parts    []*request // by number of the server
	out      []byte
	quit     bool
}

func (c *client) serve() error {
	c.buf = make([]byte, smallBuffer)
	for {
		if err := c.take(); err != nil {
			return err
		}
		if c.used > 0 || c.quit {
			if err := c.respond(); err != nil || c.quit {
				return err
			}
			continue
		}
		if err := c.read(); err != nil {
			return err
		}
	}
}

// read makes room and reads what has come.
func (c *client) read() error {
	switch {
	case c.from == c.to:
		if c.from, c.to = 0, 0; len(c.buf) > keptBuffer {
			c.buf = make([]byte, smallBuffer)
		}
	case c.to == len(c.buf):
		if c.from > 0 {
			c.to = copy(c.buf, c.buf[c.from:c.to])
			c.from = 0
		} else {
			bigger := make([]byte, 2*len(c.buf))
			copy(bigger, c.buf[:c.to])
			c.buf = bigger
		}
	}
	n, err := c.conn.Read(c.buf[c.to:])
	c.to += n
	if n > 0 {
		return nil
	}
	return err
}

// errLine: the client sends a line without an end.
var errLine = errors.New("a line is too long")

// take sends on all requests that have come completely, up to a batch.
func (c *client) take() error {
	s := c.p.state.Load()
	now := int64(0)
	for c.used < maxBatch && !c.quit {
		line := c.buf[c.from:c.to]
		end := bytes.IndexByte(line, '\n')
		if end < 0 {
			if len(line) > maxLine {
				return errLine
			}
			break
		}
		next := c.from + end + 1
		if line = line[:end]; end > 0 && line[end-1] == '\r' {
			line = line[:end-1]
		}
		if len(line) == 0 {
			c.from = next // twemproxy passes over empty lines
			continue
		}
		if now == 0 {
			now = time.Now().UnixNano()
		}
		r := c.request()
		r.begun = now
		r.parse(line)
		var body []byte
		if r.size >= 0 {
			whole, err := c.body(s, r, next)
			if err != nil {
				return err
			}
			if !whole {
				break
			}
			if r.bad == "" {
				body = c.buf[next : next+r.size+2]
				next += r.size + 2
				if body[r.size] != '\r' || body[r.size+1] != '\n' {
					r.bad = "CLIENT_ERROR bad data chunk"
				}
			} else {
				next = c.from
			}
		}
		c.from = next
		c.used++
		c.dispatch(s, r, body)
	}
	for _, l := range c.touched {
		l.flush()
	}
	c.touched = c.touched[:0]
	return nil
}

// request returns an unused request, which is the next one of the batch.
func (c *client) request() *request {
	if c.used == len(c.batch) {
		c.batch = append(c.batch, newRequest())
	}
	r := c.batch[c.used]
	r.reset()
	return r
}

// body waits for the body of a request that may be sent, and passes over that of another. It reports whether
// the request is complete.
func (c *client) body(s *state, r *request, next int) (whole bool, err error) {
	if c.used > 0 && c.to-next < r.size+2 {
		return false, nil // the requests before it are not to wait for its body
	}
	if r.bad == "" && r.op.stores() {
		c.checkSize(s, r)
	}
	if r.bad != "" {
		c.from = next
		return true, c.skip(r.size + 2)
	}
	return c.to-next >= r.size+2, nil
}

// skip passes over bytes of the client.
func (c *client) skip(n int) error {
	for {
		have := min(n, c.to-c.from)
		c.from += have
		if n -= have; n == 0 {
			return nil
		}
		if err := c.read(); err != nil {
			return err
		}
	}
}

// checkSize refuses an item that its server would not take, by the length that is declared.
func (c *client) checkSize(s *state, r *request) {
	b := s.pick(r.key)
	if b == nil {
		return
	}
	limit, is := b.tooLarge(r)
	if !is {
		return
	}
	r.fail("SERVER_ERROR object too large for cache")
	b.c.tooLarge.Add(1)
	b.log.write(Event{Pool: b.pool, Backend: b.server.Display, Class: "too_large", Client: c.conn.RemoteAddr().String(), Size: r.size, Failed: 1,
		Text: fmt.Sprintf("the value has %d bytes, and the server takes items of %d", r.size, limit)}, r)
}

// dispatch sends a request on, or answers it.
func (c *client) dispatch(s *state, r *request, body []byte) {
	switch {
	case r.bad != "":
		c.p.c.clientErrors.Add(1)
		r.failed = true
		r.resp = append(append(r.resp, r.bad...), '\r', '\n')
		r.finish()
	case r.op == opQuit:
		c.quit = true
		c.used--
	case r.op == opMetaNoop:
		r.resp = append(r.resp, "MN\r\n"...)
		r.finish()
	case len(r.keys) > 1:
		c.split(s, r)
	default:
		c.push(s, s.pick(r.key), r, body)
	}
}

func (c *client) push(s *state, b *backend, r *request, body []byte) {
	if b == nil {
		s.c.forwardErrors.Add(1)
		r.failWith(errEjected)
		r.finish()
		return
	}
	l := b.link(r.key)
	l.push(r, body)
	for _, t := range c.touched {
		if t == l {
			return
		}
	}
	c.touched = append(c.touched, l)
}

// split sends the keys of a get to their servers, with one request for each.
func (c *client) split(s *state, r *request) {
	for len(c.parts) < len(s.backends)+1 {
		c.parts = append(c.parts, nil)
	}
	ejected := len(s.backends)
	for _, key := range r.keys {
		b, at := s.pick(key), ejected
		if b != nil {
			at = int(b.index.Load())
		}
		part := c.parts[at]
		if part == nil {
			part = c.part(r)
			part.key = key
			c.parts[at] = part
			r.parts = append(r.parts, part)
		}
		part.keys = append(part.keys, key)
		for i, p := range r.parts {
			if p == part {
				r.of = append(r.of, i)
				break
			}
		}
	}
	clear(c.parts)
	s.c.fragments.Add(int64(len(r.parts)))
	for _, part := range r.parts {
		c.push(s, s.pick(part.key), part, nil)
	}
}

func (c *client) part(of *request) *request {
	var part *request
	if n := len(c.spare); n > 0 {
		part, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		part = newRequest()
	}
	part.reset()
	part.op, part.extra, part.begun = of.op, of.extra, of.begun
	return part
}

// respond writes the responses of the batch, in the order of the requests. What is complete does not wait for
// what is not.
func (c *client) respond() error {
	var failed error
	for _, r := range c.batch[:c.used] {
		if len(r.parts) > 0 {
			for _, part := range r.parts {
				c.await(part, &failed)
			}
			c.out = merge(c.out, r)
			c.spare = append(c.spare, r.parts...)
			continue
		}
		c.await(r, &failed)
		switch {
		case r.suppressed():
		case len(r.resp) > largeResponse:
			c.send(&failed)
			if failed == nil {
				_, failed = c.conn.Write(r.resp)
			}
		default:
			c.out = append(c.out, r.resp...)
		}
	}
	c.used = 0
	c.send(&failed)
	return failed
}

// await waits for a response. All requests must be complete before they are used again, even if the client is
// gone.
func (c *client) await(r *request, failed *error) {
	if !r.ready() {
		c.send(failed)
		r.wait()
	}
}

func (c *client) send(failed *error) {
	if len(c.out) > 0 && *failed == nil {
		_, *failed = c.conn.Write(c.out)
	}
	if c.out = c.out[:0]; cap(c.out) > keptBuffer {
		c.out = nil
	}
}

// merge appends the values of the parts of a get, in the order of its keys as twemproxy has it: each key
// takes the next value of its part. If a part has failed, so has the request.
func merge(out []byte, r *request) []byte {
	for _, part := range r.parts {
		if part.failed || !bytes.HasPrefix(part.resp, []byte("VALUE ")) && string(part.resp) != "END\r\n" {
			return append(out, part.resp...)
		}
	}
	for _, at := range r.of {
		part := r.parts[at]
		rest := part.resp[part.skip:]
		if !bytes.HasPrefix(rest, []byte("VALUE ")) {
			continue
		}
		end := bytes.IndexByte(rest, '\n') + 1
		_, fields := word(rest[:end-2])
		_, fields = word(fields)
		_, fields = word(fields)
		size, _ := word(fields)
		end += number(size) + 2
		out = append(out, rest[:end]...)
		part.skip += end
	}
	return append(out, "END\r\n"...)
}

// lost tells how a client has left: by the end of its requests, or by an error.
func lost(err error) (eof bool) { return err == nil || errors.Is(err, io.EOF) }

package pipe

import (
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/memcache/meta"
)

// read gives responses to their calls until the connection ends.
func (c *Conn) read() {
	r := meta.NewReader(c.conn, c.o.MaxValue)
	for {
		if err := c.response(r); err != nil {
			c.fail(fmt.Errorf("%w: %w", ErrClosed, err))
			return
		}
	}
}

// response reads a response. Its value is read only if a call wants it, into memory of its own.
func (c *Conn) response(r *meta.Reader) error {
	var resp meta.Response
	if err := r.Read(&resp); err != nil {
		return err
	}
	var data []byte
	if resp.Code == meta.VA && c.wants(resp.Flags.Opaque) {
		data = make([]byte, resp.Size)
		if err := r.Value(data); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inflight) == 0 {
		return c.stray()
	}
	b := c.inflight[0]
	c.expect()
	switch {
	case resp.Code == meta.MN:
		c.complete(b)
	case resp.Code.Failed():
		b.refuse(&resp)
	case !resp.Flags.Letters.Has('O') || resp.Flags.Opaque-b.first >= uint64(b.count):
		return c.stray()
	case b.calls != nil:
		b.answer(&resp, data)
	}
	return nil
}

// wants reports whether a call that has not been given up waits for the response of that number.
func (c *Conn) wants(number uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inflight) == 0 {
		return false
	}
	b := c.inflight[0]
	return b.calls != nil && number-b.first < uint64(b.count)
}

func (c *Conn) stray() error {
	if c.o.Stray != nil {
		c.o.Stray()
	}
	if c.strays++; c.strays > maxStrays {
		return fmt.Errorf("%w: more than %d responses that were not asked for", meta.ErrProtocol, maxStrays)
	}
	return nil
}

// complete ends the oldest batch.
func (c *Conn) complete(b *batch) {
	c.inflight = append(c.inflight[:0], c.inflight[1:]...)
	if len(c.inflight) == 0 {
		_ = c.conn.SetReadDeadline(time.Time{})
	}
	if c.o.Observe != nil {
		c.o.Observe(time.Since(b.begun))
	}
	if b.calls != nil { // else no caller is left, and the batch is not used again
		b.finish()
		b.done <- struct{}{}
	}
}

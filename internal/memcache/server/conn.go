package server

import (
	"bytes"
	"errors"
	"io"
	"math/bits"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/memcache/items"
)

const (
	// flushAfter is how many bytes of responses are gathered before they are sent although more requests wait.
	flushAfter = 64 << 10
	// maxCommand bounds the lines of all commands but get, as in memcached, and maxLine those of get.
	maxCommand = 2048
	maxLine    = 1 << 20
	// writeTimeout is how long a client may take to read what was sent to it.
	writeTimeout = time.Minute
	// partTimeout is how long a client may pause in the middle of a request.
	partTimeout = time.Minute
)

// conn is a connection of a client. One goroutine reads requests, carries them out in their order and writes
// the responses of all that have come before it waits for more.
type conn struct {
	s    *Server
	nc   net.Conn
	addr string
	id   int64

	in       []byte // its length is its capacity
	from, to int
	next     int // where the next request begins, relative to from
	need     int // bytes from from on without which the request cannot go on; 0: it is done
	swallow  int // bytes of the client that are passed over
	out      []byte
	outTaken int // of its capacity, that was taken from the bound of buffers
	words    [mostWords][]byte
	more     [mostWords][]byte // of a get with many keys
	mark     uint64            // of what has changed and may be on the disk
	now      uint32
	reader   uint16
	timed    bool // the connection has a deadline for reads
	quiet    bool // the request asked for no response
	quit     bool

	last atomic.Int64 // Unix time of the last request
}

// errLine: the client sends a line without an end, or one that only another protocol has.
var errLine = errors.New("a line is too long")

func (c *conn) serve() (err error) {
	c.in, c.out = make([]byte, smallBuffer), make([]byte, 0, smallBuffer)
	defer func() {
		c.s.buffers.give(len(c.in))
		c.s.buffers.give(c.outTaken)
	}()
	if binary, err := c.begin(); err != nil || binary {
		return err
	}
	for {
		if err := c.requests(); err != nil {
			return err
		}
		if err := c.flush(); err != nil || c.quit {
			return err
		}
		if err := c.read(); err != nil {
			return err
		}
	}
}

// begin looks at the first byte, which tells the binary protocol.
func (c *conn) begin() (binary bool, err error) {
	if err := c.read(); err != nil {
		return false, err
	}
	if c.in[0] != 0x80 {
		return false, nil
	}
	for c.to < 24 {
		if err := c.read(); err != nil {
			return true, err
		}
	}
	c.s.count.binary.Add(1)
	const text = "this server does not speak the binary protocol: use the text or the meta protocol"
	// A response of the binary protocol: unknown command, with the text as its body.
	head := [24]byte{0: 0x81, 1: c.in[1], 6: 0, 7: 0x81, 11: byte(len(text))}
	copy(head[12:16], c.in[12:16]) // opaque
	c.out = append(append(c.out, head[:]...), text...)
	return true, c.flush()
}

// read waits for more of the client. It makes room for what the request needs.
func (c *conn) read() error {
	if c.from == c.to {
		c.from, c.to = 0, 0
		if len(c.in) > smallBuffer && c.need <= smallBuffer && c.s.buffers.scarce() {
			c.s.buffers.give(len(c.in))
			c.in = make([]byte, smallBuffer)
		}
		// What has grown by many small responses was not taken, and does not stay.
		if cap(c.out) > max(c.outTaken, flushAfter) || c.outTaken > 0 && c.s.buffers.scarce() {
			c.s.buffers.give(c.outTaken)
			c.out, c.outTaken = make([]byte, 0, smallBuffer), 0
		}
	}
	if c.from > 0 && (c.to == len(c.in) || c.from+c.need > len(c.in)) {
		c.to = copy(c.in, c.in[c.from:c.to])
		c.from = 0
	}
	if c.to == len(c.in) {
		return errLine // the request has made room for what it needs
	}
	// A client in the middle of a request holds memory that others may need.
	t := c.s.o.IdleTimeout
	if partial := c.need > 0 || c.swallow > 0; partial && (t == 0 || t > partTimeout) {
		t = partTimeout
	}
	if t > 0 || c.timed {
		var at time.Time
		if c.timed = t > 0; c.timed {
			at = time.Now().Add(t)
		}
		if err := c.nc.SetReadDeadline(at); err != nil {
			return err
		}
	}
	n, err := c.nc.Read(c.in[c.to:])
	c.to += n
	c.s.count.read.Add(int64(n))
	switch {
	case n > 0:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.s.count.idle.Add(1)
	}
	return err
}

// room makes the input large enough for a request of n bytes, and reports whether there was memory for it.
func (c *conn) room(n int) bool {
	if n <= len(c.in) {
		return true
	}
	grown, ok := c.s.buffers.grown(c.in[c.from:c.to], n)
	if !ok {
		c.s.count.noMemory.Add(1)
		return false
	}
	c.from, c.to = 0, c.to-c.from
	c.in = grown[:cap(grown)]
	return true
}

// requests carries out all requests that have come completely.
func (c *conn) requests() error {
	now := time.Now().Unix()
	c.now, c.reader = uint32(now), c.s.reader(now)
	c.last.Store(now)
	c.need = 0
	for !c.quit {
		if c.swallow > 0 {
			n := min(c.swallow, c.to-c.from)
			c.from += n
			if c.swallow -= n; c.swallow > 0 {
				return nil
			}
		}
		have := c.in[c.from:c.to]
		end := bytes.IndexByte(have, '\n')
		if end < 0 {
			return c.partial(have)
		}
		line := have[:end]
		if end > 1 && line[end-1] == '\r' {
			line = line[:end-1]
		}
		c.next, c.need, c.quiet = end+1, 0, false
		c.command(line)
		if c.need > 0 {
			return nil
		}
		c.from += c.next
		if len(c.out) >= flushAfter {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// partial judges a line that has no end yet.
func (c *conn) partial(line []byte) error {
	if len(line) > maxCommand {
		for len(line) > 0 && line[0] == ' ' {
			line = line[1:]
		}
		if !bytes.HasPrefix(line, []byte("get ")) && !bytes.HasPrefix(line, []byte("gets ")) || c.to-c.from > maxLine {
			return errLine
		}
	}
	if n := c.to - c.from; n == len(c.in) && !c.room(2*n) {
		return errLine
	}
	return nil
}

// body returns the value of a request, of n bytes, and whether it ends as it must. If it has not come yet,
// there is none, and the request is carried out again when it has.
func (c *conn) body(n int) (value []byte, whole, valid bool) {
	end := c.next + n + 2
	if c.to-c.from < end {
		c.need = end
		return nil, false, false
	}
	b := c.in[c.from+c.next : c.from+end]
	c.next = end
	return b[:n], true, b[n] == '\r' && b[n+1] == '\n'
}

// say appends a line to the responses, unless the request asked for none.
func (c *conn) say(text string) {
	if !c.quiet {
		c.out = append(append(c.out, text...), '\r', '\n')
	}
}

// sayAnyway is say for errors that are told to those, too, that asked for no response.
func (c *conn) sayAnyway(text string) {
	c.quiet = false
	c.say(text)
}

// fits reports whether so many bytes can be appended to the responses without a larger buffer.
func (c *conn) fits(n int) bool { return cap(c.out)-len(c.out) >= n }

// outRoom makes room for so many bytes of responses. The caller holds no lock: it may wait for the client.
// It reports whether there was memory.
func (c *conn) outRoom(n int) (bool, error) {
	if c.fits(n) {
		return true, nil
	}
	if err := c.flush(); err != nil || c.fits(n) {
		return err == nil, err
	}
	size := 1 << bits.Len(uint(n-1))
	if !c.s.buffers.take(size) {
		c.s.count.noMemory.Add(1)
		return false, nil
	}
	c.s.buffers.give(c.outTaken)
	c.out, c.outTaken = make([]byte, len(c.out), size), size // it was flushed
	return true, nil
}

// flush sends the responses. Before that, what they promise is made to last.
func (c *conn) flush() error {
	if mark := c.mark; mark > 0 {
		c.mark = 0
		if err := c.s.disk.Record(mark); err != nil {
			c.quit = true
			return err
		}
	}
	if len(c.out) == 0 {
		return nil
	}
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.s.writeTimeout)); err != nil {
		return err
	}
	n, err := c.nc.Write(c.out)
	c.s.count.written.Add(int64(n))
	c.out = c.out[:0]
	return err
}

// lost tells a client that has left from one that failed.
func lost(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded)
}

// expiry returns the Unix time at which an item is over, from what a client sent: seconds from now, or a
// Unix time if it is more than 30 days. A negative time is over at once; 0 is never.
func (c *conn) expiry(t int32) uint32 {
	const month = 30 * 24 * 60 * 60
	switch {
	case t < 0:
		return 1
	case t == 0 || t > month:
		return uint32(t)
	}
	return c.now + uint32(t)
}

// locate finds the item of a key, in memory or on disk. The shard is locked when it returns.
func (c *conn) locate(key []byte, hash uint64) (*items.Shard, items.Item, items.Why) {
	sh := c.s.items.Shard(hash)
	sh.Lock()
	it, why := sh.Find(key, hash, c.now)
	if it == nil && c.s.disk != nil {
		it, why = c.fromDisk(sh, key, hash, why)
	}
	return sh, it, why
}

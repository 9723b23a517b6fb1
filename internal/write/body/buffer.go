package body

import "github.com/shaledb/shale/internal/model"

// maxPooled is the most bytes of a buffer that returns to the pool. Larger ones are left to the garbage
// collector, so that one huge request does not hold its memory until the process ends. The requests of
// most senders decode to 1 to 4 MiB.
const maxPooled = 4 << 20

// Buffer is a piece of reusable memory.
type Buffer struct {
	Bytes []byte
	// reached is how many bytes of the capacity are reserved and may be filled.
	reached int
}

// resize makes the buffer n bytes long, with arbitrary content. A new allocation has no more than these.
func (b *Buffer) resize(n int) { b.Bytes = model.Sized(b.Bytes[:0], n)[:n] }

// reach gives the buffer room for n bytes in all, and keeps its content. A new allocation has no more
// than these bytes.
func (b *Buffer) reach(n int) {
	if cap(b.Bytes) < n {
		b.Bytes = append(make([]byte, 0, n), b.Bytes...)
	}
	b.reached = n
}

// Take returns an empty buffer. The caller returns it with Give.
func (c *Codec) Take() *Buffer {
	b := c.buffers.Get().(*Buffer)
	b.Bytes = b.Bytes[:0]
	return b
}

// Give returns a buffer to the pool.
func (c *Codec) Give(b *Buffer) {
	if cap(b.Bytes) <= maxPooled {
		c.buffers.Put(b)
	}
}

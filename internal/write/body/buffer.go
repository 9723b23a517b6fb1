package body

import "slices"

// maxPooled is the size in bytes beyond which a buffer is left to the garbage collector, so that one huge request does
// not keep its memory for ever. The requests of most senders decode to 1 to 4 MiB.
const maxPooled = 4 << 20

// Buffer is a piece of reusable memory.
type Buffer struct {
	Bytes []byte
	// reached is how much of the capacity may be filled: what has been reserved.
	reached int
}

// resize makes the buffer n bytes long. What is in it is arbitrary.
func (b *Buffer) resize(n int) { b.Bytes = slices.Grow(b.Bytes[:0], n)[:n] }

// reach gives the buffer room for n bytes in all, and no more than that if it has to be allocated.
func (b *Buffer) reach(n int) {
	if cap(b.Bytes) < n {
		b.Bytes = append(make([]byte, 0, n), b.Bytes...)
	}
	b.reached = n
}

// Take returns an empty buffer, to be given back by Give.
func (c *Codec) Take() *Buffer {
	b := c.buffers.Get().(*Buffer)
	b.Bytes = b.Bytes[:0]
	return b
}

// Give takes a buffer back.
func (c *Codec) Give(b *Buffer) {
	if cap(b.Bytes) <= maxPooled {
		c.buffers.Put(b)
	}
}

package server

import (
	"math/bits"
	"sync/atomic"
)

// smallBuffer is what a connection has for requests, and for responses, while they are small.
const smallBuffer = 16 << 10

// buffers bounds the memory of all buffers that are larger than that.
type buffers struct {
	total int64
	left  atomic.Int64
}

func (b *buffers) begin(total int64) {
	b.total = total
	b.left.Store(total)
}

// take reports whether there is memory for a buffer, which give returns.
func (b *buffers) take(n int) bool {
	if n <= smallBuffer {
		return true
	}
	if b.left.Add(-int64(n)) >= 0 {
		return true
	}
	b.left.Add(int64(n))
	return false
}

func (b *buffers) give(n int) {
	if n > smallBuffer {
		b.left.Add(int64(n))
	}
}

// scarce reports whether connections that wait should give their large buffers back.
func (b *buffers) scarce() bool { return b.left.Load() < b.total/2 }

// grown returns a buffer with the content of another one and room for at least n bytes, or false if there is
// no memory for it.
func (b *buffers) grown(old []byte, n int) ([]byte, bool) {
	size := 1 << bits.Len(uint(n-1))
	if !b.take(size) {
		return old, false
	}
	bigger := make([]byte, len(old), size)
	copy(bigger, old)
	b.give(cap(old))
	return bigger, true
}

package graphite

// body is the memory of a frame that is larger than a connection's buffer.
type body struct{ b []byte }

func (b *body) reset()      { b.b = b.b[:0] }
func (b *body) memory() int { return cap(b.b) }

// firstBody is what a body has at first, in bytes. After that it doubles.
const firstBody = 64 << 10

// grow gives the body room for more of a frame of n bytes, which costs what it grows by.
func (b *body) grow(n int, m *lease) error {
	size := min(n, max(2*cap(b.b), firstBody))
	if err := m.take(int64(size - cap(b.b))); err != nil {
		return err
	}
	grown := make([]byte, len(b.b), size)
	copy(grown, b.b)
	b.b = grown
	return nil
}

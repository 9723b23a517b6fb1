package graphite

// frameBuffer holds a frame that is larger than a connection's buffer.
type frameBuffer struct{ b []byte }

func (b *frameBuffer) reset()      { b.b = b.b[:0] }
func (b *frameBuffer) memory() int { return cap(b.b) }

// firstFrameBytes is the first size of a frameBuffer in bytes. It doubles from there.
const firstFrameBytes = 64 << 10

// grow makes room for more of a frame of n bytes and reserves the memory that it adds.
func (b *frameBuffer) grow(n int, m *reservation) error {
	size := min(n, max(2*cap(b.b), firstFrameBytes))
	if err := m.reserve(int64(size - cap(b.b))); err != nil {
		return err
	}
	grown := make([]byte, len(b.b), size)
	copy(grown, b.b)
	b.b = grown
	return nil
}

package graphite

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite/pickle"
)

// decoding is the memory in which a pickle is read.
type decoding struct {
	d pickle.Decoder
	// lease pays for the memory while a pickle is being read.
	lease *lease
	// room is how many bytes the decoder may still take.
	room    int64
	scratch []byte
}

func (d *decoding) reset() {
	d.d.Reset()
	d.lease = nil
}

func (d *decoding) memory() int { return d.d.Memory() + cap(d.scratch) }

// decode reads a pickle. Beside broken pickles it refuses those that take more memory than such pickles of points
// need: real ones take two to four times their size.
func (d *decoding) decode(in []byte, m *lease, most int64) (pickle.Value, error) {
	if d.d.Reserve == nil {
		d.d.Reserve = d.reserve
		d.d.Float = func(text []byte) (float64, bool) { return number(text, &d.scratch) }
	}
	d.lease, d.room = m, most
	if had := int64(d.d.Memory()); had > 0 {
		if err := m.takeSome(had); err != nil {
			return pickle.Value{}, err
		}
	}
	return d.d.Decode(in)
}

func (d *decoding) reserve(n int) error {
	if int64(n) > d.room {
		return fmt.Errorf("%w: pickle: it takes too much memory to read, far more than points would", model.ErrInvalid)
	}
	d.room -= int64(n)
	return d.lease.takeSome(int64(n))
}

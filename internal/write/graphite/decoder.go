package graphite

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite/pickle"
)

// decoder holds the memory for decoding a pickle.
type decoder struct {
	d pickle.Decoder
	// reserved accounts for the memory while a pickle is being decoded.
	reserved *reservation
	// room is how many more bytes the decoder may use.
	room    int64
	scratch []byte
}

func (d *decoder) reset() {
	d.d.Reset()
	d.reserved = nil
}

func (d *decoder) memory() int { return d.d.Memory() + cap(d.scratch) }

// decode decodes a pickle. It refuses broken pickles and those that need more than most bytes of
// memory; real lists of points need two to four times their size.
func (d *decoder) decode(in []byte, m *reservation, most int64) (pickle.Value, error) {
	if d.d.Reserve == nil {
		d.d.Reserve = d.reserve
		d.d.Float = func(text []byte) (float64, bool) { return number(text, &d.scratch) }
	}
	d.reserved, d.room = m, most
	if had := int64(d.d.Memory()); had > 0 {
		if err := m.reserveSmall(had); err != nil {
			return pickle.Value{}, err
		}
	}
	return d.d.Decode(in)
}

func (d *decoder) reserve(n int) error {
	if int64(n) > d.room {
		return fmt.Errorf("%w: pickle: decoding it takes far more memory than a list of points needs", model.ErrInvalid)
	}
	d.room -= int64(n)
	return d.reserved.reserveSmall(int64(n))
}

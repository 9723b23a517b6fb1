package carbonlink

import (
	"encoding/binary"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// encoder writes a pickle of protocol 2, as carbon does.
type encoder struct {
	b []byte
	// take charges bytes before they are allocated.
	take func(bytes int64) error
	err  error // the first error of what was to be written
}

// newEncoder returns an encoder that charges its bytes with take; nil: it charges none.
func newEncoder(take func(int64) error) *encoder {
	if take == nil {
		take = func(int64) error { return nil }
	}
	return &encoder{b: []byte{0, 0, 0, 0, 0x80, 2}, take: take} // the length, PROTO 2
}

// room makes room for n more bytes and the end of what is open. It reports whether there is room.
func (e *encoder) room(n int) bool {
	const ends = 64
	if n += len(e.b) + ends; e.err != nil || n <= cap(e.b) {
		return e.err == nil
	}
	n = max(n, 2*cap(e.b))
	if e.err = e.take(int64(n - cap(e.b))); e.err == nil {
		e.b = model.Sized(e.b, n)
	}
	return e.err == nil
}

// end ends the pickle and returns it, with four bytes before it.
func (e *encoder) end() []byte { return append(e.b, '.') } // STOP

func (e *encoder) text(s string) {
	if !e.room(len(s)) {
		return
	}
	e.b = append(e.b, 'X') // BINUNICODE
	e.b = append(binary.LittleEndian.AppendUint32(e.b, uint32(len(s))), s...)
}

// dict writes a dict of one member.
func (e *encoder) dict(key string, value func()) {
	e.mapping(1, func(int) {
		e.text(key)
		value()
	})
}

// mapping writes a dict of n members, each a key and a value. It ends after the first error.
func (e *encoder) mapping(n int, member func(i int)) {
	e.b = append(e.b, '}', '(') // EMPTY_DICT, MARK
	for i := 0; i < n && e.err == nil; i++ {
		member(i)
	}
	e.b = append(e.b, 'u') // SETITEMS
}

// pointBytes is the size of a point.
const pointBytes = 9 + 9 + 1

// list writes a list of n points.
func (e *encoder) list(n int, element func(i int)) {
	if !e.room(n * pointBytes) {
		return
	}
	e.b = append(e.b, ']', '(') // EMPTY_LIST, MARK
	for i := range n {
		element(i)
	}
	e.b = append(e.b, 'e') // APPENDS
}

// point writes (time, value), with a float as the time, as carbon has it.
func (e *encoder) point(t int64, v float64) {
	e.b = binary.BigEndian.AppendUint64(append(e.b, 'G'), math.Float64bits(float64(t))) // BINFLOAT
	e.b = binary.BigEndian.AppendUint64(append(e.b, 'G'), math.Float64bits(v))
	e.b = append(e.b, 0x86) // TUPLE2
}

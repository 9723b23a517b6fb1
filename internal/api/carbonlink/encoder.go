package carbonlink

import (
	"encoding/binary"
	"math"
)

// encoder writes a pickle of protocol 2, as carbon does.
type encoder struct {
	b   []byte
	err error // the first error of what was to be written
}

func newEncoder() *encoder {
	return &encoder{b: []byte{0, 0, 0, 0, 0x80, 2}} // the length, PROTO 2
}

// end ends the pickle and returns it, with four bytes before it.
func (e *encoder) end() []byte { return append(e.b, '.') } // STOP

func (e *encoder) text(s string) {
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

func (e *encoder) list(n int, element func(i int)) {
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

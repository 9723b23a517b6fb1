package relay

import (
	"encoding/binary"
	"errors"
	"math"
)

// point is a point of a lot.
type point struct {
	path  []byte
	time  int64 // Unix seconds
	value float64
}

func appendPoint(to []byte, p point) []byte {
	to = append(binary.AppendUvarint(to, uint64(len(p.path))), p.path...)
	return binary.LittleEndian.AppendUint64(binary.AppendVarint(to, p.time), math.Float64bits(p.value))
}

var errCut = errors.New("a point is cut off")

// nextPoint returns the first point. Its path aliases b.
func nextPoint(b []byte) (p point, rest []byte, err error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return p, nil, errCut
	}
	p.path, b = b[k:k+int(n)], b[k+int(n):]
	if p.time, k = binary.Varint(b); k <= 0 || len(b) < k+8 {
		return p, nil, errCut
	}
	p.value = math.Float64frombits(binary.LittleEndian.Uint64(b[k:]))
	return p, b[k+8:], nil
}

// countPoints returns how many points a record has.
func countPoints(record []byte) (n int, err error) {
	for len(record) > 0 {
		if _, record, err = nextPoint(record); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

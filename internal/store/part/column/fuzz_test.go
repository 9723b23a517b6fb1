package column

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

func FuzzInts(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add(binary.LittleEndian.AppendUint64(nil, 1<<63), true)
	f.Add(bytes.Repeat([]byte{99, 0, 0, 0, 0, 0, 0, 0}, 9), true)
	var steps []byte
	for i := range uint64(60) {
		steps = binary.LittleEndian.AppendUint64(steps, i/3*0x9e3779b97f4a7c15>>20)
	}
	f.Add(steps, true)
	f.Fuzz(func(t *testing.T, b []byte, dense bool) {
		var xs []int64
		for i := 0; i+8 <= len(b); i += 8 {
			xs = append(xs, int64(binary.LittleEndian.Uint64(b[i:])))
		}
		c := IntCoder{Dense: dense}
		enc := c.Append(nil, xs)
		var d IntDecoder
		s := Scan{Rest: enc}
		got := d.Append(nil, &s, len(xs))
		if err := s.End("ints"); err != nil || !slices.Equal(got, xs) {
			t.Fatalf("%v: %v, %v", xs, got, err)
		}
		// And as a column of anything.
		s = Scan{Rest: b}
		if n := len(d.Append(nil, &s, 100)); !s.Bad && n != 100 {
			t.Fatalf("%d numbers of 100", n)
		}
	})
}

func FuzzValues(f *testing.F) {
	f.Add([]byte{}, true)
	var seed []byte
	for i := range 40 {
		seed = binary.LittleEndian.AppendUint64(seed, math.Float64bits(float64(i)/10))
	}
	f.Add(seed, false)
	for _, v := range []uint64{0, 1 << 63, math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), 0x7ff8000000000001, 0xfff8000000000123, 1} {
		seed = binary.LittleEndian.AppendUint64(seed, v)
	}
	f.Add(seed, true)
	for i := range 40 {
		seed = binary.LittleEndian.AppendUint64(seed, math.Float64bits(math.Sqrt(float64(i))))
	}
	f.Add(seed[320:], true)
	var sums []byte
	sum := 0.0
	for i := range 40 {
		sum += float64(i*i*1234567+1) / 1e9
		sums = binary.LittleEndian.AppendUint64(sums, math.Float64bits(sum))
	}
	f.Add(sums, true)
	f.Fuzz(func(t *testing.T, b []byte, dense bool) {
		var values []uint64
		for i := 0; i+8 <= len(b); i += 8 {
			values = append(values, binary.LittleEndian.Uint64(b[i:]))
		}
		var d ValueDecoder
		if len(values) > 0 {
			c := ValueCoder{Ints: IntCoder{Dense: dense}}
			enc := c.Append(nil, values)
			if len(enc) > 1+8*len(values) {
				t.Fatalf("%d bytes for %d values", len(enc), len(values))
			}
			got, err := d.Append(nil, enc, len(values))
			if err != nil || !slices.Equal(got, values) {
				t.Fatalf("%x: %x, %v", values, got, err)
			}
		}
		if got, err := d.Append(nil, b, 50); err == nil && len(got) != 50 {
			t.Fatalf("%d values of 50", len(got))
		}
	})
}

package curve

import (
	"reflect"
	"testing"

	"github.com/shaledb/shale/internal/cache/ledger"
)

// sampleOf returns the file of n touches.
func sampleOf(n int) ([]byte, []seen) {
	r := recent{touches: make([]seen, 0, max(n, 1))}
	for i := range n {
		r.note(&ledger.Touch{Key: uint64(i) << 40, Query: uint64(i), Local: i%2 == 0, Fresh: i%3 == 0}, uint32(i)+1, uint32(i)+2)
	}
	return r.encode(1 << 60), r.touches
}

// FuzzDecodeSample: a file that decodes is written again as it was, and no other makes the decoder panic.
func FuzzDecodeSample(f *testing.F) {
	for _, n := range []int{0, 1, 5} {
		b, _ := sampleOf(n)
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		limit, touches, err := decodeSample(b)
		if err != nil {
			return
		}
		if again := (&recent{touches: touches}).encode(limit); string(again) != string(b) {
			t.Errorf("got % x, expected % x", again, b)
		}
	})
}

func TestSampleIsKept(t *testing.T) {
	b, want := sampleOf(5)
	limit, got, err := decodeSample(b)
	if err != nil || limit != 1<<60 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %d, %v, %v, expected %v", limit, got, err, want)
	}
	for i := range b {
		b[i] ^= 4
		if _, _, err := decodeSample(b); err == nil {
			t.Errorf("byte %d is wrong, and was not noticed", i)
		}
		b[i] ^= 4
	}
}

func FuzzDecodeHours(f *testing.F) {
	f.Add([]byte(`{"version":1,"hours":[{"share":0.5,"points":[]}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, b []byte) {
		hours, err := decodeHours(b)
		if err != nil {
			return
		}
		for _, h := range hours {
			if !samePairs(h.Points) || !(h.Share > 0 && h.Share <= 1) {
				t.Errorf("kept an hour of another form: %+v", h)
			}
		}
		if len(hours) > 0 {
			_, _ = Add(hours)
		}
	})
}

package promwrite

import (
	"testing"

	"github.com/golang/snappy"

	"github.com/shaledb/shale/internal/model"
)

// TestWalkAllocatesNothing holds the walk and the decoding to no allocation once their memory is there, for labels as
// they should be and for those that must be rebuilt.
func TestWalkAllocatesNothing(t *testing.T) {
	req := fleet(500)
	for name, odd := range map[string]bool{"usual": false, "rebuilt": true} {
		for i := range req.Timeseries {
			if odd {
				req.Timeseries[i].Labels[3].Value = ""
			}
		}
		raw, err := req.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		in, out := snappy.Encode(nil, raw), new(buffer)
		w, b := new(walker), new(model.Batch)
		reserve := func(int64) error { return nil }
		run := func() {
			b.Reset()
			if err := decode(in, out, 0, reserve); err != nil {
				t.Fatal(err)
			}
			w.start(out.bytes, seed, b, reserve)
			if err := w.walk(); err != nil {
				t.Fatal(err)
			}
		}
		if n := testing.AllocsPerRun(20, run); n != 0 {
			t.Errorf("%s: %v allocations for 500 series", name, n)
		}
		if len(b.Keys) != 500 {
			t.Errorf("%s: %d series", name, len(b.Keys))
		}
	}
}

func BenchmarkReceive(b *testing.B) {
	const n = 2000
	raw, err := fleet(n).Marshal()
	if err != nil {
		b.Fatal(err)
	}
	in, out := snappy.Encode(nil, raw), new(buffer)
	w, batch := new(walker), new(model.Batch)
	reserve := func(int64) error { return nil }
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/series")
		b.ReportMetric(float64(len(raw))/n, "bytes/series")
	}
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if err := decode(in, out, 0, reserve); err != nil {
				b.Fatal(err)
			}
		}
		report(b)
	})
	b.Run("walk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			batch.Reset()
			w.start(raw, seed, batch, reserve)
			if err := w.walk(); err != nil {
				b.Fatal(err)
			}
		}
		report(b)
	})
}

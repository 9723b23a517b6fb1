package load

import (
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
)

func BenchmarkBody(b *testing.B) {
	f := &Fleet{Seed: 1, Targets: 1000, Metrics: 10, Series: 100, Labels: 10, Name: "load_metric"}
	bo := newBody(f, 2000)
	raw, c := bo.fill(12000, 2000, 1, 1_700_000_000_000)
	b.Logf("%d B a series, compressed %.1f", len(raw)/2000, float64(len(c))/2000)
	g := snappy.Encode(nil, raw)
	b.Logf("golang snappy %.1f", float64(len(g))/2000)
	b.Run("fill", func(b *testing.B) {
		for i := range b.N {
			bo.fill(int64(i%400)*2000, 2000, i, 1_700_000_000_000)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/sample")
	})
	out := make([]byte, s2.MaxEncodedLen(len(raw)))
	b.Run("s2", func(b *testing.B) {
		for range b.N {
			s2.EncodeSnappy(out, raw)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/sample")
	})
	b.Run("golang", func(b *testing.B) {
		for range b.N {
			snappy.Encode(out, raw)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/sample")
	})
	b.Run("decode-s2", func(b *testing.B) {
		for range b.N {
			s2.Decode(raw, c)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/sample")
	})
	b.Run("decode-golang", func(b *testing.B) {
		for range b.N {
			s2.Decode(raw, g)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/sample")
	})
}

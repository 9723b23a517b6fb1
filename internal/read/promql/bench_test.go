package promql

import (
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/shaledb/shale/internal/model"
)

// BenchmarkHistograms walks a counter of 20 buckets as the engine does, with hints. A sample is an
// operation.
func BenchmarkHistograms(b *testing.B) {
	var rows model.Rows
	for i := range uint64(1000) {
		h := model.Histogram{Count: 20 * i, PositiveSpans: []model.HistogramSpan{{Length: 10}, {Offset: 3, Length: 10}}, Positive: make([]uint64, 20)}
		h.Positive[0] = i
		rows.AppendBlob(int64(i)*nanosPerMilli, model.KindHistogram, model.AppendHistogram(nil, &h), 0)
	}
	var sl slab
	s := &series{points: sl.copyRows(&rows, 0)}
	it := hidden(s.Iterator(nil))
	var h histogram.FloatHistogram
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if it.Next() == chunkenc.ValNone {
			it = hidden(s.Iterator(it))
			it.Next()
		}
		it.AtFloatHistogram(&h)
	}
}

// hidden hides the iterator's type from the compiler, which would otherwise call its methods directly.
//
//go:noinline
func hidden(it chunkenc.Iterator) chunkenc.Iterator { return it }

// BenchmarkFloats walks floats as the engine does. A sample is an operation.
func BenchmarkFloats(b *testing.B) {
	var rows model.Rows
	for i := range uint64(1000) {
		rows.Append(int64(i)*nanosPerMilli, i, 0)
	}
	var sl slab
	s := &series{points: sl.copyRows(&rows, 0)}
	it := hidden(s.Iterator(nil))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if it.Next() == chunkenc.ValNone {
			it = hidden(s.Iterator(it))
			it.Next()
		}
		it.At()
	}
}

package promql

import (
	"errors"
	"testing"

	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/shaledb/shale/internal/model"
)

// FuzzHistogram gives an iterator any two values. It rejects values that are not histograms, and the engine
// can compare, add and walk what it returns without a panic.
func FuzzHistogram(f *testing.F) {
	spans := []model.HistogramSpan{{Offset: -3, Length: 2}, {Offset: 1, Length: 1}}
	for _, h := range []model.Histogram{
		{Sum: model.StaleNaN}, {Gauge: true, Count: 3}, {Schema: 12, Count: 3, PositiveSpans: spans, Positive: []uint64{1, 0, 0}},
		{Float: true, ZeroThreshold: 1, PositiveSpans: spans, Positive: []uint64{1, 1 << 62, 3}, NegativeSpans: spans[1:], Negative: []uint64{1}},
		{Schema: -53, Custom: []uint64{1, 2}, PositiveSpans: spans[1:], Positive: []uint64{1}},
	} {
		b := model.AppendHistogram(nil, &h)
		f.Add(b, model.AppendHistogram(nil, &model.Histogram{ZeroThreshold: 1 << 62}))
		f.Add(b, b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var rows model.Rows
		rows.AppendBlob(0, model.KindHistogram, first, 0)
		rows.AppendBlob(nanosPerMilli, model.KindHistogram, second, 0)
		var sl slab
		it := (&series{points: sl.copyRows(&rows, 0)}).Iterator(nil)
		for typ := it.Next(); typ != chunkenc.ValNone; typ = it.Next() {
			if typ == chunkenc.ValHistogram {
				_, h := it.AtHistogram(nil)
				_ = h.String()
			}
			_, h := it.AtFloatHistogram(nil)
			for b := h.AllBucketIterator(); b.Next(); {
				b.At()
			}
			_, _, _, _ = h.Copy().Add(h)
			h.DetectReset(h)
		}
		if err := it.Err(); err != nil && !errors.Is(err, model.ErrCorrupt) {
			t.Fatalf("%v has no class", err)
		}
	})
}

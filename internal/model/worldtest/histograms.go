package worldtest

import (
	"math"
	"math/rand/v2"

	"github.com/shaledb/shale/internal/model"
)

// anySpans returns spans and the number of their buckets.
func anySpans(r *rand.Rand, most int) (spans []model.HistogramSpan, n int) {
	for range r.IntN(4) {
		s := model.HistogramSpan{Offset: int32(r.IntN(7) - 3), Length: uint32(r.IntN(most))}
		if r.IntN(20) == 0 {
			s.Offset = []int32{math.MinInt32, math.MaxInt32}[r.IntN(2)]
		}
		spans, n = append(spans, s), n+int(s.Length)
	}
	return spans, n
}

// AnyHistogram fills h with anything that a part can store, whether or not the write path would take it.
func AnyHistogram(r *rand.Rand, h *model.Histogram) {
	h.Reset()
	h.Gauge, h.Float = r.IntN(3) == 0, r.IntN(3) == 0
	h.Schema = []int32{-53, -4, 0, 3, 8, math.MinInt32, math.MaxInt32}[r.IntN(7)]
	number := func() uint64 {
		switch {
		case r.IntN(10) == 0:
			return r.Uint64()
		case h.Float:
			return math.Float64bits(float64(r.IntN(1000)) / 4)
		}
		return uint64(r.IntN(1000) - 500)
	}
	h.ZeroThreshold = Specials[r.IntN(len(Specials))]
	h.Sum, h.Count, h.ZeroCount = Value(r, r.IntN(ValueKinds), r.IntN(100)), number(), number()
	var positive, negative int
	h.PositiveSpans, positive = anySpans(r, 12)
	h.NegativeSpans, negative = anySpans(r, 3)
	for range positive {
		h.Positive = append(h.Positive, number())
	}
	for range negative {
		h.Negative = append(h.Negative, number())
	}
	if r.IntN(4) == 0 {
		for i := range r.IntN(9) {
			h.Custom = append(h.Custom, math.Float64bits(float64(i)))
		}
	}
}

// MixHistograms replaces a share of the rows, which are floats, by histograms.
func MixHistograms(r *rand.Rand, rows *model.Rows) {
	var h model.Histogram
	var out model.Rows
	AnyHistogram(r, &h)
	share, change := r.IntN(4), r.IntN(3)
	for i, t := range rows.Times {
		if share > 0 && r.IntN(5) >= share {
			out.Append(t, rows.Values[i], rows.Start(i))
			continue
		}
		if r.IntN(10) < change*change*2 {
			AnyHistogram(r, &h)
		}
		if len(h.Positive) > 0 {
			h.Positive[r.IntN(len(h.Positive))] += uint64(r.IntN(5))
		}
		h.Count += uint64(r.IntN(10))
		out.AppendBlob(t, model.KindHistogram, model.AppendHistogram(nil, &h), rows.Start(i))
	}
	*rows = out
}

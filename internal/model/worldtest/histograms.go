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
	h.Sum, h.Count, h.ZeroCount = Value(r, r.IntN(100)), number(), number()
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

// HistogramKinds is the number of kinds of NewHistogram.
const HistogramKinds = 12

// NewHistogram returns an empty histogram of one of HistogramKinds kinds: of integers or floats, a gauge or a
// counter, with a schema or with custom bounds.
func NewHistogram(r Random, kind int) *model.Histogram {
	h := &model.Histogram{Float: kind%2 == 1, Gauge: kind%4 == 2, Schema: int32(r.IntN(13) - 4), ZeroThreshold: math.Float64bits(1e-128)}
	var positive, negative int
	h.PositiveSpans, positive = spans(r)
	if kind%3 == 1 { // custom bounds
		h.Schema, h.ZeroThreshold = -53, 0
		h.PositiveSpans, positive = []model.HistogramSpan{{Offset: int32(r.IntN(3)), Length: 5}}, 5
		for i := range 9 {
			h.Custom = append(h.Custom, math.Float64bits(math.Ldexp(0.005, i)))
		}
	} else if kind%5 != 0 {
		h.NegativeSpans, negative = spans(r)
	}
	h.Positive, h.Negative = make([]uint64, positive), make([]uint64, negative)
	return h
}

// spans returns spans that the write path takes, and the number of their buckets.
func spans(r Random) (spans []model.HistogramSpan, buckets int) {
	for i := range r.IntN(4) {
		length := r.IntN(6)
		offset := r.IntN(9)
		if i == 0 {
			offset -= 4 // only the first span may begin below 0
		}
		spans = append(spans, model.HistogramSpan{Offset: int32(offset), Length: uint32(length)})
		buckets += length
	}
	return spans, buckets
}

// Observe adds observations to a histogram and keeps its count right.
func Observe(r Random, h *model.Histogram) {
	h.Sum = math.Float64bits(math.Float64frombits(h.Sum) + float64(r.IntN(100))/8)
	if h.Float {
		observeFloats(r, h)
		return
	}
	if h.Schema != -53 {
		h.ZeroCount += uint64(r.IntN(3))
	}
	h.Count = h.ZeroCount
	for _, side := range [][]uint64{h.Positive, h.Negative} {
		var before, was uint64
		for i := range side { // differences to the bucket before
			was += side[i]
			now := was + uint64(r.IntN(4))
			side[i], before = now-before, now
			h.Count += now
		}
	}
	h.Count += uint64(r.IntN(20)) / 19 // of NaN
}

func observeFloats(r Random, h *model.Histogram) {
	count := 0.0
	more := func(to *uint64) {
		v := math.Float64frombits(*to) + float64(r.IntN(3)) + float64(r.IntN(1<<30))/(1<<30)*float64(r.IntN(2))
		count += v
		*to = math.Float64bits(v)
	}
	if h.Schema != -53 {
		more(&h.ZeroCount)
	}
	for _, side := range [][]uint64{h.Positive, h.Negative} {
		for i := range side {
			more(&side[i])
		}
	}
	h.Count = math.Float64bits(count)
}

// Histogram returns a histogram that the write path takes.
func Histogram(r Random) *model.Histogram {
	h := NewHistogram(r, r.IntN(HistogramKinds))
	Observe(r, h)
	return h
}

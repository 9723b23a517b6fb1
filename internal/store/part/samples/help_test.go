package samples

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var anyTime = model.TimeRange{Min: -1 << 63, Max: 1<<63 - 1}

// sameRows compares bit for bit; unknown starts may be missing or zero.
func sameRows(a, b *model.Rows) bool {
	if !slices.Equal(a.Times, b.Times) {
		return false
	}
	for i := range a.Times {
		if a.Start(i) != b.Start(i) || !a.Same(i, b, i) {
			return false
		}
	}
	return true
}

// randomSpans gives spans and how many buckets they have.
func randomSpans(r *rand.Rand, most int) (spans []model.HistogramSpan, n int) {
	for range r.IntN(4) {
		s := model.HistogramSpan{Offset: int32(r.IntN(7) - 3), Length: uint32(r.IntN(most))}
		if r.IntN(20) == 0 {
			s.Offset = []int32{math.MinInt32, math.MaxInt32}[r.IntN(2)]
		}
		spans, n = append(spans, s), n+int(s.Length)
	}
	return spans, n
}

// randomHistogram fills h with anything that may be stored.
func randomHistogram(r *rand.Rand, h *model.Histogram) {
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
	h.ZeroThreshold = specials[r.IntN(len(specials))]
	h.Sum, h.Count, h.ZeroCount = []uint64{specials[r.IntN(len(specials))], r.Uint64(), math.Float64bits(float64(r.IntN(20000)) / 100)}[r.IntN(3)], number(), number()
	var positive, negative int
	h.PositiveSpans, positive = randomSpans(r, 12)
	h.NegativeSpans, negative = randomSpans(r, 3)
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

var specials = []uint64{model.StaleNaN, 0, 1 << 63, math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), 0x7ff8000000000001, 1}

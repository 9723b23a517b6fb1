package promql

import (
	"math"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

// drawHistogram draws histograms of all shapes with small counts, so that neighbours are similar: some are
// resets, others are not.
func drawHistogram(t *rapid.T) *model.Histogram {
	h := &model.Histogram{
		Float: rapid.Bool().Draw(t, "float"), Gauge: rapid.IntRange(0, 5).Draw(t, "gauge") == 0,
		Schema: rapid.SampledFrom([]int32{0, 0, 0, 1, 9, histogram.CustomBucketsSchema}).Draw(t, "schema"),
		Sum:    rapid.SampledFrom([]uint64{math.Float64bits(1.5), math.Float64bits(-1), 1 << 63, 0x7ff8000000000007}).Draw(t, "sum"),
	}
	count := func(label string) uint64 {
		n := rapid.Uint64Range(0, 2).Draw(t, label)
		if h.Float {
			return math.Float64bits(float64(n) + 0.5)
		}
		return n
	}
	h.Count = count("count")
	if h.Schema == histogram.CustomBucketsSchema {
		h.Custom = rapid.SampledFrom([][]uint64{{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9, 10}}).Draw(t, "bounds")
		h.PositiveSpans, h.Positive = drawBuckets(t, h.Float, 5)
		return h
	}
	h.ZeroCount, h.ZeroThreshold = count("zero count"), math.Float64bits(rapid.SampledFrom([]float64{0, 1e-3}).Draw(t, "threshold"))
	h.PositiveSpans, h.Positive = drawBuckets(t, h.Float, 20)
	h.NegativeSpans, h.Negative = drawBuckets(t, h.Float, 20)
	return h
}

func drawBuckets(t *rapid.T, float bool, most int) (spans []model.HistogramSpan, buckets []uint64) {
	at, last := 0, int64(0)
	for range rapid.IntRange(0, 2).Draw(t, "spans") {
		offset, length := rapid.IntRange(0, 1).Draw(t, "offset"), rapid.IntRange(0, 2).Draw(t, "length")
		if at += offset + length; at > most {
			break
		}
		spans = append(spans, model.HistogramSpan{Offset: int32(offset), Length: uint32(length)})
		for range length {
			n := rapid.Int64Range(0, 2).Draw(t, "bucket")
			if float {
				buckets = append(buckets, math.Float64bits(float64(n)))
			} else {
				buckets = append(buckets, uint64(n-last))
				last = n
			}
		}
	}
	return spans, buckets
}

func stale() *model.Histogram { return &model.Histogram{Sum: model.StaleNaN} }

// sample is a row: a float if h is nil.
type sample struct {
	at int64 // ms
	v  uint64
	h  *model.Histogram
}

func drawSamples(t *rapid.T) []sample {
	var out []sample
	at := rapid.Int64Range(-20, 20).Draw(t, "first")
	var last *model.Histogram
	for range rapid.IntRange(0, 20).Draw(t, "samples") {
		s := sample{at: at}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			s.v = rapid.Uint64().Draw(t, "bits")
		case 1:
			s.h = stale()
		case 2, 3, 4, 5:
			if s.h = last; s.h != nil { // the same histogram
				break
			}
			fallthrough
		default:
			s.h = drawHistogram(t)
		}
		last = s.h
		out = append(out, s)
		at += rapid.Int64Range(1, 5).Draw(t, "gap")
	}
	return out
}

func rowsOf(all []sample) *model.Rows {
	var rows model.Rows
	for _, s := range all {
		if s.h == nil {
			rows.Append(s.at*nanosPerMilli, s.v, 0)
		} else {
			rows.AppendBlob(s.at*nanosPerMilli, model.KindHistogram, model.AppendHistogram(nil, s.h), 0)
		}
	}
	return &rows
}

// plainFloat converts to the engine's form in the simplest way, without a hint.
func plainFloat(h *model.Histogram) *histogram.FloatHistogram {
	if h.Sum == model.StaleNaN {
		return &histogram.FloatHistogram{Sum: math.Float64frombits(h.Sum)}
	}
	if !h.Float {
		return plainInteger(h).ToFloat(nil)
	}
	f := &histogram.FloatHistogram{
		Schema: h.Schema, Sum: math.Float64frombits(h.Sum), Count: math.Float64frombits(h.Count),
		ZeroCount: math.Float64frombits(h.ZeroCount), ZeroThreshold: math.Float64frombits(h.ZeroThreshold),
		PositiveSpans: appendSpans(nil, h.PositiveSpans), NegativeSpans: appendSpans(nil, h.NegativeSpans),
		PositiveBuckets: floats(h.Positive), NegativeBuckets: floats(h.Negative), CustomValues: floats(h.Custom),
	}
	if f.Schema > histogram.ExponentialSchemaMax {
		_ = f.ReduceResolution(histogram.ExponentialSchemaMax)
	}
	return f
}

func plainInteger(h *model.Histogram) *histogram.Histogram {
	if h.Sum == model.StaleNaN {
		return &histogram.Histogram{Sum: math.Float64frombits(h.Sum)}
	}
	i := &histogram.Histogram{
		Schema: h.Schema, Sum: math.Float64frombits(h.Sum), Count: h.Count,
		ZeroCount: h.ZeroCount, ZeroThreshold: math.Float64frombits(h.ZeroThreshold),
		PositiveSpans: appendSpans(nil, h.PositiveSpans), NegativeSpans: appendSpans(nil, h.NegativeSpans),
		CustomValues: floats(h.Custom),
	}
	for _, b := range h.Positive {
		i.PositiveBuckets = append(i.PositiveBuckets, int64(b))
	}
	for _, b := range h.Negative {
		i.NegativeBuckets = append(i.NegativeBuckets, int64(b))
	}
	if i.Schema > histogram.ExponentialSchemaMax {
		_ = i.ReduceResolution(histogram.ExponentialSchemaMax)
	}
	return i
}

func floats(bits []uint64) []float64 {
	var out []float64
	for _, b := range bits {
		out = append(out, math.Float64frombits(b))
	}
	return out
}

// sameFloat compares everything but the hint, bit for bit.
func sameFloat(a, b *histogram.FloatHistogram) bool {
	x, y := *a, *b
	x.CounterResetHint, y.CounterResetHint = 0, 0
	return x.Equals(&y)
}

func sameInteger(a, b *histogram.Histogram) bool {
	x, y := *a, *b
	x.CounterResetHint, y.CounterResetHint = 0, 0
	return x.Equals(&y)
}

// TestShapes: the engine accepts what the generator draws.
func TestShapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistogram(t)
		if err := checkHistogram(h); err != nil {
			t.Fatal(err)
		}
	})
}

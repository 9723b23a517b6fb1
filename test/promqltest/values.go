package promqltest

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"

	"github.com/shaledb/shale/internal/model"
)

// fromInteger and fromFloat convert upstream's histograms to the stored form, like a receiver. The only
// stored reset hint is that of gauges.

func fromInteger(h *histogram.Histogram) *model.Histogram {
	out := &model.Histogram{
		Gauge: h.CounterResetHint == histogram.GaugeType, Schema: h.Schema,
		ZeroThreshold: math.Float64bits(h.ZeroThreshold), Sum: math.Float64bits(h.Sum), Count: h.Count, ZeroCount: h.ZeroCount,
		PositiveSpans: fromSpans(h.PositiveSpans), NegativeSpans: fromSpans(h.NegativeSpans), Custom: fromFloats(h.CustomValues),
	}
	for _, b := range h.PositiveBuckets {
		out.Positive = append(out.Positive, uint64(b))
	}
	for _, b := range h.NegativeBuckets {
		out.Negative = append(out.Negative, uint64(b))
	}
	return out
}

func fromFloat(h *histogram.FloatHistogram) *model.Histogram {
	return &model.Histogram{
		Gauge: h.CounterResetHint == histogram.GaugeType, Float: true, Schema: h.Schema,
		ZeroThreshold: math.Float64bits(h.ZeroThreshold), Sum: math.Float64bits(h.Sum),
		Count: math.Float64bits(h.Count), ZeroCount: math.Float64bits(h.ZeroCount),
		PositiveSpans: fromSpans(h.PositiveSpans), NegativeSpans: fromSpans(h.NegativeSpans),
		Positive: fromFloats(h.PositiveBuckets), Negative: fromFloats(h.NegativeBuckets), Custom: fromFloats(h.CustomValues),
	}
}

func fromSpans(spans []histogram.Span) []model.HistogramSpan {
	var out []model.HistogramSpan
	for _, s := range spans {
		out = append(out, model.HistogramSpan{Offset: s.Offset, Length: s.Length})
	}
	return out
}

func fromFloats(fs []float64) []uint64 {
	var out []uint64
	for _, f := range fs {
		out = append(out, math.Float64bits(f))
	}
	return out
}

package promwrite

import (
	"math"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

var words = []string{"", "__name__", "job", "instance", "a", "x_total", "requests_bucket", "latency_sum", "é", "\xff", strings.Repeat("n", 130), strings.Repeat("é", 100)}

func word(t *rapid.T) string { return rapid.SampledFrom(words).Draw(t, "word") }

func value(t *rapid.T) float64 {
	return math.Float64frombits(rapid.OneOf(
		rapid.Uint64(),
		rapid.SampledFrom([]uint64{0, 1 << 63, model.StaleNaN, 0x7ff8000000000001, math.Float64bits(math.Inf(1)), math.Float64bits(1)}),
	).Draw(t, "bits"))
}

func millis(t *rapid.T) int64 {
	return rapid.Int64().Draw(t, "ms") >> rapid.IntRange(0, 63).Draw(t, "shift")
}

// randomSide draws spans and as many counts, most of the time.
func randomSide(t *rapid.T) (spans []histogram.Span, counts []int64) {
	n := 0
	for i := range rapid.IntRange(0, 3).Draw(t, "spans") {
		s := histogram.Span{Offset: rapid.Int32Range(0, 40).Draw(t, "offset"), Length: rapid.Uint32Range(0, 5).Draw(t, "length")}
		if i == 0 || rapid.IntRange(0, 30).Draw(t, "bad offset") == 0 {
			s.Offset -= 20
		}
		spans = append(spans, s)
		n += int(s.Length)
	}
	if rapid.IntRange(0, 20).Draw(t, "bad number") == 0 {
		n++
	}
	for range n {
		counts = append(counts, rapid.Int64Range(0, 1000).Draw(t, "count"))
	}
	return spans, counts
}

// randomHistogram draws a histogram that is valid most of the time: as integers, with the same as floats.
func randomHistogram(t *rapid.T) (*histogram.Histogram, *histogram.FloatHistogram) {
	h := &histogram.Histogram{
		CounterResetHint: histogram.CounterResetHint(rapid.IntRange(0, 3).Draw(t, "hint")),
		Schema:           rapid.SampledFrom([]int32{-53, -53, -53, -10, -9, -5, -4, 0, 3, 8, 9, 20, 52, 53}).Draw(t, "schema"),
		Sum:              value(t), ZeroThreshold: 0.001, ZeroCount: rapid.Uint64Range(0, 9).Draw(t, "zeros"),
	}
	var positive, negative []int64
	h.PositiveSpans, positive = randomSide(t)
	h.NegativeSpans, negative = randomSide(t)
	if h.Schema == -53 && rapid.IntRange(0, 9).Draw(t, "as custom buckets are") > 0 {
		h.ZeroThreshold, h.ZeroCount, h.NegativeSpans, negative = 0, 0, nil, nil
		for i := range h.PositiveSpans {
			h.PositiveSpans[i].Offset = max(h.PositiveSpans[i].Offset, 0)
		}
	}
	if h.Schema == -53 || rapid.IntRange(0, 20).Draw(t, "bounds where none belong") == 0 {
		for i := range rapid.IntRange(0, 130).Draw(t, "bounds") {
			h.CustomValues = append(h.CustomValues, float64(i))
		}
	}
	f := &histogram.FloatHistogram{
		CounterResetHint: h.CounterResetHint, Schema: h.Schema, Sum: h.Sum, ZeroThreshold: h.ZeroThreshold,
		PositiveSpans: h.PositiveSpans, NegativeSpans: h.NegativeSpans, CustomValues: h.CustomValues,
		Count: value(t), ZeroCount: float64(h.ZeroCount),
	}
	h.Count = h.ZeroCount
	for _, side := range []struct {
		counts []int64
		deltas *[]int64
		floats *[]float64
	}{{positive, &h.PositiveBuckets, &f.PositiveBuckets}, {negative, &h.NegativeBuckets, &f.NegativeBuckets}} {
		last := int64(0)
		for _, c := range side.counts {
			h.Count += uint64(c)
			*side.deltas = append(*side.deltas, c-last)
			last = c
			fraction := float64(c) + 0.5
			if rapid.IntRange(0, 40).Draw(t, "odd count") == 0 {
				fraction = value(t)
			}
			*side.floats = append(*side.floats, fraction)
		}
	}
	if rapid.IntRange(0, 20).Draw(t, "bad count") == 0 {
		h.Count += rapid.Uint64Range(0, 3).Draw(t, "more") - 1
	}
	return h, f
}

func randomV1(t *rapid.T) *prompb.WriteRequest {
	req := &prompb.WriteRequest{}
	pairs := func(most int) (ls []prompb.Label) {
		for range rapid.IntRange(0, most).Draw(t, "labels") {
			ls = append(ls, prompb.Label{Name: word(t), Value: word(t)})
		}
		return ls
	}
	for range rapid.IntRange(0, 5).Draw(t, "series") {
		ts := prompb.TimeSeries{Labels: pairs(4)}
		if rapid.Bool().Draw(t, "named") {
			ts.Labels = append([]prompb.Label{{Name: model.NameLabel, Value: "m"}}, ts.Labels...)
		}
		for range rapid.IntRange(0, 3).Draw(t, "samples") {
			ts.Samples = append(ts.Samples, prompb.Sample{Value: value(t), Timestamp: millis(t)})
		}
		for range rapid.IntRange(0, 2).Draw(t, "histograms") {
			h, f := randomHistogram(t)
			if rapid.Bool().Draw(t, "float") {
				ts.Histograms = append(ts.Histograms, prompb.FromFloatHistogram(millis(t), f))
			} else {
				ts.Histograms = append(ts.Histograms, prompb.FromIntHistogram(millis(t), h))
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "exemplars") {
			ts.Exemplars = append(ts.Exemplars, prompb.Exemplar{Labels: pairs(3), Value: value(t), Timestamp: millis(t)})
		}
		req.Timeseries = append(req.Timeseries, ts)
	}
	for range rapid.IntRange(0, 2).Draw(t, "metadata") {
		req.Metadata = append(req.Metadata, prompb.MetricMetadata{
			Type: prompb.MetricMetadata_MetricType(rapid.Int32Range(0, 9).Draw(t, "type")), MetricFamilyName: word(t), Help: word(t), Unit: word(t),
		})
	}
	return req
}

func randomV2(t *rapid.T) *writev2.Request {
	req := &writev2.Request{Symbols: []string{""}}
	for range rapid.IntRange(2, 14).Draw(t, "symbols") {
		req.Symbols = append(req.Symbols, word(t))
	}
	req.Symbols[1], req.Symbols[2] = model.NameLabel, "requests_bucket"
	ref := func() uint32 {
		most := len(req.Symbols) - 1
		if rapid.IntRange(0, 60).Draw(t, "bad reference") == 0 {
			most += 2
		}
		return uint32(rapid.IntRange(0, most).Draw(t, "ref"))
	}
	refs := func(most int) (refs []uint32) {
		for range rapid.IntRange(0, most).Draw(t, "labels") {
			refs = append(refs, ref(), ref())
		}
		if rapid.IntRange(0, 40).Draw(t, "odd") == 0 {
			refs = append(refs, ref())
		}
		return refs
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "series") {
		ts := writev2.TimeSeries{LabelsRefs: refs(4)}
		if rapid.IntRange(0, 3).Draw(t, "named") > 0 {
			ts.LabelsRefs = append([]uint32{1, 2}, ts.LabelsRefs...)
		}
		if i > 0 && rapid.IntRange(0, 2).Draw(t, "like the one before") == 0 {
			ts.LabelsRefs = append([]uint32(nil), req.Timeseries[i-1].LabelsRefs...)
			if n := len(ts.LabelsRefs); n > 0 {
				ts.LabelsRefs[rapid.IntRange(0, n-1).Draw(t, "but for")] = ref()
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "samples") {
			ts.Samples = append(ts.Samples, writev2.Sample{Value: value(t), Timestamp: millis(t), StartTimestamp: millis(t)})
		}
		for range rapid.IntRange(0, 2).Draw(t, "histograms") {
			h, f := randomHistogram(t)
			if rapid.Bool().Draw(t, "float") {
				ts.Histograms = append(ts.Histograms, writev2.FromFloatHistogram(millis(t), millis(t), f))
			} else {
				ts.Histograms = append(ts.Histograms, writev2.FromIntHistogram(millis(t), millis(t), h))
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "exemplars") {
			ts.Exemplars = append(ts.Exemplars, writev2.Exemplar{LabelsRefs: refs(3), Value: value(t), Timestamp: millis(t)})
		}
		if rapid.Bool().Draw(t, "with metadata") {
			ts.Metadata = writev2.Metadata{Type: writev2.Metadata_MetricType(rapid.Int32Range(0, 9).Draw(t, "type")), HelpRef: ref(), UnitRef: ref()}
		}
		if rapid.IntRange(0, 3).Draw(t, "created") == 0 {
			ts.XXX_unrecognized = field6(millis(t))
		}
		req.Timeseries = append(req.Timeseries, ts)
	}
	return req
}

// TestRandomRequestsV1 encodes random requests with upstream's encoder and compares the batch with the
// result of upstream's decoder and rules. The encoder omits values that equal zero, and with them the
// sign of -0.
func TestRandomRequestsV1(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		raw, err := randomV1(rt).Marshal()
		if err != nil {
			rt.Fatal(err)
		}
		var sent prompb.WriteRequest
		if err := sent.Unmarshal(raw); err != nil {
			rt.Fatal(err)
		}
		compare(rt, v1, raw, expectedV1(&sent))
	})
}

func TestRandomRequestsV2(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		req := randomV2(rt)
		raw, err := req.Marshal()
		if rapid.Bool().Draw(rt, "optimized") {
			raw, err = req.OptimizedMarshal(nil)
		}
		if err != nil {
			rt.Fatal(err)
		}
		var sent writev2.Request
		if err := sent.Unmarshal(raw); err != nil {
			rt.Fatal(err)
		}
		compare(rt, v2, raw, expectedV2(&sent))
	})
}

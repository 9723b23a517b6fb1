//go:build e2e

package badinput

import (
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

type (
	hist  = writev2.Histogram
	spans = []writev2.BucketSpan
)

func intCount(n uint64) *writev2.Histogram_CountInt { return &writev2.Histogram_CountInt{CountInt: n} }
func floatCount(v float64) *writev2.Histogram_CountFloat {
	return &writev2.Histogram_CountFloat{CountFloat: v}
}
func intZero(n uint64) *writev2.Histogram_ZeroCountInt {
	return &writev2.Histogram_ZeroCountInt{ZeroCountInt: n}
}
func floatZero(v float64) *writev2.Histogram_ZeroCountFloat {
	return &writev2.Histogram_ZeroCountFloat{ZeroCountFloat: v}
}

// goodHistogram has 6 observations: one is zero, and five lie in three buckets.
func goodHistogram() hist {
	return hist{Count: intCount(6), Sum: 10, ZeroThreshold: 0.001, ZeroCount: intZero(1), Timestamp: nowMs(),
		PositiveSpans: spans{{Offset: 0, Length: 3}}, PositiveDeltas: []int64{1, 1, 0}}
}

func floatHistogram() hist {
	return hist{Count: floatCount(6), Sum: 10, ZeroThreshold: 0.001, ZeroCount: floatZero(1), Timestamp: nowMs(),
		PositiveSpans: spans{{Offset: 0, Length: 3}}, PositiveCounts: []float64{1, 2, 2}}
}

func customHistogram() hist {
	return hist{Schema: -53, Count: intCount(5), Sum: 10, Timestamp: nowMs(), CustomValues: []float64{1, 2},
		PositiveSpans: spans{{Offset: 0, Length: 3}}, PositiveDeltas: []int64{1, 1, 0}}
}

func buckets(n int) hist {
	h := hist{Count: intCount(uint64(n)), Sum: 1, Timestamp: nowMs(), PositiveSpans: spans{{Length: uint32(n)}}, PositiveDeltas: make([]int64, n)}
	h.PositiveDeltas[0] = 1
	return h
}

func histograms() group {
	g := group{file: "remote-write-histograms", title: "Native histograms, by remote write 2.0"}
	add := func(input string, make func() hist, spoil func(h *hist)) {
		g.adder()(input, 1, nil, func() []byte {
			h := make()
			spoil(&h)
			return message2(symbols("bi_hist", input), writev2.TimeSeries{LabelsRefs: []uint32{1, 5, 3, 6}, Histograms: []hist{h}})
		})
		last := &g.attacks[len(g.attacks)-1]
		send := last.do
		last.do = func(t *testing.T, s *server) (string, string) {
			// The golden text keeps the reason only: the text before it would be cut off.
			outcome, text := send(t, s)
			if _, why, ok := strings.Cut(text, "  invalid_histogram: "); ok {
				text = why
			}
			if strings.HasPrefix(outcome, "204") {
				text = s.readBack(input)
			}
			return outcome, text
		}
	}
	whole := func(input string, spoil func(h *hist)) { add(input, goodHistogram, spoil) }
	float := func(input string, spoil func(h *hist)) { add("float: "+input, floatHistogram, spoil) }
	custom := func(input string, spoil func(h *hist)) { add("custom bounds: "+input, customHistogram, spoil) }

	whole("nothing but a time", func(h *hist) { *h = hist{Timestamp: h.Timestamp} })
	whole("nothing at all", func(h *hist) { *h = hist{} })
	whole("no count", func(h *hist) { h.Count = nil })
	whole("no zero count", func(h *hist) { h.ZeroCount = nil; h.Count = intCount(5) })
	whole("count that is too small", func(h *hist) { h.Count = intCount(1) })
	whole("count that is too large", func(h *hist) { h.Count = intCount(7) })
	whole("count 2^64-1", func(h *hist) { h.Count = intCount(math.MaxUint64) })
	whole("zero count 2^64-1", func(h *hist) { h.ZeroCount = intZero(math.MaxUint64) })
	whole("zero count 2^64-5, so that the sum overflows to the count", func(h *hist) { h.ZeroCount = intZero(math.MaxUint64 - 4); h.Count = intCount(0) })
	whole("all counts zero", func(h *hist) { h.Count, h.ZeroCount, h.PositiveDeltas = intCount(0), intZero(0), []int64{0, 0, 0} })
	whole("a count of floats and buckets of integers", func(h *hist) { h.Count = floatCount(6) })
	whole("a count of integers and buckets of floats", func(h *hist) { h.PositiveCounts = []float64{1, 2, 2}; h.PositiveDeltas = nil })
	whole("buckets of integers and of floats", func(h *hist) { h.PositiveCounts = []float64{1, 2, 2} })
	whole("a negative bucket", func(h *hist) { h.PositiveDeltas = []int64{1, -5, 9} })
	whole("deltas that overflow", func(h *hist) { h.PositiveDeltas = []int64{math.MaxInt64, math.MaxInt64, 2} })
	whole("a delta of int64 min", func(h *hist) { h.PositiveDeltas = []int64{math.MinInt64, math.MinInt64, 5} })
	whole("more buckets than spans say", func(h *hist) { h.PositiveDeltas = []int64{1, 1, 0, -2} })
	whole("fewer buckets than spans say", func(h *hist) { h.PositiveDeltas = []int64{1, 1} })
	whole("buckets without spans", func(h *hist) { h.PositiveSpans = nil })
	whole("spans without buckets", func(h *hist) { h.PositiveDeltas = nil })
	whole("a span of 2^32-1", func(h *hist) { h.PositiveSpans = spans{{Length: math.MaxUint32}} })
	whole("spans whose sum overflows to 3", func(h *hist) { h.PositiveSpans = spans{{Length: math.MaxUint32}, {Length: 4}} })
	whole("a negative offset of the second span", func(h *hist) { h.PositiveSpans = spans{{Length: 1}, {Offset: -1, Length: 2}} })
	whole("an offset of int32 min", func(h *hist) { h.PositiveSpans = spans{{Offset: math.MinInt32, Length: 3}} })
	whole("an offset of int32 max", func(h *hist) { h.PositiveSpans = spans{{Offset: math.MaxInt32, Length: 3}} })
	whole("offsets that overflow", func(h *hist) {
		h.PositiveSpans = spans{{Offset: math.MaxInt32, Length: 1}, {Offset: math.MaxInt32, Length: 2}}
	})
	whole("negative buckets with an offset of int32 max", func(h *hist) {
		h.NegativeSpans, h.NegativeDeltas, h.PositiveSpans, h.PositiveDeltas = spans{{Offset: math.MaxInt32, Length: 3}}, h.PositiveDeltas, nil, nil
	})
	whole("10,000 empty spans", func(h *hist) { h.PositiveSpans = append(h.PositiveSpans, make(spans, 10_000)...) })
	whole("2 million empty spans", func(h *hist) { h.PositiveSpans = append(h.PositiveSpans, make(spans, 2_000_000)...) })
	add("4,096 buckets", func() hist { return buckets(4096) }, func(h *hist) {})
	add("4,097 buckets", func() hist { return buckets(4097) }, func(h *hist) {})
	add("a million buckets", func() hist { return buckets(1_000_000) }, func(h *hist) {})
	for _, schema := range []int32{-5, 9, 52, 53, -54, 99, math.MaxInt32, math.MinInt32} {
		whole(fmt.Sprint("schema ", schema), func(h *hist) { h.Schema = schema })
	}
	add("4,097 buckets of schema 52", func() hist { return buckets(4097) }, func(h *hist) { h.Schema = 52 })
	whole("schema 52 with offsets at the ends of int32", func(h *hist) {
		h.Schema, h.PositiveSpans = 52, spans{{Offset: math.MinInt32, Length: 1}, {Offset: math.MaxInt32, Length: 2}}
	})
	whole("a negative zero threshold", func(h *hist) { h.ZeroThreshold = -1 })
	whole("zero threshold NaN", func(h *hist) { h.ZeroThreshold = math.NaN() })
	whole("zero threshold infinite", func(h *hist) { h.ZeroThreshold = math.Inf(1) })
	whole("sum NaN", func(h *hist) { h.Sum = math.NaN() })
	whole("sum infinite", func(h *hist) { h.Sum = math.Inf(1) })
	whole("a stale marker with buckets", func(h *hist) { h.Sum = math.Float64frombits(0x7ff0000000000002) })
	whole("reset hint 99", func(h *hist) { h.ResetHint = 99 })
	whole("reset hint -1", func(h *hist) { h.ResetHint = -1 })
	whole("time: int64 max", func(h *hist) { h.Timestamp = math.MaxInt64 })
	whole("start timestamp: int64 min", func(h *hist) { h.StartTimestamp = math.MinInt64 })
	whole("bounds, though the schema has none", func(h *hist) { h.CustomValues = []float64{1, 2} })
	float("count NaN", func(h *hist) { h.Count = floatCount(math.NaN()) })
	float("count -1", func(h *hist) { h.Count = floatCount(-1) })
	float("count infinite", func(h *hist) { h.Count = floatCount(math.Inf(1)) })
	float("zero count NaN", func(h *hist) { h.ZeroCount = floatZero(math.NaN()) })
	float("zero count -1", func(h *hist) { h.ZeroCount = floatZero(-1) })
	float("a bucket NaN", func(h *hist) { h.PositiveCounts[1] = math.NaN() })
	float("a bucket -1", func(h *hist) { h.PositiveCounts[1] = -1 })
	float("a bucket infinite", func(h *hist) { h.PositiveCounts[1] = math.Inf(1) })
	float("a bucket 1e308, so that the sum overflows", func(h *hist) { h.PositiveCounts = []float64{1e308, 1e308, 1} })
	float("a count that is too small", func(h *hist) { h.Count = floatCount(1) })
	custom("none", func(h *hist) { h.CustomValues = nil })
	custom("too few", func(h *hist) { h.CustomValues = []float64{1} })
	custom("descending", func(h *hist) { h.CustomValues = []float64{2, 1} })
	custom("equal", func(h *hist) { h.CustomValues = []float64{1, 1} })
	custom("NaN", func(h *hist) { h.CustomValues = []float64{1, math.NaN()} })
	custom("+Inf", func(h *hist) { h.CustomValues = []float64{1, math.Inf(1)} })
	custom("-Inf", func(h *hist) { h.CustomValues = []float64{math.Inf(-1), 1} })
	custom("100,000", func(h *hist) {
		h.CustomValues = nil
		for i := range 100_000 {
			h.CustomValues = append(h.CustomValues, float64(i))
		}
	})
	custom("a negative offset of the first span", func(h *hist) { h.PositiveSpans[0].Offset = -1 })
	custom("negative buckets", func(h *hist) {
		h.NegativeSpans, h.NegativeDeltas, h.Count = spans{{Length: 1}}, []int64{1}, intCount(6)
	})
	custom("a zero count", func(h *hist) { h.ZeroCount, h.Count = intZero(1), intCount(6) })
	custom("a zero threshold", func(h *hist) { h.ZeroThreshold = 0.1 })
	g.adder()("100,000 bad histograms", 100_000, nil, func() []byte {
		list := make([]hist, 100_000)
		for i := range list {
			list[i] = hist{Timestamp: nowMs(), Schema: 99}
		}
		return message2(symbols("bi_hist"), writev2.TimeSeries{LabelsRefs: []uint32{1, 5}, Histograms: list})
	})
	g.adder()("a good histogram between bad ones", 3, nil, func() []byte {
		bad, good := goodHistogram(), goodHistogram()
		bad.Schema = 99
		return message2(symbols("bi_hist"), writev2.TimeSeries{LabelsRefs: []uint32{1, 5}, Histograms: []hist{bad, good, bad}})
	})
	g.attacks = append(g.attacks, attack{input: "of 1.0: a negative bucket", samples: 1, do: func(_ *testing.T, s *server) (string, string) {
		status, text := s.post(nil, message1(prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: "bi_hist1"}}, Histograms: []prompb.Histogram{{
			Count: &prompb.Histogram_CountInt{CountInt: 6}, Timestamp: nowMs(), PositiveSpans: []prompb.BucketSpan{{Length: 2}}, PositiveDeltas: []int64{1, -5}}}}))
		return fmt.Sprint(status), text
	}})
	return g
}

// readBack queries a stored histogram in every way and returns the first error: what is stored must be
// readable.
func (s *server) readBack(input string) string {
	series := fmt.Sprintf("bi_hist{a=%q}", input)
	for _, q := range []string{"%s[1h]", "sum_over_time(%s[1h])", "histogram_quantile(0.9, %s)", "histogram_fraction(0, 1, %s)"} {
		if status, text := s.ask("/api/v1/query", url.Values{"query": {fmt.Sprintf(q, series)}}); status != "200" {
			return "stored; the query " + fmt.Sprintf(q, "...") + ": " + status + " " + text
		}
	}
	for i, what := range []string{"samples", "chunks"} {
		b, err := (&prompb.ReadRequest{AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{prompb.ReadRequest_ResponseType(i)},
			Queries: []*prompb.Query{{EndTimestampMs: nowMs(), Matchers: []*prompb.LabelMatcher{{Name: "a", Value: input}}}}}).Marshal()
		if err != nil {
			return err.Error()
		}
		if status, text := s.read(nil, s2.EncodeSnappy(nil, b)); status != "200" {
			return "stored; remote read of " + what + ": " + status + " " + text
		}
	}
	return "stored and read back"
}

// message1 encodes a body of remote write 1.0.
func message1(list ...prompb.TimeSeries) []byte {
	b, err := (&prompb.WriteRequest{Timeseries: list}).Marshal()
	if err != nil {
		panic(err) // every message can be marshalled
	}
	return s2.EncodeSnappy(nil, b)
}

func exemplars() group {
	g := group{file: "remote-write-exemplars", title: "Exemplars, by remote write 2.0"}
	add := func(input string, symbols []string, list func() []writev2.Exemplar) {
		g.adder()(input, 1, nil, func() []byte {
			return message2(symbols, writev2.TimeSeries{LabelsRefs: []uint32{1, 2}, Samples: one2(), Exemplars: list()})
		})
	}
	just := func(input string, symbols []string, v float64, ms int64, refs ...uint32) {
		add(input, symbols, func() []writev2.Exemplar {
			if ms == -1 {
				ms = nowMs()
			}
			return []writev2.Exemplar{{LabelsRefs: refs, Value: v, Timestamp: ms}}
		})
	}
	just("no labels", symbols(), 1, -1)
	just("labels of 129 characters", symbols(strings.Repeat("v", 128)), 1, -1, 3, 5)
	just("labels of 128 characters of three bytes", symbols(strings.Repeat("\u20ac", 127)), 1, -1, 3, 5)
	just("labels of 1 MB", symbols(strings.Repeat("v", 1_000_000)), 1, -1, 3, 5)
	just("one reference", symbols(), 1, -1, 3)
	just("a reference past the last symbol", symbols(), 1, -1, 3, 9)
	just("a label twice", symbols(), 1, -1, 3, 4, 3, 2)
	just("an empty label name", symbols(), 1, -1, 0, 4)
	just("an empty label value", symbols(), 1, -1, 3, 0)
	just("invalid UTF-8 in a label", symbols("\xff"), 1, -1, 3, 5)
	just("value NaN", symbols(), math.NaN(), -1, 3, 4)
	just("value: a stale marker", symbols(), math.Float64frombits(0x7ff0000000000002), -1, 3, 4)
	just("time: 0", symbols(), 1, 0, 3, 4)
	just("time: int64 min", symbols(), 1, math.MinInt64, 3, 4)
	just("time: int64 max", symbols(), 1, math.MaxInt64, 3, 4)
	add("the same 1,000 times", symbols(), func() []writev2.Exemplar {
		list := make([]writev2.Exemplar, 1000)
		now := nowMs()
		for i := range list {
			list[i] = writev2.Exemplar{LabelsRefs: []uint32{3, 4}, Value: 1, Timestamp: now}
		}
		return list
	})
	add("200,000 bad ones", symbols(), func() []writev2.Exemplar {
		list := make([]writev2.Exemplar, 200_000)
		for i := range list {
			list[i] = writev2.Exemplar{LabelsRefs: []uint32{3}, Timestamp: 1}
		}
		return list
	})
	g.adder()("without samples, of a series without a name", 0, nil, func() []byte {
		return message2(symbols(), writev2.TimeSeries{LabelsRefs: []uint32{3, 4}, Exemplars: []writev2.Exemplar{{LabelsRefs: []uint32{3, 4}, Timestamp: nowMs()}}})
	})
	g.attacks = append(g.attacks, attack{input: "of 1.0: labels of 129 characters", samples: 1, do: func(_ *testing.T, s *server) (string, string) {
		status, text := s.post(nil, message1(prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: "bi_ex1"}}, Samples: []prompb.Sample{{Value: 1, Timestamp: nowMs()}},
			Exemplars: []prompb.Exemplar{{Labels: []prompb.Label{{Name: "a", Value: strings.Repeat("v", 128)}}, Value: 1, Timestamp: nowMs()}}}))
		return fmt.Sprint(status), text
	}})
	return g
}

func metadataTexts() group {
	g := group{file: "remote-write-metadata", title: "Type, help and unit of metric families, by remote write"}
	add := func(input string, symbols []string, m writev2.Metadata) {
		g.adder()(input, 1, nil, func() []byte {
			return message2(symbols, writev2.TimeSeries{LabelsRefs: []uint32{1, 2}, Samples: one2(), Metadata: m})
		})
	}
	add("a reference past the last symbol as the help", symbols(), writev2.Metadata{Type: 1, HelpRef: 9})
	add("a reference of 4294967295 as the unit", symbols(), writev2.Metadata{Type: 1, UnitRef: math.MaxUint32})
	add("type 99", symbols(), writev2.Metadata{Type: 99, HelpRef: 3})
	add("type -1", symbols(), writev2.Metadata{Type: -1, HelpRef: 3})
	add("a help of 1 MB", symbols(strings.Repeat("h", 1_000_000)), writev2.Metadata{Type: 1, HelpRef: 5})
	add("a unit of 1 MB", symbols(strings.Repeat("u", 1_000_000)), writev2.Metadata{Type: 1, UnitRef: 5})
	add("invalid UTF-8 in the help", symbols("\xff\xfe"), writev2.Metadata{Type: 1, HelpRef: 5})
	of1 := func(input string, list func() []prompb.MetricMetadata) {
		g.attacks = append(g.attacks, attack{input: "of 1.0: " + input, do: func(_ *testing.T, s *server) (string, string) {
			b, err := (&prompb.WriteRequest{Metadata: list()}).Marshal()
			if err != nil {
				return "failed", err.Error()
			}
			status, text := s.post([]string{"X-Scope-OrgID", "t0"}, s2.EncodeSnappy(nil, b))
			return fmt.Sprint(status), text
		}})
	}
	of1("no name", func() []prompb.MetricMetadata { return []prompb.MetricMetadata{{Type: 1, Help: "h"}} })
	of1("a name of 1 MB", func() []prompb.MetricMetadata {
		return []prompb.MetricMetadata{{Type: 1, MetricFamilyName: strings.Repeat("n", 1_000_000)}}
	})
	of1("type 99", func() []prompb.MetricMetadata { return []prompb.MetricMetadata{{Type: 99, MetricFamilyName: "bi_m"}} })
	of1("100 families with a help of 60,000 bytes", func() (list []prompb.MetricMetadata) {
		for i := range 100 {
			list = append(list, prompb.MetricMetadata{Type: 1, MetricFamilyName: fmt.Sprint("bi_long_", i), Help: strings.Repeat("h", 60_000)})
		}
		return list
	})
	of1("20,000 families", func() (list []prompb.MetricMetadata) {
		for i := range 20_000 {
			list = append(list, prompb.MetricMetadata{Type: 1, MetricFamilyName: fmt.Sprint("bi_many_", i)})
		}
		return list
	})
	return g
}

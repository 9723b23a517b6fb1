package prom

import (
	"encoding/json"
	"math"
	"net/http/httptest"
	"testing"
	"unicode/utf8"

	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/jsonutil"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/api"
)

func encoded(write func(*body)) string {
	w := httptest.NewRecorder()
	b := &body{Body: api.NewBody(w, httptest.NewRequest("GET", "/", nil))}
	write(b)
	return string(b.Buf)
}

// upstream writes with the functions that upstream's API writes numbers with.
func upstream(write func(*jsoniter.Stream)) string {
	s := jsoniter.NewStream(jsoniter.ConfigCompatibleWithStandardLibrary, nil, 64)
	write(s)
	return string(s.Buffer())
}

func TestNumbersAreUpstreams(t *testing.T) {
	check := func(t rapid.TB, ms int64, f float64) {
		if got, want := encoded(func(b *body) { b.time(ms) }), upstream(func(s *jsoniter.Stream) { jsonutil.MarshalTimestamp(ms, s) }); got != want {
			t.Fatalf("time %d: %s, upstream %s", ms, got, want)
		}
		if got, want := encoded(func(b *body) { b.float(f) }), upstream(func(s *jsoniter.Stream) { jsonutil.MarshalFloat(f, s) }); got != want {
			t.Fatalf("value %x: %s, upstream %s", math.Float64bits(f), got, want)
		}
		want, err := json.Marshal(promql.Scalar{T: ms, V: f})
		if got := encoded(func(b *body) { b.value(promql.Scalar{T: ms, V: f}) }); err != nil || got != string(want) {
			t.Fatalf("scalar %d %g: %s, upstream %s", ms, f, got, want)
		}
		h := promql.HPoint{T: ms, H: &histogram.FloatHistogram{Count: f, Sum: f}}
		if got, want := encoded(func(b *body) { b.hpoint(h) }), upstream(func(s *jsoniter.Stream) {
			s.WriteArrayStart()
			jsonutil.MarshalTimestamp(h.T, s)
			s.WriteMore()
			jsonutil.MarshalHistogram(h.H, s)
			s.WriteArrayEnd()
		}); !sameJSON(got, want) {
			t.Fatalf("histogram %d %g: %s, upstream %s", ms, f, got, want)
		}
	}
	for _, f := range []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1e-6, 9.99e-7, 1e21, 9.9e20, math.MaxFloat64,
		math.SmallestNonzeroFloat64, math.Float64frombits(0x7ff0000000000002), math.Float64frombits(0xfff8000000000001)} {
		check(t, 0, f)
	}
	for _, ms := range []int64{1, 9, 10, 99, 100, 999, 1000, 1010, 1500, -1, -1500, 1435781451781, math.MaxInt64 / 1_000_000, math.MinInt64 / 1_000_000} {
		check(t, ms, 0)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.Int64Range(math.MinInt64/1_000_000-1, math.MaxInt64/1_000_000).Draw(t, "ms"), math.Float64frombits(rapid.Uint64().Draw(t, "bits")))
	})
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

// TestValuesAreUpstreams compares whole results with upstream's own encoding of the same Go values.
func TestValuesAreUpstreams(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune{'"', '\\', '\n', '\t', '\r', 0, 0x1f, '<', '>', '&', 0x2028, 0x7f, 'ä', 0x1f600})))
	metric := rapid.Custom(func(t *rapid.T) labels.Labels {
		return labels.FromMap(rapid.MapOfN(text.Filter(func(s string) bool { return s != "" }), text, 0, 4).Draw(t, "labels"))
	})
	// Only values that upstream's two encoders (one for the API, one of encoding/json) write alike.
	float := rapid.OneOf(rapid.Float64Range(1e-3, 1e15), rapid.SampledFrom([]float64{0, 1, math.Inf(1), math.Inf(-1), math.NaN()}))
	ms := rapid.Int64Range(-1e12, 1e13)
	hist := &histogram.FloatHistogram{Count: 3, Sum: 4, ZeroThreshold: .1, ZeroCount: 1,
		PositiveSpans: []histogram.Span{{Offset: 1, Length: 2}}, PositiveBuckets: []float64{1, 1}}
	rapid.Check(t, func(t *rapid.T) {
		var v parser.Value
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			vec := promql.Vector{}
			for range rapid.IntRange(0, 4).Draw(t, "n") {
				s := promql.Sample{Metric: metric.Draw(t, "metric"), T: ms.Draw(t, "t"), F: float.Draw(t, "f")}
				if rapid.IntRange(0, 4).Draw(t, "h") == 0 {
					s.H = hist
				}
				vec = append(vec, s)
			}
			v = vec
		case 1:
			m := promql.Matrix{}
			for range rapid.IntRange(0, 3).Draw(t, "n") {
				s := promql.Series{Metric: metric.Draw(t, "metric")}
				for range rapid.IntRange(0, 3).Draw(t, "points") {
					s.Floats = append(s.Floats, promql.FPoint{T: ms.Draw(t, "t"), F: float.Draw(t, "f")})
				}
				for range rapid.IntRange(0, 2).Draw(t, "histograms") {
					s.Histograms = append(s.Histograms, promql.HPoint{T: ms.Draw(t, "t"), H: hist})
				}
				m = append(m, s)
			}
			v = m
		case 2:
			v = promql.Scalar{T: ms.Draw(t, "t"), V: float.Draw(t, "f")}
		default:
			v = promql.String{T: ms.Draw(t, "t"), V: text.Draw(t, "s")}
		}
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := encoded(func(b *body) { b.value(v) }); !sameJSON(got, string(want)) {
			t.Fatalf("%T:\n%s\nupstream:\n%s", v, got, want)
		}
	})
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"", "a", `"\`, "\x00\x1f\x7f", "ä\u2028\U0001f600", "\xff\xc0\x80", "\xed\xa0\x80", "a\xe2\x82", "<script>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := encoded(func(b *body) { b.Str(s) })
		var back, want string
		if err := json.Unmarshal([]byte(out), &back); err != nil || !utf8.ValidString(out) {
			t.Fatalf("%q: %s: %v", s, out, err)
		}
		std, _ := json.Marshal(s)
		if _ = json.Unmarshal(std, &want); back != want {
			t.Fatalf("%q: %s, encoding/json %s", s, out, std)
		}
	})
}

// TestEncodeAllocations keeps the encoder at no allocation for each sample.
func TestEncodeAllocations(t *testing.T) {
	points := make([]promql.FPoint, 2000)
	for i := range points {
		points[i] = promql.FPoint{T: int64(i) * 15000, F: float64(i) / 3}
	}
	m := promql.Matrix{{Metric: labels.FromStrings("__name__", "up", "job", "a"), Floats: points}}
	b := unsent()
	alloctest.AtMost(t, 3, 20, func() { b.Buf = b.Buf[:0]; b.matrix(m) })
}

// unsent is a response whose header has been sent and whose body is discarded.
func unsent() *body {
	b := &body{Body: api.NewBody(httptest.NewRecorder(), httptest.NewRequest("HEAD", "/", nil))}
	b.Buf, b.Status = make([]byte, 0, 1<<20), 200
	return b
}

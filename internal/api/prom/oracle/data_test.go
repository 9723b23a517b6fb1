package oracle

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
)

// points is the number of samples of most series, every 15 s until now.
const points = 60

// load puts series of every kind into the store: the last sample of each is at the given time.
func load(t *testing.T, now time.Time) func(storage.Appender) {
	return func(app storage.Appender) {
		must := func(_ storage.SeriesRef, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		at := func(i int) int64 { return timestamp.FromTime(now) - int64(points-1-i)*15_000 }
		specials := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, math.MaxFloat64, 1e21, 1e-7, 0.1, -1.5, 123456789}
		for i := range points {
			for job := range 3 {
				for instance := range 2 {
					must(app.Append(0, labels.FromStrings("__name__", "http_requests_total", "job", fmt.Sprint("j", job), "instance", fmt.Sprint(instance)), at(i), float64(i*(job+1)%50)))
				}
			}
			must(app.Append(0, labels.FromStrings("__name__", "special", "job", "<a>&\"b\"\n\\ä€"), at(i), specials[i%len(specials)]))
			must(app.Append(0, labels.FromStrings("__name__", "dotted.näme", "label with space", "x", "a.b", "1"), at(i), float64(i)))
			must(app.Append(0, labels.FromStrings("__name__", "gone"), at(i), map[bool]float64{true: math.Float64frombits(value.StaleNaN), false: 1}[i >= points-3]))
			must(app.Append(0, labels.FromStrings("nameless", "yes"), at(i), 1))
			for _, le := range []string{"0.1", "1", "+Inf"} {
				must(app.Append(0, labels.FromStrings("__name__", "classic_bucket", "le", le, "job", "j0"), at(i), float64(i)))
			}
			must(app.AppendHistogram(0, labels.FromStrings("__name__", "native", "job", "j0"), at(i), tsdbutil.GenerateTestHistogram(int64(i%40)), nil))
			must(app.AppendHistogram(0, labels.FromStrings("__name__", "native", "job", "j1"), at(i), tsdbutil.GenerateTestGaugeHistogram(int64(i)), nil))
			must(app.AppendHistogram(0, labels.FromStrings("__name__", "native", "job", "j2"), at(i), nil, tsdbutil.GenerateTestFloatHistogram(int64(i))))
			must(app.AppendHistogram(0, labels.FromStrings("__name__", "custom", "job", "j0"), at(i), tsdbutil.GenerateTestCustomBucketsHistogram(int64(i)), nil))
			must(app.AppendHistogram(0, labels.FromStrings("__name__", "custom", "job", "j1"), at(i), nil, tsdbutil.GenerateTestCustomBucketsFloatHistogram(int64(i))))
			must(app.AppendHistogram(0, labels.FromStrings("__name__", "odd", "job", "j0"), at(i), nil, &histogram.FloatHistogram{
				Schema: 3, Count: 12.5, Sum: math.Inf(-1), ZeroThreshold: 1e-3, ZeroCount: .5,
				PositiveSpans: []histogram.Span{{Offset: -4, Length: 2}, {Offset: 3, Length: 1}}, PositiveBuckets: []float64{1.25, 0, 3},
				NegativeSpans: []histogram.Span{{Offset: 2, Length: 2}}, NegativeBuckets: []float64{4, 3.75},
			}))
			if i%2 == 0 {
				must(app.Append(0, labels.FromStrings("__name__", "mixed"), at(i), float64(i)))
			} else {
				must(app.AppendHistogram(0, labels.FromStrings("__name__", "mixed"), at(i), tsdbutil.GenerateTestHistogram(int64(i)), nil))
			}
		}
		must(app.AppendHistogram(0, labels.FromStrings("__name__", "gone_native"), at(points-2), tsdbutil.GenerateTestHistogram(1), nil))
		must(app.AppendHistogram(0, labels.FromStrings("__name__", "gone_native"), at(points-1), &histogram.Histogram{Sum: math.Float64frombits(value.StaleNaN)}, nil))
		must(app.Append(0, labels.FromStrings("__name__", "old"), at(0)-3600_000, 1))
		for i := range 3000 {
			must(app.Append(0, labels.FromStrings("__name__", "long"), timestamp.FromTime(now)-int64(2999-i)*1000, float64(i)*1.1))
		}
		for i := range 700 {
			must(app.AppendHistogram(0, labels.FromStrings("__name__", "long_native"), timestamp.FromTime(now)-int64(699-i)*1000, tsdbutil.GenerateTestHistogram(int64(i%300)), nil))
		}
		for i := range 5 {
			must(app.AppendExemplar(0, labels.FromStrings("__name__", "http_requests_total", "job", "j0", "instance", "0"), exemplar.Exemplar{
				Labels: labels.FromStrings("trace_id", fmt.Sprint("t<", i)), Value: specials[i], Ts: at(i) + 7, HasTs: true}))
			must(app.AppendExemplar(0, labels.FromStrings("__name__", "http_requests_total", "job", "j1", "instance", "0"), exemplar.Exemplar{
				Value: float64(i) + .5, Ts: at(i), HasTs: true}))
		}
	}
}

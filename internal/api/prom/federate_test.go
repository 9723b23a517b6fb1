package prom_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/model"
)

const delimited = "Accept: application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

// families decodes delimited messages.
func families(t *testing.T, r *httptest.ResponseRecorder) (all []*dto.MetricFamily) {
	t.Helper()
	if r.Code != 200 {
		t.Fatal(apitest.Show(r))
	}
	d := expfmt.NewDecoder(r.Body, expfmt.Format(r.Header().Get("Content-Type")))
	for {
		f := new(dto.MetricFamily)
		switch err := d.Decode(f); err {
		case nil:
			all = append(all, f)
		case io.EOF:
			return all
		default:
			t.Fatal(err)
		}
	}
}

// TestFederationOfManySeries of one name, which are written in pieces, is one family with all of them.
func TestFederationOfManySeries(t *testing.T) {
	const n = 2500
	w := newWorld(t, nil)
	for i := range n {
		w.MustLoad(t, "anonymous", fmt.Sprintf(`up{i="%d"} 990:%d`, i, i))
	}
	w.MustLoad(t, "anonymous", "a 990:1", "z 990:1")
	r := w.Get("/federate", `match[]={__name__=~".+"}`)
	if got := strings.Count(r.Body.String(), "\n"); got != n+2+3 {
		t.Errorf("%d lines", got)
	}
	if got := strings.Count(r.Body.String(), "# TYPE up untyped\n"); got != 1 {
		t.Errorf("the type stands %d times", got)
	}
	var p expfmt.TextParser = expfmt.NewTextParser(1)
	parsed, err := p.TextToMetricFamilies(r.Body)
	if err != nil || len(parsed["up"].GetMetric()) != n || len(parsed) != 3 {
		t.Errorf("%d of %d families: %v", len(parsed["up"].GetMetric()), len(parsed), err)
	}
	all := families(t, w.Do("GET", "/federate", []string{`match[]={__name__=~".+"}`}, []string{delimited}))
	if len(all) != 3 || len(all[1].Metric) != n || all[1].GetName() != "up" {
		t.Errorf("%d families", len(all))
	}
	seen := map[float64]bool{}
	for _, m := range all[1].Metric {
		seen[m.GetUntyped().GetValue()] = m.GetTimestampMs() == 990_000 && len(m.Label) == 2
	}
	for i := range n {
		if !seen[float64(i)] {
			t.Fatalf("series %d is missing", i)
		}
	}
}

func TestFederationOfHistograms(t *testing.T) {
	series := func(name, job string, p point) storage.Series {
		return listed(labels.FromStrings("__name__", name, "job", job), point{t: 940_000, fh: tsdbutil.GenerateTestFloatHistogram(9)}, p)
	}
	w := newWorld(t, fakeStore(
		series("custom", "a", point{t: 990_000, h: tsdbutil.GenerateTestCustomBucketsHistogram(1)}),
		series("custom", "b", point{t: 1000_000, fh: tsdbutil.GenerateTestCustomBucketsFloatHistogram(2)}),
		series("gone", "a", point{t: 990_000, h: &histogram.Histogram{Sum: math.Float64frombits(value.StaleNaN)}}),
		series("mixed", "a", point{t: 990_000, f: 5}),
		series("mixed", "b", point{t: 990_000, fh: tsdbutil.GenerateTestFloatHistogram(3)}),
		series("mixed", "c", point{t: 990_000, h: tsdbutil.GenerateTestGaugeHistogram(4)}),
	))
	r := w.Get("/federate", "match[]=up")
	want := `# TYPE custom histogram
custom_bucket{job="a",instance="",le="0"} 2
`
	if !strings.HasPrefix(strings.ReplaceAll(r.Body.String(), " 990000", ""), want) || strings.Contains(r.Body.String(), "gone") || !strings.HasSuffix(r.Body.String(), "# TYPE mixed untyped\nmixed{job=\"a\",instance=\"\"} 5 990000\n") {
		t.Error(r.Body)
	}
	all := families(t, w.Do("GET", "/federate", []string{"match[]=up"}, []string{delimited}))
	var got []string
	for _, f := range all {
		got = append(got, fmt.Sprintf("%s %s %d", f.GetName(), f.GetType(), len(f.Metric)))
	}
	if s := strings.Join(got, ", "); s != "custom HISTOGRAM 2, mixed UNTYPED 1, mixed HISTOGRAM 1, mixed GAUGE_HISTOGRAM 1" {
		t.Error(s)
	}
	h, in := all[2].Metric[0].Histogram, tsdbutil.GenerateTestFloatHistogram(3)
	if h.GetSampleCountFloat() != in.Count || h.GetSampleSum() != in.Sum || h.GetSchema() != in.Schema || h.GetZeroCountFloat() != in.ZeroCount || h.GetZeroThreshold() != in.ZeroThreshold ||
		fmt.Sprint(h.PositiveCount) != fmt.Sprint(in.PositiveBuckets) || fmt.Sprint(h.NegativeCount) != fmt.Sprint(in.NegativeBuckets) || len(h.PositiveSpan) != len(in.PositiveSpans) {
		t.Errorf("%v", h)
	}
	// Each float histogram is its own, though all came out of one buffer.
	b := all[0].Metric[1].Histogram
	if len(b.Bucket) != 5 || b.Bucket[4].GetCumulativeCountFloat() != tsdbutil.GenerateTestCustomBucketsFloatHistogram(2).Count {
		t.Errorf("%v", b)
	}
}

func TestFederationGivesItsMemoryBack(t *testing.T) {
	var quota *model.Quota
	w := newWorld(t, func(o *prom.Options) {
		o.Pool = &model.QueryPool{MaxBytes: 64 << 20}
		inner := o.Queryable
		o.Queryable = func(tenant string, q *model.Quota, c *model.Cost) storage.Queryable {
			quota = q
			return inner(tenant, q, c)
		}
	})
	for i := range 3000 {
		w.MustLoad(t, "anonymous", fmt.Sprintf(`up{i="%d"} 990:1`, i))
	}
	for _, headers := range [][]string{nil, {delimited}} {
		if r := w.Do("GET", "/federate", []string{"match[]=up"}, headers); r.Code != 200 {
			t.Fatal(apitest.Show(r))
		}
		if used := quota.Pool.Used(); used != 0 {
			t.Errorf("%d bytes are still held", used)
		}
	}
}

func TestTextEndpointsOfClientsThatLeave(t *testing.T) {
	w := newWorld(t, nil)
	w.MustLoad(t, "anonymous", `up{job="a"} 990:1`)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := httptest.NewRecorder()
	w.ServeHTTP(r, httptest.NewRequest("GET", "/federate?match[]=up", nil).WithContext(ctx))
	refused(t, r, 499, "canceled")
	for _, body := range [][]byte{readBody(t, asSamples, of("up")), readBody(t, asChunks, of("up"))} {
		r := httptest.NewRecorder()
		w.ServeHTTP(r, httptest.NewRequest("POST", "/api/v1/read", strings.NewReader(string(body))).WithContext(ctx))
		refused(t, r, 499, "canceled")
	}
}

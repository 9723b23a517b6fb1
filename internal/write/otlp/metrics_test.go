package otlp

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs/logstest"
	"github.com/shaledb/shale/internal/write/writetest"
)

const (
	at    = 1772323200000 * 1_000_000
	began = at - 60e9
)

// metricStore is a head that knows no series and a journal that keeps samples, exemplars and metadata.
type metricStore struct {
	writetest.Unknown

	mu             sync.Mutex
	rows, metadata []string
}

func (s *metricStore) Append(_ context.Context, b *model.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.Signal != model.Metrics || b.Text.Len() > 0 {
		return fmt.Errorf("%w: not a batch of metrics", model.ErrInvalid)
	}
	for i := range b.Keys {
		l, err := logstest.Labels(b, i)
		if err != nil {
			return err
		}
		for r := int(b.Samples.Begin(i)); r < int(b.Samples.End(i)); r++ {
			v := fmt.Sprint(math.Float64frombits(b.Samples.Values[r]))
			if b.Samples.Kind(r) == model.KindHistogram {
				var h model.Histogram
				err := h.Parse(b.Samples.Blob(r))
				if err != nil {
					return err
				}
				v = fmt.Sprintf("%+v", h)
			}
			start := ""
			if st := b.Samples.Start(r); st != 0 {
				start = fmt.Sprintf(" from %d", st-now)
			}
			s.rows = append(s.rows, fmt.Sprintf("%s %d %s%s", l, b.Samples.Times[r]-now, v, start))
		}
		for r := int(b.Exemplars.Begin(i)); r < int(b.Exemplars.End(i)); r++ {
			e, err := model.ParseExemplar(b.Exemplars.Blob(r))
			if err != nil {
				return err
			}
			s.rows = append(s.rows, fmt.Sprintf("%s exemplar %d %g %s", l, b.Exemplars.Times[r]-now, math.Float64frombits(e.Value), e.Labels))
		}
	}
	return nil
}

func (s *metricStore) PutMetadata(_, family string, m model.Metadata) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metadata = append(s.metadata, fmt.Sprintf("%s %s %q %q", family, m.Type, m.Help, m.Unit))
	return nil
}

func (s *metricStore) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.rows
	s.rows = nil
	return l
}

// sampleMetrics has each type of metric.
func sampleMetrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	a := rm.Resource().Attributes()
	a.PutStr("service.name", "shop")
	a.PutStr("service.namespace", "prod")
	a.PutStr("service.instance.id", "i1")
	a.PutStr("host.name", "h1")
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("lib")
	add := func(name, unit, help string) pmetric.Metric {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetUnit(unit)
		m.SetDescription(help)
		return m
	}
	p := add("queue.length", "1", "waiting").SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(at)
	p.SetIntValue(7)
	p.Attributes().PutStr("queue.name", "q")

	sum := add("http.requests", "", "").SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p = sum.DataPoints().AppendEmpty()
	p.SetTimestamp(at)
	p.SetStartTimestamp(began)
	p.SetDoubleValue(1.5)
	e := p.Exemplars().AppendEmpty()
	e.SetTimestamp(at - 1e9)
	e.SetDoubleValue(0.5)
	e.SetTraceID([16]byte{1})
	e.FilteredAttributes().PutStr("user.id", "u")

	delta := add("delta.sum", "", "").SetEmptySum()
	delta.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	delta.DataPoints().AppendEmpty().SetTimestamp(at)
	delta.DataPoints().AppendEmpty().SetTimestamp(at)

	hist := add("http.duration", "s", "").SetEmptyHistogram()
	hist.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	h := hist.DataPoints().AppendEmpty()
	h.SetTimestamp(at)
	h.SetCount(3)
	h.SetSum(4.5)
	h.ExplicitBounds().FromRaw([]float64{1, 2})
	h.BucketCounts().FromRaw([]uint64{1, 1, 1})

	exp := add("size", "By", "").SetEmptyExponentialHistogram()
	exp.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	x := exp.DataPoints().AppendEmpty()
	x.SetTimestamp(at)
	x.SetCount(3)
	x.SetSum(10)
	x.SetScale(1)
	x.SetZeroCount(1)
	x.Positive().SetOffset(2)
	x.Positive().BucketCounts().FromRaw([]uint64{1, 1})

	q := add("latency", "", "").SetEmptySummary().DataPoints().AppendEmpty()
	q.SetTimestamp(at)
	q.SetCount(2)
	q.SetSum(3)
	v := q.QuantileValues().AppendEmpty()
	v.SetQuantile(0.5)
	v.SetValue(1.5)

	add("", "", "").SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(at)
	return md
}

func TestMetrics(t *testing.T) {
	const of = `instance="i1", job="prod/shop"`
	want := []string{
		`{__name__="queue_length_ratio", ` + of + `, queue_name="q"} 0 7`,
		`{__name__="http_requests_total", ` + of + `} 0 1.5 from -60000000000`,
		`{__name__="http_requests_total", ` + of + `} exemplar -1000000000 0.5 {trace_id="01000000000000000000000000000000", user.id="u"}`,
		`{__name__="http_duration_seconds_sum", ` + of + `} 0 4.5`,
		`{__name__="http_duration_seconds_count", ` + of + `} 0 3`,
		`{__name__="http_duration_seconds_bucket", ` + of + `, le="1"} 0 1`,
		`{__name__="http_duration_seconds_bucket", ` + of + `, le="2"} 0 2`,
		`{__name__="http_duration_seconds_bucket", ` + of + `, le="+Inf"} 0 3`,
		`{__name__="size_bytes", ` + of + `} 0 {Gauge:false Float:false Schema:1 ZeroThreshold:2691949749288605597 Sum:4621819117588971520 Count:3 ZeroCount:1 PositiveSpans:[{Offset:3 Length:2}] NegativeSpans:[] Positive:[1 0] Negative:[] Custom:[]}`,
		`{__name__="latency_sum", ` + of + `} 0 3`,
		`{__name__="latency_count", ` + of + `} 0 2`,
		`{__name__="latency", ` + of + `, quantile="0.5"} 0 1.5`,
		`{__name__="target_info", host_name="h1", ` + of + `} 0 1`,
	}
	req := pmetricotlp.NewExportRequestFromMetrics(sampleMetrics())
	pb, err := req.MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	js, err := req.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	s := &metricStore{}
	h := newHandler(s, write.Limits{MaxFuture: time.Hour, MaxAge: time.Hour}).Metrics()
	for _, c := range []struct {
		contentType string
		body        []byte
		read        func(r pmetricotlp.ExportResponse, b []byte) error
	}{
		{"application/x-protobuf", pb, pmetricotlp.ExportResponse.UnmarshalProto},
		{"application/json", js, pmetricotlp.ExportResponse.UnmarshalJSON},
	} {
		w := post(h, c.body, "Content-Type", c.contentType)
		resp := pmetricotlp.NewExportResponse()
		if err := c.read(resp, w.Body.Bytes()); err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != c.contentType {
			t.Fatalf("%s: %d %q %v", c.contentType, w.Code, w.Body, err)
		}
		text := resp.PartialSuccess().ErrorMessage()
		if resp.PartialSuccess().RejectedDataPoints() != 3 || !strings.Contains(text, `2 errors like: metric "delta.sum" has delta temporality`) || !strings.Contains(text, "1 errors like: ") {
			t.Errorf("%s: %d are rejected: %s", c.contentType, resp.PartialSuccess().RejectedDataPoints(), text)
		}
		if diff := cmp.Diff(want, s.take()); diff != "" {
			t.Errorf("%s: %s", c.contentType, diff)
		}
	}
	wantTold := []string{
		`queue_length_ratio gauge "waiting" ""`, `http_requests_total counter "" ""`, `http_duration_seconds histogram "" "seconds"`,
		`size_bytes histogram "" "bytes"`, `latency summary "" ""`, `target_info gauge "Target metadata" ""`,
	}
	if diff := cmp.Diff(wantTold, s.metadata); diff != "" {
		t.Error(diff)
	}
}

// A request whose times are far apart makes a bounded number of samples of target_info.
func TestTargetInfoIsBounded(t *testing.T) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "shop")
	rm.Resource().Attributes().PutStr("x", "y")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("m")
	points := m.SetEmptyGauge().DataPoints()
	points.AppendEmpty().SetTimestamp(1)
	points.AppendEmpty().SetTimestamp(pcommon.Timestamp(at))
	pb, _ := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	s := &metricStore{}
	h := newHandler(s, write.Limits{MaxFuture: time.Hour, MaxInflightBytes: 8 << 20}).Metrics()
	if w := post(h, pb, "Content-Type", "application/x-protobuf"); w.Code != http.StatusOK || w.Body.Len() > 0 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if n := len(s.take()); n < 3 || n > 110 {
		t.Errorf("%d samples", n)
	}
	h = newHandler(s, write.Limits{MaxFuture: time.Hour, MaxAge: time.Hour}).Metrics()
	w := post(h, pb, "Content-Type", "application/x-protobuf")
	if want := `metric "m" at 1970-01-01T00:00:00.000000001Z is older than max-age (1h0m0s)`; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	want := []string{`{__name__="m", job="shop"} 0 0`, `{__name__="target_info", job="shop", x="y"} 0 1`}
	if diff := cmp.Diff(want, s.take()); diff != "" {
		t.Error(diff)
	}
}

// TestNothingStorable sends points that can never be stored, alone and next to a good one. The response is
// a partial success that counts them in both cases.
func TestNothingStorable(t *testing.T) {
	stamped := func(d pmetric.NumberDataPointSlice) {
		d.AppendEmpty().SetTimestamp(at)
		d.AppendEmpty().SetTimestamp(at)
	}
	sum := func(t pmetric.AggregationTemporality) func(pmetric.Metric) {
		return func(m pmetric.Metric) {
			m.SetEmptySum().SetAggregationTemporality(t)
			stamped(m.Sum().DataPoints())
		}
	}
	for _, c := range []struct {
		name     string
		fill     func(pmetric.Metric)
		rejected int64
		text     string
	}{
		{"delta sum", sum(pmetric.AggregationTemporalityDelta), 2, "delta temporality"},
		{"sum without temporality", sum(pmetric.AggregationTemporalityUnspecified), 2, `"m" has aggregation temporality 0 (Unspecified), expected 2 (Cumulative)`},
		{"sum of temporality 7", sum(7), 2, "temporality 7"},
		{"histogram without temporality", func(m pmetric.Metric) {
			m.SetEmptyHistogram().DataPoints().AppendEmpty().SetTimestamp(at)
		}, 1, "temporality 0"},
		{"scale -5", func(m pmetric.Metric) {
			e := m.SetEmptyExponentialHistogram()
			e.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			for range 3 {
				p := e.DataPoints().AppendEmpty()
				p.SetTimestamp(at)
				p.SetScale(-5)
			}
		}, 3, `"m" has an exponential histogram of scale -5, the least is -4`},
		{"a count that is not the sum of the buckets", func(m pmetric.Metric) {
			e := m.SetEmptyExponentialHistogram()
			e.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := e.DataPoints().AppendEmpty()
			p.SetTimestamp(at)
			p.SetCount(5)
			p.Positive().BucketCounts().FromRaw([]uint64{1})
		}, 1, "buckets"},
		{"no type", func(pmetric.Metric) {}, 1, "unsupported metric type"},
		{"no name", func(m pmetric.Metric) { m.SetName(""); m.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(at) }, 1, "empty name"},
		{"two years old", func(m pmetric.Metric) { m.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(at - 1e18) }, 1, "older than max-age"},
		{"an exemplar", func(m pmetric.Metric) {
			m.SetEmptySum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := m.Sum().DataPoints().AppendEmpty()
			p.SetTimestamp(at)
			e := p.Exemplars().AppendEmpty()
			e.SetTimestamp(at)
			e.SetDoubleValue(1)
			e.FilteredAttributes().PutStr("a", "\xff")
		}, 0, "labels of an exemplar are not valid UTF-8"},
	} {
		for _, alone := range []bool{true, false} {
			md := pmetric.NewMetrics()
			metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
			m := metrics.AppendEmpty()
			m.SetName("m")
			c.fill(m)
			if !alone {
				good := metrics.AppendEmpty()
				good.SetName("good")
				good.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(at)
			}
			body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
			if err != nil {
				t.Fatal(err)
			}
			s := &metricStore{}
			w := post(newHandler(s, write.Limits{MaxFuture: time.Hour, MaxAge: time.Hour}).Metrics(), body, "Content-Type", "application/x-protobuf")
			resp := pmetricotlp.NewExportResponse()
			if err := resp.UnmarshalProto(w.Body.Bytes()); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%s, alone %v: %d %q %v", c.name, alone, w.Code, w.Body, err)
			}
			if p := resp.PartialSuccess(); p.RejectedDataPoints() != c.rejected || !strings.Contains(p.ErrorMessage(), c.text) {
				t.Errorf("%s, alone %v: %d are rejected: %q", c.name, alone, p.RejectedDataPoints(), p.ErrorMessage())
			}
			if rows := s.take(); slices.ContainsFunc(rows, func(r string) bool { return strings.Contains(r, `"good"`) }) == alone {
				t.Errorf("%s, alone %v: stored %v", c.name, alone, rows)
			}
		}
	}
}

//go:build e2e

package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/teststorage"

	"github.com/shaledb/shale/internal/read/graphite/graphitetest"
	"github.com/shaledb/shale/internal/read/logql/logqltest"
)

// both sends a body to a gateway, to another one each time, and to the role all.
func (w *whole) both(t testing.TB, path, kind, tenant string, body []byte) {
	t.Helper()
	w.turn++
	for _, p := range []*process{w.gateways[w.turn%2], w.all} {
		if err := p.post(path, kind, tenant, body); err != nil {
			t.Fatal(err)
		}
	}
}

// sometimes compares some of the questions, as each takes milliseconds at three processes.
func (w *whole) sometimes(t testing.TB, tenant, path string) {
	t.Helper()
	if w.question++; w.question%w.every == 0 {
		w.compare(t, tenant, path)
	}
}

// promQL runs all of Prometheus' own files: their data goes to both, and their queries are compared.
func (w *whole) promQL(t *testing.T) {
	engine := &comparing{QueryEngine: promqltest.NewTestEngine(t, false, 5*time.Minute, promqltest.DefaultMaxSamplesPerQuery), w: w}
	stores := 0
	promqltest.RunBuiltinTestsWithStorage(t, engine, func(t testing.TB) storage.Storage {
		stores++
		own := teststorage.New(t, func(o *tsdb.Options) {
			o.EnableSTStorage, o.FloatChunkEncoding, o.EnableHistogramSTEncoding = true, chunkenc.EncXOR2, true
		})
		return &forked{Storage: own, t: t, w: w, tenant: fmt.Sprint("promql-", stores)}
	})
}

// forked is Prometheus' storage. What it stores goes to Shale as well, for a tenant of its own.
type forked struct {
	storage.Storage
	t      testing.TB
	w      *whole
	tenant string
}

func (s *forked) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return &forkedAppender{AppenderV2: s.Storage.AppenderV2(ctx), s: s}
}

type forkedAppender struct {
	storage.AppenderV2
	s    *forked
	sent prompb.WriteRequest
}

func (a *forkedAppender) Append(ref storage.SeriesRef, l labels.Labels, st, at int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options) (storage.SeriesRef, error) {
	s := prompb.TimeSeries{Labels: prompb.FromLabels(l, nil)}
	switch {
	case fh != nil:
		s.Histograms = []prompb.Histogram{prompb.FromFloatHistogram(at, fh)}
	case h != nil:
		s.Histograms = []prompb.Histogram{prompb.FromIntHistogram(at, h)}
	default:
		s.Samples = []prompb.Sample{{Timestamp: at, Value: v}}
	}
	a.sent.Timeseries = append(a.sent.Timeseries, s)
	return a.AppenderV2.Append(ref, l, st, at, v, h, fh, o)
}

func (a *forkedAppender) Commit() error {
	if len(a.sent.Timeseries) > 0 {
		data, err := a.sent.Marshal()
		if err != nil {
			return err
		}
		a.s.w.both(a.s.t, "/api/v1/write", "application/x-protobuf", a.s.tenant, snappy.Encode(nil, data))
	}
	return a.AppenderV2.Commit()
}

// comparing is Prometheus' engine. What it is asked, Shale is asked as well.
type comparing struct {
	promql.QueryEngine
	w *whole
}

func seconds(at time.Time) string {
	return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', -1, 64)
}

func (e *comparing) NewInstantQuery(ctx context.Context, q storage.Queryable, o promql.QueryOpts, text string, at time.Time) (promql.Query, error) {
	s := q.(*forked)
	e.w.sometimes(s.t, s.tenant, "/api/v1/query?"+url.Values{"query": {text}, "time": {seconds(at)}}.Encode())
	return e.QueryEngine.NewInstantQuery(ctx, s.Storage, o, text, at)
}

func (e *comparing) NewRangeQuery(ctx context.Context, q storage.Queryable, o promql.QueryOpts, text string, from, to time.Time, step time.Duration) (promql.Query, error) {
	s := q.(*forked)
	e.w.sometimes(s.t, s.tenant, "/api/v1/query_range?"+url.Values{"query": {text}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {step.String()}}.Encode())
	return e.QueryEngine.NewRangeQuery(ctx, s.Storage, o, text, from, to, step)
}

// logQL asks the queries whose answers of Loki are recorded, about the same lines.
func (w *whole) logQL(t *testing.T) {
	files, err := filepath.Glob("../../internal/read/logql/logqltest/testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	tenants := map[string]string{}
	for _, file := range files {
		records, err := logqltest.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			tenant, sent := tenants[r.Data.Name]
			if !sent {
				tenant = fmt.Sprint("logql-", len(tenants))
				tenants[r.Data.Name] = tenant
				w.both(t, "/loki/api/v1/push", "application/json", tenant, pushOf(t, r.Data))
			}
			q := &r.Query
			v := url.Values{"query": {q.Text}, "limit": {fmt.Sprint(max(q.Limit, 1))}, "direction": {"backward"}}
			if q.Forward {
				v.Set("direction", "forward")
			}
			path := "/loki/api/v1/query"
			if q.Instant() {
				v.Set("time", fmt.Sprint(q.End))
			} else {
				path += "_range"
				v.Set("start", fmt.Sprint(q.Start))
				v.Set("end", fmt.Sprint(q.End))
				if q.Step > 0 {
					v.Set("step", strconv.FormatFloat(float64(q.Step)/1e9, 'f', -1, 64))
				}
			}
			w.sometimes(t, tenant, path+"?"+v.Encode())
		}
	}
}

func pushOf(t *testing.T, d *logqltest.Dataset) []byte {
	pairs := func(of []string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(of); i += 2 {
			m[of[i]] = of[i+1]
		}
		return m
	}
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values [][]any           `json:"values"`
	}
	all := []stream{}
	for _, s := range d.Streams {
		next := stream{Stream: pairs(s.Labels)}
		for _, l := range s.Lines {
			next.Values = append(next.Values, []any{fmt.Sprint(l.Time), l.Text, pairs(l.Metadata)})
		}
		all = append(all, next)
	}
	body, err := json.Marshal(map[string]any{"streams": all})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// graphiteRenders asks the renders whose responses of graphite-web are recorded, about the same points.
func (w *whole) graphiteRenders(t *testing.T) {
	records, err := graphitetest.Load("../../internal/api/graphite/testdata/render.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	const tenant = "renders"
	var points strings.Builder
	data := graphitetest.NewWorld(1, 1, false).Data.Series
	for _, name := range slices.Sorted(maps.Keys(data)) {
		s := data[name]
		for i, v := range s.Values {
			if v != nil {
				fmt.Fprintf(&points, "%s %v %d\n", name, *v, s.Start+int64(i)*s.Step)
			}
		}
	}
	w.both(t, "/api/v1/write/graphite", "text/plain", tenant, []byte(points.String()))
	for _, r := range records {
		w.sometimes(t, tenant, "/render?"+r.Query)
	}
}

// suites runs all of them, and says how much of it was answered. All data is sent, and a part of the
// questions asked. QUESTIONS is by how much more: 45 asks all.
func (w *whole) suites(t *testing.T) {
	more := fromEnviron(t, "QUESTIONS", 1)
	for _, suite := range []struct {
		name         string
		run          func(*testing.T)
		every, least int
	}{{"PromQL", w.promQL, 45, 300}, {"LogQL", w.logQL, 9, 40}, {"Graphite", w.graphiteRenders, 9, 150}} {
		before, began := len(w.asked), time.Now()
		w.every = max(1, suite.every/more)
		t.Run(suite.name, suite.run)
		right := 0
		for _, q := range w.asked[before:] {
			if q.status == http.StatusOK {
				right++
			}
		}
		t.Logf("%s: %d questions, %d of them with an answer, in %.1f s", suite.name, len(w.asked)-before, right, time.Since(began).Seconds())
		if right < suite.least {
			t.Errorf("%s: fewer than %d answers", suite.name, suite.least)
		}
	}
}

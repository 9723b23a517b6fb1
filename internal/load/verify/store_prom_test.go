package verify

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/wire"
)

// promStore is Prometheus' store for each tenant, with Prometheus' decoders of remote write, PromQL and
// remote read. Unlike a Prometheus it also accepts zstd.
type promStore struct {
	t       *testing.T
	dir     string
	engine  *promql.Engine
	mu      sync.Mutex
	tenants map[string]*promTenant
	// before, if set, gives the status of a write that is not stored; 0 stores it.
	before func(w http.ResponseWriter, r *http.Request) int
	// tamper, if set, changes the responses of remote read.
	tamper func(*prompb.ReadResponse)
	heads  []http.Header
}

type promTenant struct {
	db       *tsdb.DB
	metadata map[string]map[string]string
}

func newPromStore(t *testing.T) *promStore {
	return &promStore{
		t: t, dir: t.TempDir(), tenants: map[string]*promTenant{},
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 20, Timeout: time.Minute}),
	}
}

// change changes what handlers read.
func (s *promStore) change(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
}

func (s *promStore) serve() string {
	srv := httptest.NewServer(s)
	s.t.Cleanup(func() {
		srv.Close()
		for _, tenant := range s.tenants {
			if err := tenant.db.Close(); err != nil {
				s.t.Error(err)
			}
		}
	})
	return srv.URL
}

func (s *promStore) tenant(name string) *promTenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tenants[name] != nil {
		return s.tenants[name]
	}
	opts := tsdb.DefaultOptions()
	opts.OutOfOrderTimeWindow = int64(time.Hour / time.Millisecond)
	opts.EnableExemplarStorage, opts.MaxExemplars = true, 1<<17
	quiet := slog.New(slog.DiscardHandler)
	db, err := tsdb.Open(filepath.Join(s.dir, name), quiet, nil, opts, nil)
	if err != nil {
		panic(err)
	}
	s.tenants[name] = &promTenant{db: db, metadata: map[string]map[string]string{}}
	return s.tenants[name]
}

func (s *promStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tenant := s.tenant(r.Header.Get("X-Scope-OrgID"))
	switch r.URL.Path {
	case "/api/v1/write":
		s.write(tenant, w, r)
	case "/api/v1/read":
		s.read(tenant, w, r)
	case "/api/v1/query", "/api/v1/query_range":
		answerQuery(s.engine, tenant.db, w, r)
	case "/api/v1/query_exemplars":
		tenant.exemplars(w, r)
	case "/api/v1/metadata":
		s.mu.Lock()
		defer s.mu.Unlock()
		out, name := map[string]any{}, r.FormValue("metric")
		if m, ok := tenant.metadata[name]; ok {
			out[name] = []any{m}
		}
		succeed(w, out)
	default:
		http.NotFound(w, r)
	}
}

func (s *promStore) write(tenant *promTenant, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.heads = append(s.heads, r.Header.Clone())
	code := 0
	if s.before != nil {
		code = s.before(w, r)
	}
	s.mu.Unlock()
	if code != 0 {
		w.WriteHeader(code)
		return
	}
	compression := wire.Snappy
	if r.Header.Get("Content-Encoding") == "zstd" {
		compression = wire.Zstd
	}
	v2 := r.Header.Get("Content-Type") != "application/x-protobuf"
	messages := s.decode(tenant, v2, decompress(s, compression, body))
	c := tenant.append(s, messages)
	if v2 {
		w.Header().Set(send.WrittenSamples, strconv.Itoa(c.Samples))
		w.Header().Set(send.WrittenHistograms, strconv.Itoa(c.Histograms))
		w.Header().Set(send.WrittenExemplars, strconv.Itoa(c.Exemplars))
	}
	w.WriteHeader(http.StatusNoContent)
}

// Helper and Fatalf make the store a tester, so that a bad body fails the test.
func (s *promStore) Helper() {}
func (s *promStore) Fatalf(format string, args ...any) {
	s.t.Errorf(format, args...)
	panic(http.ErrAbortHandler)
}

// decode takes a request apart, and remembers metadata.
func (s *promStore) decode(tenant *promTenant, v2 bool, raw []byte) []message {
	var messages []message
	var metadata []prompb.MetricMetadata
	if v2 {
		messages = decodeV2(s, raw)
	} else {
		messages, metadata = decodeV1(s, raw)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		if kind, rest, ok := strings.Cut(m.metadata, "|"); ok && kind != "unknown" {
			help, unit, _ := strings.Cut(rest, "|")
			tenant.metadata[m.labels["__name__"]] = map[string]string{"type": kind, "help": help, "unit": unit}
		}
	}
	for _, m := range metadata {
		kind := [...]string{"unknown", "counter", "gauge", "histogram", "gaugehistogram"}[m.Type]
		tenant.metadata[m.MetricFamilyName] = map[string]string{"type": kind, "help": m.Help, "unit": m.Unit}
	}
	return messages
}

func (p *promTenant) append(t tester, messages []message) (c wire.Contents) {
	app := p.db.Appender(context.Background())
	for _, m := range messages {
		l := labels.FromMap(m.labels)
		for _, s := range m.samples {
			var err error
			switch h := s.Histogram; {
			case h == nil:
				_, err = app.Append(0, l, s.Ms, math.Float64frombits(s.Bits))
				c.Samples++
			case h.IsFloatHistogram():
				_, err = app.AppendHistogram(0, l, s.Ms, nil, h.ToFloatHistogram())
				c.Histograms++
			default:
				_, err = app.AppendHistogram(0, l, s.Ms, h.ToIntHistogram(), nil)
				c.Histograms++
			}
			if err != nil {
				t.Fatalf("%s at %d: %v", l, s.Ms, err)
			}
		}
		for _, of := range m.exemplars {
			e := of.Exemplars[0]
			v, _ := strconv.ParseFloat(e.Value, 64)
			c.Exemplars++
			// A Prometheus keeps exemplars only in order, and says that it has written the others as well.
			_, _ = app.AppendExemplar(0, l, exemplar.Exemplar{Labels: labels.FromMap(e.Labels), Value: v, Ts: int64(e.At), HasTs: true})
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// read answers remote read.
func (s *promStore) read(tenant *promTenant, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req prompb.ReadRequest
	if err != nil || req.Unmarshal(decompress(s, wire.Snappy, body)) != nil || len(req.Queries) != 1 {
		s.Fatalf("remote read: %v", err)
	}
	q := req.Queries[0]
	var ms []*labels.Matcher
	for _, m := range q.Matchers {
		ms = append(ms, labels.MustNewMatcher(labels.MatchType(m.Type), m.Name, m.Value))
	}
	querier, err := tenant.db.Querier(q.StartTimestampMs, q.EndTimestampMs)
	if err != nil {
		s.Fatalf("%v", err)
	}
	defer querier.Close()
	resp := prompb.ReadResponse{Results: []*prompb.QueryResult{{}}}
	set := querier.Select(r.Context(), true, nil, ms...)
	for set.Next() {
		resp.Results[0].Timeseries = append(resp.Results[0].Timeseries, readSeries(set.At()))
	}
	s.change(func() {
		if s.tamper != nil {
			s.tamper(&resp)
		}
	})
	raw, err := resp.Marshal()
	if err != nil || set.Err() != nil {
		s.Fatalf("%v, %v", err, set.Err())
	}
	_, _ = w.Write(snappy.Encode(nil, raw))
}

func readSeries(s storage.Series) *prompb.TimeSeries {
	ts := &prompb.TimeSeries{Labels: prompb.FromLabels(s.Labels(), nil)}
	it := s.Iterator(nil)
	for {
		switch it.Next() {
		case chunkenc.ValNone:
			return ts
		case chunkenc.ValFloat:
			t, v := it.At()
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: t, Value: v})
		case chunkenc.ValHistogram:
			t, h := it.AtHistogram(nil)
			ts.Histograms = append(ts.Histograms, prompb.FromIntHistogram(t, h))
		case chunkenc.ValFloatHistogram:
			t, h := it.AtFloatHistogram(nil)
			ts.Histograms = append(ts.Histograms, prompb.FromFloatHistogram(t, h))
		}
	}
}

func (p *promTenant) exemplars(w http.ResponseWriter, r *http.Request) {
	at := func(name string) int64 {
		seconds, _ := strconv.ParseFloat(r.FormValue(name), 64)
		return int64(math.Round(seconds * 1000))
	}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.FormValue("query"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	q, err := p.db.ExemplarQuerier(r.Context())
	if err != nil {
		panic(err)
	}
	found, err := q.Select(at("start"), at("end"), parser.ExtractSelectors(expr)...)
	if err != nil {
		panic(err)
	}
	var out []any
	for _, f := range found {
		var list []any
		for _, e := range f.Exemplars {
			list = append(list, exemplarJSON(e))
		}
		out = append(out, map[string]any{"seriesLabels": f.SeriesLabels, "exemplars": list})
	}
	succeed(w, out)
}

func exemplarJSON(e exemplar.Exemplar) map[string]any {
	return map[string]any{
		"labels": e.Labels, "value": strconv.FormatFloat(e.Value, 'f', -1, 64),
		"timestamp": float64(timestamp.Time(e.Ts).UnixMilli()) / 1000,
	}
}

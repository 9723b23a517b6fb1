package verify

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/shaledb/shale/internal/load/send"
)

// memStore is the smallest store that a load can be verified against: maps with remote write, Graphite and
// the query API, which uses Prometheus' own engine.
type memStore struct {
	mu       sync.Mutex
	series   map[string]labels.Labels
	samples  map[string]map[int64]float64
	received float64
	life     float64
	engine   *promql.Engine
	// before, if set, gives the status of a write that is not stored; 0 stores it.
	before func(w http.ResponseWriter, r *http.Request) int
	// after, if set, gives the status of a write that was stored.
	after   func() int
	headers []http.Header
	tenants map[string]int
	conns   []net.Conn
	// pickles is set if connections bring pickles, accepted counts connections.
	pickles  bool
	accepted int
}

func newMemStore() *memStore {
	return &memStore{
		series: map[string]labels.Labels{}, samples: map[string]map[int64]float64{}, life: 1000, tenants: map[string]int{},
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 20, Timeout: time.Minute}),
	}
}

func (s *memStore) serve(t *testing.T) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return srv
}

func (s *memStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/v1/write":
		w.WriteHeader(s.write(w, r))
	case "/api/v1/query", "/api/v1/query_range":
		s.query(w, r)
	case "/metrics":
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(w, "# HELP x y\nprocess_start_time_seconds %g\n%s{proto=\"tcp\"} %g\n%s{proto=\"udp\"} 0\n", s.life, send.ReceivedMetric, s.received, send.ReceivedMetric)
	default:
		http.NotFound(w, r)
	}
}

func (s *memStore) write(w http.ResponseWriter, r *http.Request) int {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return http.StatusBadRequest
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headers = append(s.headers, r.Header.Clone())
	s.tenants[r.Header.Get("X-Scope-OrgID")]++
	if s.before != nil {
		if code := s.before(w, r); code != 0 {
			return code
		}
	}
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		return http.StatusBadRequest
	}
	var req prompb.WriteRequest
	if err := req.Unmarshal(raw); err != nil {
		return http.StatusBadRequest
	}
	var b labels.ScratchBuilder
	for _, ts := range req.Timeseries {
		l := ts.ToLabels(&b, nil)
		for _, p := range ts.Samples {
			s.put(l, p.Timestamp, p.Value)
		}
	}
	if s.after != nil {
		return s.after()
	}
	return http.StatusNoContent
}

func (s *memStore) put(l labels.Labels, ms int64, v float64) {
	id := l.String()
	if s.samples[id] == nil {
		s.series[id], s.samples[id] = l, map[int64]float64{}
	}
	s.samples[id][ms] = v
}

// some returns the series of the store in order.
func (s *memStore) some() []string { return slices.Sorted(maps.Keys(s.series)) }

func (s *memStore) query(w http.ResponseWriter, r *http.Request) { answerQuery(s.engine, s, w, r) }

// answerQuery answers query and query_range with Prometheus' own engine.
func answerQuery(engine *promql.Engine, from storage.Queryable, w http.ResponseWriter, r *http.Request) {
	at := func(name string) time.Time {
		seconds, _ := strconv.ParseFloat(r.FormValue(name), 64)
		return time.UnixMilli(int64(math.Round(seconds * 1000)))
	}
	var q promql.Query
	var err error
	if strings.HasSuffix(r.URL.Path, "range") {
		step := time.Duration(at("step").UnixMilli()) * time.Millisecond
		q, err = engine.NewRangeQuery(r.Context(), from, nil, r.FormValue("query"), at("start"), at("end"), step)
	} else {
		q, err = engine.NewInstantQuery(r.Context(), from, nil, r.FormValue("query"), at("time"))
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "error", "error": err.Error()})
		return
	}
	defer q.Close()
	res := q.Exec(r.Context())
	if res.Err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "error", "error": res.Err.Error()})
		return
	}
	succeed(w, map[string]any{"resultType": res.Value.Type(), "result": res.Value})
}

func succeed(w io.Writer, data any) {
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data})
}

// Querier and what follows make the store a source for the engine.
func (s *memStore) Querier(mint, maxt int64) (storage.Querier, error) {
	return &memQuerier{s: s, mint: mint, maxt: maxt}, nil
}

type memQuerier struct {
	storage.LabelQuerier
	s          *memStore
	mint, maxt int64
}

func (q *memQuerier) Close() error { return nil }

func (q *memQuerier) Select(_ context.Context, _ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	set := &memSeriesSet{at: -1}
	for _, id := range q.s.some() {
		l := q.s.series[id]
		if slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(l.Get(m.Name)) }) {
			continue
		}
		var list []memSample
		for _, t := range slices.Sorted(maps.Keys(q.s.samples[id])) {
			if t >= q.mint && t <= q.maxt {
				list = append(list, memSample{t: t, v: q.s.samples[id][t]})
			}
		}
		set.series = append(set.series, newMemSeries(l, list))
	}
	return set
}

type memSample struct {
	t int64
	v float64
}

func newMemSeries(l labels.Labels, list []memSample) storage.Series {
	return &storage.SeriesEntry{Lset: l, SampleIteratorFn: func(chunkenc.Iterator) chunkenc.Iterator {
		c := chunkenc.NewXORChunk()
		app, err := c.Appender()
		if err != nil {
			panic(err)
		}
		for _, p := range list {
			app.Append(0, p.t, p.v)
		}
		return c.Iterator(nil)
	}}
}

type memSeriesSet struct {
	series []storage.Series
	at     int
}

func (m *memSeriesSet) Next() bool                        { m.at++; return m.at < len(m.series) }
func (m *memSeriesSet) At() storage.Series                { return m.series[m.at] }
func (m *memSeriesSet) Err() error                        { return nil }
func (m *memSeriesSet) Warnings() annotations.Annotations { return nil }

// listen makes the store a Graphite server at an address, until the listener is closed.
func (s *memStore) listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.accepted++
			s.mu.Unlock()
			if s.pickles {
				wg.Go(func() { s.readPickles(c) })
			} else {
				wg.Go(func() { s.readLines(c) })
			}
		}
	})
	t.Cleanup(func() {
		s.kill(l)
		wg.Wait()
	})
	return l
}

// kill closes the listener and all connections at once.
func (s *memStore) kill(l net.Listener) {
	_ = l.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

func (s *memStore) readLines(c net.Conn) {
	defer c.Close()
	lines := bufio.NewReader(c)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		s.mu.Lock()
		s.line(line)
		s.mu.Unlock()
	}
}

func (s *memStore) line(line string) {
	f := strings.Fields(line)
	if len(f) != 3 {
		panic("bad line " + line)
	}
	v, err := strconv.ParseFloat(f[1], 64)
	if err != nil {
		panic(err)
	}
	t, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		panic(err)
	}
	s.point(f[0], t, v)
}

// point takes in a point, whose name may have tags.
func (s *memStore) point(name string, seconds int64, v float64) {
	s.received++
	tags := strings.Split(name, ";")
	pairs := []string{"__name__", tags[0]}
	for _, tag := range tags[1:] {
		key, value, _ := strings.Cut(tag, "=")
		pairs = append(pairs, key, value)
	}
	s.put(labels.FromStrings(pairs...), seconds*1000, v)
}

// readPickles reads messages after their lengths.
func (s *memStore) readPickles(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		var size uint32
		if binary.Read(in, binary.BigEndian, &size) != nil {
			return
		}
		message := make([]byte, size)
		if _, err := io.ReadFull(in, message); err != nil {
			return
		}
		s.mu.Lock()
		for _, p := range unpickle(message) {
			s.point(p.name, p.seconds, p.value)
		}
		s.mu.Unlock()
	}
}

// listenHTTP listens at an address that may still be in use for a moment.
func (s *memStore) listenHTTP(t *testing.T, addr string) net.Listener {
	t.Helper()
	for range 100 {
		if l, err := net.Listen("tcp", addr); err == nil {
			return l
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("address %s stays in use", addr)
	return nil
}

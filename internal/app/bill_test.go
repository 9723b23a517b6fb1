package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api/loki"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

// billWorld is an engine with random data, most of which is in the bucket.
type billWorld struct {
	*setup
	random *rand.Rand
	from   int64
}

func newBillWorld(t *testing.T, seed uint64) *billWorld {
	s := newSetup(t, func(o *EngineOptions) {
		o.MemoryBytes = 512 << 20
		o.FS = vfs.NewMem() // nothing crashes here, and a file that may crash is copied whole at each sync
	})
	w := &billWorld{setup: s, random: rand.New(rand.NewPCG(seed, 1)), from: s.now}
	ships := 3 + w.random.IntN(3)
	for i := range ships {
		w.writeMetrics(t)
		w.writeLogs(t)
		if w.random.IntN(2) == 0 {
			must(t, s.Flush())
			w.writeLogs(t) // late lines of the same streams
		}
		s.now += int64(4 * time.Hour)
		must(t, s.Ship())
		if i == 1 && w.random.IntN(2) == 0 {
			must(t, s.Compact(context.Background()))
		}
	}
	w.writeMetrics(t) // what is in the head is not billed
	w.writeLogs(t)
	must(t, s.Flush()) // so that reopen replays little
	return w
}

func (w *billWorld) writeMetrics(t *testing.T) {
	t.Helper()
	series, step := 50+w.random.IntN(400), int64(time.Minute)
	for i := range series {
		l := model.LabelsOf("__name__", "m", "i", strconv.Itoa(i), "job", "j"+strconv.Itoa(i%7))
		b := w.Path().Batch("a", model.Metrics)
		b.Source = oneSeries(l)
		key := l.Key(w.Path().Seed(), model.Metrics)
		for at := w.now - 119*step; at <= w.now; at += step {
			b.AddSample(key, at, w.random.Uint64()>>2)
		}
		_, err := w.Path().Push(context.Background(), b)
		w.Path().Recycle(b)
		must(t, err)
	}
}

func (w *billWorld) writeLogs(t *testing.T) {
	t.Helper()
	for i := range 1 + w.random.IntN(12) {
		l := model.LabelsOf("app", "a"+strconv.Itoa(i), "service_name", "s")
		n := 1 + w.random.IntN(20)
		if i < 3 {
			n = 2000 + w.random.IntN(6000) // several units
		}
		lines := make([]string, 0, 32)
		for k := range n {
			lines = append(lines, fmt.Sprintf(`{"n":%d,"word":"w%x","text":"%x%x%x"}`, k, w.random.IntN(500), w.random.Uint64(), w.random.Uint64(), w.random.Uint64()))
			if len(lines) == cap(lines) || k == n-1 {
				must(t, w.pushLines("a", l, w.now-int64(2*time.Hour)+int64(k)*int64(2*time.Hour)/int64(n), lines...))
				lines = lines[:0]
			}
		}
	}
}

// reopen empties the cache.
func (w *billWorld) reopen(t *testing.T) {
	t.Helper()
	must(t, w.Engine.Close())
	var err error
	w.Engine, err = OpenEngine(context.Background(), w.o)
	must(t, err)
}

// handler returns the APIs with budgets.
func (w *billWorld) handler(t testing.TB, limits bill.Limits) (h http.Handler, registry *prometheus.Registry) {
	t.Helper()
	c := config.Default()
	c.MemoryBytes, c.Query.MaxBytes, c.Bill, c.Bucket = 512<<20, 128<<20, limits, "s3://bucket"
	registry = prometheus.NewRegistry()
	log := slog.New(slog.DiscardHandler)
	shared := apiOptions(c, registry, log)
	shared.Now = func() time.Time { return time.Unix(0, w.now) }
	shared.Budgets = budgets(&c, w.Engine, registry)
	engine := newPromEngine(c, registry, log)
	mux := http.NewServeMux()
	prom.New(promOptions(c, w.Engine, engine, shared)).Routes(mux)
	lines := loki.New(lokiOptions(c, w.Engine, nil, shared, registry))
	lines.Routes(mux)
	t.Cleanup(func() {
		_ = engine.Close()
		_ = lines.Close()
	})
	return mux, registry
}

// billedQuery is a request, which may end before it has read all its pages.
type billedQuery struct {
	path   string
	params url.Values
}

func (q billedQuery) String() string { return q.path + "?" + q.params.Encode() }

func (w *billWorld) query() billedQuery {
	from := w.from - int64(2*time.Hour) + w.random.Int64N(w.now-w.from)
	to := from + w.random.Int64N(w.now-from+1) + 1
	if w.random.IntN(3) == 0 {
		to = from + w.random.Int64N(int64(5*time.Minute)) + 1
	}
	q := billedQuery{params: url.Values{}}
	set := func(path string, pairs ...string) billedQuery {
		q.path = path
		for i := 0; i < len(pairs); i += 2 {
			q.params.Set(pairs[i], pairs[i+1])
		}
		return q
	}
	seconds := func(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1e9, ns%1e9/1e6) }
	nanos := strconv.FormatInt
	pick := func(all ...string) string { return all[w.random.IntN(len(all))] }
	app := pick(`app="a0"`, `app=~"a[01]"`, `app=~".+"`, `app="a7"`, `app!="a1",service_name="s"`)
	switch w.random.IntN(8) {
	case 5:
		return set("/loki/api/v1/series", "match[]", `{`+app+`}`, "start", nanos(from, 10), "end", nanos(to, 10))
	case 6:
		return set("/loki/api/v1/index/volume_range", "query", `{`+app+`}`, "start", nanos(from, 10), "end", nanos(to, 10), "step", "30m")
	case 0:
		return set("/api/v1/query", "query", pick(`m`, `m[1h]`, `sum(count_over_time(m[24h]))`, `count(m) + count(m{i="3"})`, `m{i="5"}`), "time", seconds(to))
	case 1:
		return set("/api/v1/query_range", "query", pick(`sum by (job) (rate(m[5m]))`, `m{job="j1"}`, `count(m)`, `m{i="1"} or m{i="2"}`, `max_over_time(sum(m)[1h:5m])`),
			"start", seconds(from), "end", seconds(to), "step", "600")
	case 2:
		return set("/api/v1/series", "match[]", pick(`m`, `m{job="j2"}`), "start", seconds(from), "end", seconds(to))
	case 3:
		return set("/loki/api/v1/query_range", "query", `{`+app+`}`+pick(``, ` |= "w1f"`, ` | json | n > 5`, ` != "zzz"`), "start", nanos(from, 10), "end", nanos(to, 10),
			"limit", pick("1", "100", "5000"), "direction", pick("forward", "backward"))
	case 4:
		return set("/loki/api/v1/query_range", "query", pick(`sum(count_over_time({`+app+`}[10m]))`, `sum by (app) (rate({`+app+`} |= "w1f" [5m]))`, `sum(sum_over_time({`+app+`} | json | unwrap n [20m]))`,
			`bytes_over_time({`+app+`}[1h])`, `count_over_time({`+app+`} | json | word="w3" [1h])`), "start", nanos(from, 10), "end", nanos(to, 10), "step", "600")
	}
	return set("/loki/api/v1/index/volume", "query", `{`+app+`}`, "start", nanos(from, 10), "end", nanos(to, 10))
}

// get returns the response to a query and its statement of cost.
func (w *billWorld) get(t testing.TB, h http.Handler, q billedQuery, more string) (*httptest.ResponseRecorder, map[string]int64) {
	t.Helper()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, q.String()+more, nil)
	r.Header.Set("X-Scope-OrgID", "a")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	cost := make(map[string]int64)
	for item := range strings.SplitSeq(rec.Header().Get("Shale-Cost"), ", ") {
		name, value, _ := strings.Cut(item, "=")
		cost[name], _ = strconv.ParseInt(value, 10, 64)
	}
	return rec, cost
}

func (w *billWorld) bill(t *testing.T, h http.Handler, q billedQuery) *bill.Statement {
	t.Helper()
	rec, cost := w.get(t, h, q, "&explain=true")
	var got struct {
		Data json.RawMessage
		Bill *bill.Statement
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != http.StatusOK || got.Bill == nil || len(got.Data) == 0 {
		t.Fatalf("%s: %v, %d %s", q, err, rec.Code, rec.Body)
	}
	if cost["bucket-requests"] != got.Bill.Index.Requests || cost["bytes-bucket"] != got.Bill.Index.Bytes {
		t.Errorf("%s: the bill says that it has read %+v, and the cost says %v", q, got.Bill.Index, cost)
	}
	return got.Bill
}

// TestBillsHold: random queries on random data read at least and at most what their bills say, after the bill
// and without one before.
func TestBillsHold(t *testing.T) {
	racetest.SkipSerial(t) // TestWorlds asks such queries
	worlds, queries := 6, 40
	if testing.Short() {
		worlds, queries = 2, 20
	}
	for i := range worlds {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := newBillWorld(t, seed)
			defer func() { must(t, w.Engine.Close()) }()
			sure := 0
			for n := 0; n < queries || sure == 0 && n < 10*queries; n++ { // few bills have a lower bound
				if w.checkBill(t, w.query()) {
					sure++
				}
			}
			if sure == 0 {
				t.Error("no bill has a lower bound")
			}
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

// checkBill reports whether the bill has a lower bound.
func (w *billWorld) checkBill(t *testing.T, q billedQuery) bool {
	t.Helper()
	w.reopen(t)
	h, _ := w.handler(t, bill.Limits{})
	b := w.bill(t, h, q)
	rec, cost := w.get(t, h, q, "")
	if rec.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", q, rec.Code, rec.Body)
	}
	if n := cost["bucket-requests"]; n < b.Least.Requests || n > b.Most.Requests {
		t.Errorf("%s: %d requests, the bill says %d to %d", q, n, b.Least.Requests, b.Most.Requests)
	}
	if n := cost["bytes-bucket"]; n < b.Least.Bytes || n > b.Most.Bytes {
		t.Errorf("%s: %d bytes, the bill says %d to %d", q, n, b.Least.Bytes, b.Most.Bytes)
	}
	if b.Likely.Requests < b.Least.Requests || b.Likely.Requests > b.Most.Requests || b.Likely.Bytes < b.Least.Bytes || b.Likely.Bytes > b.Most.Bytes {
		t.Errorf("%s: %+v is not between the bounds", q, b)
	}
	if n := cost["pages-bucket"]; n > b.Pages {
		t.Errorf("%s: %d pages, the bill says at most %d", q, n, b.Pages)
	}
	t.Logf("%s: %d to %d requests, %d made; %d to %d bytes, %d read", q, b.Least.Requests, b.Most.Requests, cost["bucket-requests"], b.Least.Bytes, b.Most.Bytes, cost["bytes-bucket"])
	// Without a bill before, the query reads the indexes, too.
	w.reopen(t)
	h, _ = w.handler(t, bill.Limits{})
	_, cost = w.get(t, h, q, "")
	if n := cost["bucket-requests"]; n > b.Index.Requests+b.Most.Requests {
		t.Errorf("%s: %d requests without a bill, which says %d and at most %d", q, n, b.Index.Requests, b.Most.Requests)
	}
	if n := cost["bytes-bucket"]; n > b.Index.Bytes+b.Most.Bytes {
		t.Errorf("%s: %d bytes without a bill, which says %d and at most %d", q, n, b.Index.Bytes, b.Most.Bytes)
	}
	return b.Least.Requests > 0
}

// TestBudgetsRefuse: a query that is certain to exceed a budget is refused before it reads its pages, one
// that may fit ends at the budget, and neither has a result.
func TestBudgetsRefuse(t *testing.T) {
	w := newBillWorld(t, 1)
	defer func() { must(t, w.Engine.Close()) }()
	all := billedQuery{"/api/v1/query", url.Values{"query": {`sum(count_over_time(m[24h]))`}, "time": {strconv.FormatInt(w.now/1e9, 10)}}}
	lines := billedQuery{"/loki/api/v1/query_range", url.Values{
		"query": {`{app=~".+"} |= "no such word"`}, "start": {strconv.FormatInt(w.from-int64(2*time.Hour), 10)}, "end": {strconv.FormatInt(w.now, 10)}, "limit": {"100"},
	}}
	h, _ := w.handler(t, bill.Limits{})
	least := w.bill(t, h, all).Least
	if least.Requests < 2 || least.Bytes < 2 {
		t.Fatalf("%+v: there is too little data", least)
	}
	for setting, limits := range map[string]bill.Limits{
		"query.max-bucket-requests":    {QueryRequests: 1},
		"query.max-bucket-bytes":       {QueryBytes: 1},
		"query.tenant-bucket-requests": {TenantRequests: 1},
		"query.tenant-bucket-bytes":    {TenantBytes: 1},
		"query.all-bucket-requests":    {AllRequests: 1},
		"query.all-bucket-bytes":       {AllBytes: 1},
	} {
		for q, status := range map[*billedQuery]int{&all: http.StatusUnprocessableEntity, &lines: http.StatusBadRequest} {
			w.reopen(t)
			// The indexes are in the cache.
			h, _ := w.handler(t, bill.Limits{})
			w.bill(t, h, *q)
			h, registry := w.handler(t, limits)
			rec, cost := w.get(t, h, *q, "")
			text := rec.Body.String()
			if rec.Code != status || !strings.Contains(text, setting+" is 1") {
				t.Errorf("%s: %s: %d %s", setting, q, rec.Code, text)
			}
			if strings.Contains(text, "page at") {
				t.Errorf("%s: %s: the error names a page: %s", setting, q, text)
			}
			if q == &all && !strings.Contains(text, fmt.Sprintf("needs at least %d requests", least.Requests)) {
				t.Errorf("%s: %s: the error does not name the bill: %s", setting, q, text)
			}
			if n := cost["bucket-requests"]; n > 1 {
				t.Errorf("%s: %s: %d requests", setting, q, n)
			}
			if n := countedBy(t, registry, "shale_bill_refused_queries_total", setting); n != 1 {
				t.Errorf("%s: %s: %v queries are counted as refused", setting, q, n)
			}
		}
	}
	// What fits runs, and is counted.
	w.reopen(t)
	h, registry := w.handler(t, bill.Limits{QueryRequests: 1 << 20, TenantBytes: 1 << 40})
	rec, cost := w.get(t, h, all, "")
	if rec.Code != http.StatusOK {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if n := countedBy(t, registry, "shale_bill_requests_total", "a"); int64(n) != cost["bucket-requests"] || n == 0 {
		t.Errorf("%v requests are counted for the tenant, and %d for the query", n, cost["bucket-requests"])
	}
}

// countedBy returns a counter with one label.
func countedBy(t *testing.T, r *prometheus.Registry, name, value string) float64 {
	t.Helper()
	all, err := r.Gather()
	must(t, err)
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == value {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// BenchmarkBudgets measures a small query of the newest samples: without budgets, and with ones that it
// keeps.
func BenchmarkBudgets(b *testing.B) {
	t := new(testing.T) // newSetup wants one
	w := &billWorld{setup: newSetup(t, nil), random: rand.New(rand.NewPCG(1, 1))}
	for i := range 10 {
		must(t, w.push("a", model.LabelsOf("__name__", "m", "i", strconv.Itoa(i)), w.now, 1))
	}
	q := billedQuery{"/api/v1/query", url.Values{"query": {"sum(m)"}, "time": {strconv.FormatInt(w.now/1e9, 10)}}}
	for name, limits := range map[string]bill.Limits{"off": {}, "on": {QueryRequests: 1 << 20, TenantRequests: 1 << 20}} {
		b.Run(name, func(b *testing.B) {
			h, _ := w.handler(b, limits)
			b.ReportAllocs()
			for b.Loop() {
				if rec, _ := w.get(b, h, q, ""); rec.Code != http.StatusOK {
					b.Fatal(rec.Body)
				}
			}
		})
	}
	if err := w.Engine.Close(); err != nil {
		b.Fatal(err)
	}
}

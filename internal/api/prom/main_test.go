package prom_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is the time of every test.
var now = time.Unix(1000, 0)

// world is an API over a store in memory.
type world struct {
	options prom.Options
	memory  *readtest.Memory
	reg     *prometheus.Registry
	http.Handler
}

// newWorld builds an API; change may change its options before.
func newWorld(t testing.TB, change func(*prom.Options)) *world {
	t.Helper()
	w := &world{memory: readtest.NewMemory(1), reg: prometheus.NewRegistry()}
	querier := read.New(read.Options{Sources: []read.Source{w.memory}})
	w.options = prom.Options{
		Engine: newEngine(t, 1000, 10*time.Second),
		Queryable: func(tenant string, q *model.Quota, c *model.Cost) storage.Queryable {
			return &shalepromql.Queryable{Read: querier, Tenant: tenant, Quota: q, Cost: c}
		},
		Version:    prom.Version{Version: "1.2.3", Revision: "r", Branch: "b", BuildUser: "u", BuildDate: "d", GoVersion: "g"},
		Now:        func() time.Time { return now },
		Registerer: w.reg,
	}
	if change != nil {
		change(&w.options)
	}
	mux := http.NewServeMux()
	prom.New(w.options).Routes(mux)
	w.Handler = mux
	t.Cleanup(func() {
		if n := w.memory.Open(); n != 0 {
			t.Errorf("%d cursors were not closed", n)
		}
	})
	return w
}

func newEngine(t testing.TB, maxSamples int, timeout time.Duration) *promql.Engine {
	e := promql.NewEngine(promql.EngineOpts{
		MaxSamples: maxSamples, Timeout: timeout, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 },
		Parser:                   parser.NewParser(parser.Options{}),
	})
	t.Cleanup(func() { e.Close() })
	return e
}

// load adds a series: name{label="value"}, and samples as seconds:value.
func (w *world) load(tenant, line string) error {
	metric, samples := line, ""
	if i := strings.LastIndex(line, "}"); i >= 0 {
		metric, samples = line[:i+1], line[i+1:]
	} else {
		metric, samples, _ = strings.Cut(line, " ")
	}
	ls, err := parser.NewParser(parser.Options{}).ParseMetric(metric)
	if err != nil {
		return err
	}
	var pairs []string
	ls.Range(func(l labels.Label) { pairs = append(pairs, l.Name, l.Value) })
	l := model.LabelsOf(pairs...)
	var rows model.Rows
	for _, s := range strings.Fields(samples) {
		at, value, _ := strings.Cut(s, ":")
		t, err := strconv.ParseFloat(at, 64)
		if err != nil {
			return err
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return err
		}
		rows.Append(int64(t*1000)*1e6, math.Float64bits(v), 0)
	}
	w.memory.Add(tenant, l.Key(7, model.Metrics), l, &rows)
	return nil
}

func (w *world) mustLoad(t testing.TB, tenant string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if err := w.load(tenant, l); err != nil {
			t.Fatal(err)
		}
	}
}

// do sends a request. Parameters are name=value, not escaped; headers are Name: value.
func (w *world) do(method, path string, params, headers []string) *httptest.ResponseRecorder {
	form := url.Values{}
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		form.Add(name, value)
	}
	var r *http.Request
	if method == http.MethodPost {
		r = httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	} else {
		if len(form) > 0 {
			path += "?" + form.Encode()
		}
		r = httptest.NewRequest(method, path, nil)
	}
	return w.send(r, headers)
}

// send sends a request with headers, which are Name: value.
func (w *world) send(r *http.Request, headers []string) *httptest.ResponseRecorder {
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	out := httptest.NewRecorder()
	w.ServeHTTP(out, r)
	return out
}

func (w *world) get(path string, params ...string) *httptest.ResponseRecorder {
	return w.do(http.MethodGet, path, params, nil)
}

func show(r *httptest.ResponseRecorder) string {
	return fmt.Sprintf("%d %s\n", r.Code, r.Body)
}

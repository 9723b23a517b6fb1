package app

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
)

var (
	promSeed = flag.Uint64("prom-rollup-seed", 0, "the seed of TestPromRollups; 0: any")
	promRuns = flag.Int("prom-rollup-runs", 6, "the number of stores of TestPromRollups")
)

// promql evaluates a range query, with rollups or without.
func (s *setup) promql(e *shalepromql.Engine, rollups bool, text string, start, end, step int64) (m promql.Matrix, notes string, err error) {
	q := &shalepromql.Queryable{Read: s.Querier(), Tenant: "a", Quota: new(model.Quota), Cost: new(model.Cost)}
	if rollups {
		q.Rollups = s.promRollups()
	}
	query, err := e.NewRangeQuery(context.Background(), q, nil, text, time.UnixMilli(start), time.UnixMilli(end), time.Duration(step)*time.Millisecond)
	if err != nil {
		return nil, "", err
	}
	defer query.Close()
	r := query.Exec(context.Background())
	if r.Err != nil {
		return nil, "", r.Err
	}
	warnings, infos := r.Warnings.AsStrings(text, 0, 0)
	own, err := r.Matrix()
	for _, x := range own { // its memory is reused
		m = append(m, promql.Series{Metric: x.Metric, Floats: slices.Clone(x.Floats)})
	}
	return m, strings.Join(append(append(warnings, infos...), q.Cost.Warnings.All()...), "\n"), err
}

func newTestEngine() *shalepromql.Engine {
	e, _ := shalepromql.Features("").Engine(promql.EngineOpts{MaxSamples: 1e8, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true})
	return e
}

// twins are a store whose points expire and one that keeps them.
type twins struct {
	t         *testing.T
	r         *rand.Rand
	own, full *setup
	begin     int64
	clock     int64
	late      bool // points came for days whose points have expired
}

func newTwins(t *testing.T, r *rand.Rand) *twins {
	p := policiesOf(t, someSchemas, someAggregations)
	w := &twins{t: t, r: r}
	w.own = newSetup(t, func(o *EngineOptions) {
		o.Rollups, o.Summaries = func() *policy.Policies { return p }, true
		o.Retention = keeping(3 * day)
		o.Now = func() int64 { return w.clock }
	})
	w.full = newSetup(t, func(o *EngineOptions) { o.Now = func() int64 { return w.clock } })
	w.clock = w.own.now / int64(day) * int64(day)
	w.begin = w.clock
	return w
}

// give pushes points of a name to both.
func (w *twins) give(l model.Labels, at []int64, values []uint64) {
	for _, s := range []*setup{w.own, w.full} {
		b := s.Path().Batch("a", model.Metrics)
		b.Source = oneSeries(l)
		for i := range at {
			b.Samples.Append(at[i], values[i], 0)
		}
		b.EndSeries(l.Key(s.Path().Seed(), model.Metrics))
		res, err := s.Path().Push(context.Background(), b)
		must(w.t, err)
		if len(res.Rejected) > 0 {
			w.t.Fatalf("rejected: %v", res.Rejected)
		}
		s.Path().Recycle(b)
	}
}

// points returns random points from a time on: a point each step or so, at whole minutes or anywhere.
func (w *twins) points(from, to int64) (at []int64, values []uint64) {
	step := []int64{15, 60, 300, 600}[w.r.IntN(4)] * int64(time.Second)
	shift := []int64{0, 0, 1e6, -1e6, w.r.Int64N(step)}[w.r.IntN(5)]
	for t := from; t < to; t += step {
		x := t + shift
		if w.r.IntN(8) == 0 || x < from || x >= to {
			continue
		}
		if w.r.IntN(20) == 0 {
			x += w.r.Int64N(2e6) // twice in a millisecond, now and then
		}
		v := math.Float64bits([]float64{float64(w.r.IntN(1000)), w.r.NormFloat64() * 1e3, math.Copysign(0, -1), w.r.Float64() * 1e12, float64(x / 1e9 % 1000)}[w.r.IntN(5)])
		switch w.r.IntN(200) {
		case 0:
			v = model.StaleNaN
		case 1:
			v = math.Float64bits(math.NaN())
		case 2:
			v = math.Float64bits(math.Inf(1))
		}
		if n := len(at); n > 0 && at[n-1] >= x {
			continue
		}
		at, values = append(at, x), append(values, v)
		if w.r.IntN(50) == 0 {
			at, values = append(at, x+1000), append(values, math.Float64bits(7))
		}
	}
	return at, values
}

// expression returns a random function of windows, and their width, offset and step in milliseconds.
func (w *twins) expression() (text, name string, width, step int64) {
	lengths := []int64{300, 600, 3600, 7200, 14400, 86400}
	width, step = lengths[w.r.IntN(6)]*1000, lengths[w.r.IntN(6)]*1000
	if w.r.IntN(10) == 0 {
		width += 60_000
	}
	name = []string{"sum", "count", "avg", "min", "max", "last", "present", "sum", "avg", "stddev", "first"}[w.r.IntN(10)] + "_over_time"
	selector := []string{`fine.a`, `coarse.max`, `odd.last`, `single.a`, `coarse.tagged`}[w.r.IntN(5)]
	text = fmt.Sprintf(`%s({__name__=%q}[%dms]`, name, selector, width)
	if w.r.IntN(2) == 0 {
		text += " offset 1ms"
	}
	text += ")"
	switch w.r.IntN(4) {
	case 0:
		text = "sum by (dc) (" + text + ")"
	case 1:
		text = "2 * " + text
	}
	return text, name, width, step
}

// near compares values of two queries. Sums are added up in another order.
func nearValues(name string, a, b float64) bool {
	switch {
	case math.Float64bits(a) == math.Float64bits(b), math.IsNaN(a) && math.IsNaN(b):
		return true
	case strings.HasPrefix(name, "sum"), strings.HasPrefix(name, "avg"):
		return math.Abs(a-b) <= 1e-12*math.Max(1e12, math.Abs(a)) // the greatest points are 1e12
	}
	return a == b
}

// check compares a random query. It reports whether rollups were used, and whether it was refused.
func (w *twins) check(e *shalepromql.Engine) (used, refused bool) {
	w.t.Helper()
	text, name, width, step := w.expression()
	now := w.clock / 1e6
	start := (w.begin/1e6 + w.r.Int64N(now-w.begin/1e6)) / step * step
	if w.r.IntN(10) == 0 {
		start += 1000
	}
	end := min(start+step*w.r.Int64N(60), now)
	if end < start {
		end = start
	}
	if none := strings.Contains(text, "single") || strings.Contains(text, "odd"); none && start-width < now-3*day.Milliseconds() {
		return false, false // retention has dropped what has no rollups
	}
	got, notes, err := w.own.promql(e, true, text, start, end, step)
	want, _, wantErr := w.full.promql(e, false, text, start, end, step)
	must(w.t, wantErr)
	what := fmt.Sprintf("%s from %d to %d by %d, at %d", text, start, end, step, now)
	if err != nil {
		if !strings.Contains(err.Error(), "rollups") || strings.Contains(text, "single") || len(w.own.catalog.State().Rollups) == 0 {
			w.t.Fatalf("%s: %v", what, err)
		}
		return false, true
	}
	if w.late && strings.Contains(notes, "late") {
		return true, false
	}
	if len(got) != len(want) {
		w.t.Fatalf("%s: %d series, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i].Metric.String() != want[i].Metric.String() || len(got[i].Floats) != len(want[i].Floats) {
			w.t.Fatalf("%s: %s has %d values, want %s with %d\n%s", what, got[i].Metric, len(got[i].Floats), want[i].Metric, len(want[i].Floats), notes)
		}
		for k, p := range got[i].Floats {
			if q := want[i].Floats[k]; p.T != q.T || !nearValues(strings.TrimSuffix(name, "_over_time"), p.F, q.F) {
				plain, _, _ := w.own.promql(e, false, text, start, end, step)
				w.t.Fatalf("%s: %s at %d is %v, want %v at %d\n%s\nwithout rollups: %v", what, got[i].Metric, p.T, p.F, q.F, q.T, notes, plain)
			}
		}
	}
	return strings.Contains(notes, "computed from rollups"), false
}

// TestPromRollups: functions over summaries of slots have the values that they have over points, whatever of
// these has expired. What summaries do not give is read from points or refused.
func TestPromRollups(t *testing.T) {
	racetest.SkipSerial(t) // one goroutine
	e := newTestEngine()
	totals := map[string]int{}
	for run := range *promRuns {
		seed := *promSeed
		if seed == 0 {
			seed = rand.Uint64()
		}
		t.Logf("run %d: -prom-rollup-seed %d", run, seed)
		w := newTwins(t, rand.New(rand.NewPCG(seed, 0)))
		names := []model.Labels{
			model.LabelsOf("__name__", "fine.a"), model.LabelsOf("__name__", "coarse.max"), model.LabelsOf("__name__", "odd.last"), model.LabelsOf("__name__", "single.a"),
			model.LabelsOf("__name__", "coarse.tagged", "dc", "x"), model.LabelsOf("__name__", "coarse.tagged", "dc", "y"),
		}
		for d := range int64(9) {
			from := w.clock
			w.clock += int64(day)
			for _, l := range names {
				if at, values := w.points(from, from+int64(day)); len(at) > 0 && w.r.IntN(6) > 0 {
					w.give(l, at, values)
				}
			}
			if w.r.IntN(3) == 0 { // late points
				back := 1 + w.r.Int64N(min(d+1, 5))
				late := w.clock - back*int64(day)
				at, values := w.points(late, late+int64(time.Hour))
				if w.r.IntN(2) == 0 && len(at) > 1 {
					at, values = at[:1], values[:1]
				}
				if len(at) > 0 {
					w.late = w.late || back >= 2
					w.give(names[w.r.IntN(len(names))], at, values)
				}
			}
			if w.r.IntN(4) > 0 {
				must(t, w.own.Ship())
			}
			w.clock += int64(2 * time.Hour)
			if w.r.IntN(3) > 0 {
				w.own.compact(t)
			}
			w.own.now = w.clock
			if w.r.IntN(2) == 0 {
				w.own.expire(t)
			}
			for range 40 {
				used, refused := w.check(e)
				totals["queries"]++
				if used {
					totals["used"]++
				}
				if refused {
					totals["refused"]++
				}
			}
			w.clock -= int64(2 * time.Hour)
		}
		must(t, w.own.Close())
		must(t, w.full.Close())
	}
	t.Log(totals)
	if totals["used"] == 0 || totals["refused"] == 0 || totals["refused"] > totals["queries"]/2 {
		t.Error("the queries are no test")
	}
}

// TestPromRollupsAPI: the parameter and the setting say which queries use rollups, responses say where, and
// what needs points is refused with the reason.
func TestPromRollupsAPI(t *testing.T) {
	p := policiesOf(t, "[all]\npattern = .*\nretentions = 60s:1d,5m:30d,1h:3y\n", "")
	s := newSetup(t, func(o *EngineOptions) {
		o.Rollups, o.Summaries, o.Retention = func() *policy.Policies { return p }, true, keeping(3*day)
	})
	begin := s.now / int64(day) * int64(day)
	for i := range int64(6 * 1440) {
		s.now = begin + i*int64(time.Minute)
		must(t, s.push("a", model.LabelsOf("__name__", "temperature", "room", "a"), s.now, float64(i*i%97)))
	}
	must(t, s.Ship())
	s.now += int64(2 * time.Hour)
	s.compact(t)
	s.expire(t)
	at := func(d int) int64 { return (begin + int64(d)*int64(day)) / int64(time.Second) }
	ask := func(use shalepromql.RollupUse, params string) (int, string) {
		c := config.Default()
		c.QueryRollups = use
		must(t, c.Memory.UnmarshalText([]byte("256MiB")))
		must(t, c.Resolve(config.Machine{MemoryBytes: 1 << 30, DiskBytes: 1 << 30}))
		engine := newPromEngine(c, prometheus.NewRegistry(), nil)
		defer func() { _ = engine.Close() }()
		mux := http.NewServeMux()
		prom.New(promOptions(c, s.Engine, engine, api.Options{Registerer: prometheus.NewRegistry(), Now: func() time.Time { return time.Unix(0, s.now) }})).Routes(mux)
		r := httptest.NewRequest(http.MethodGet, "/api/v1/query?"+params, nil)
		r.Header.Set(model.TenantHeader, "a")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	for _, c := range []struct {
		use    shalepromql.RollupUse
		query  string
		params string
		status int
		want   string
	}{
		{shalepromql.RollupsAsked, "avg_over_time(temperature[1d])", "&rollups=true", 200, `"infos":["PromQL info: avg_over_time(temperature[1d]) was computed from rollups of 1h for the time from`},
		{shalepromql.RollupsAlways, "avg_over_time(temperature[1d])", "", 200, "rollups of 1h"},
		{shalepromql.RollupsAlways, "avg_over_time(temperature[1d])", "&rollups=false", 200, `"result":[]`},
		{shalepromql.RollupsAsked, "avg_over_time(temperature[1d])", "", 200, `"result":[]`},
		{shalepromql.RollupsAsked, "avg_over_time(temperature[25m])", "&rollups=true", 200, "rollups of 5m"},
		{shalepromql.RollupsAsked, "rate(temperature[1d])", "&rollups=true", 422, "rate(temperature[1d]) needs points, and only rollups are left"},
		{shalepromql.RollupsAsked, "avg_over_time(temperature[90s])", "&rollups=true", 422, "needs points, or windows that consist of slots: only rollups of 1h and of 5m are left"},
		{shalepromql.RollupsAsked, "temperature", "&rollups=true", 422, "temperature needs points, and only rollups are left"},
		{shalepromql.RollupsOff, "temperature", "&rollups=true", 400, "query.rollups"},
		{shalepromql.RollupsAsked, "temperature", "&rollups=maybe", 400, "must be true or false"},
	} {
		status, body := ask(c.use, "query="+url.QueryEscape(c.query)+"&time="+fmt.Sprint(at(1))+c.params)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s, %s%s: status %d, want %d with %s: %s", c.use, c.query, c.params, status, c.status, c.want, body)
		}
		t.Logf("%s%s: %s", c.query, c.params, body)
	}
	must(t, s.Close())
}

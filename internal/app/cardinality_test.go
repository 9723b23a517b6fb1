package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
	prommodel "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/usage"
	"github.com/shaledb/shale/internal/write"
)

// entriesText returns the entries of a list as text.
func entriesText(list []prom.CountEntry) (all []string) {
	number := func(n *uint64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	for _, x := range list {
		all = append(all, fmt.Sprintf("%s %d %s %s", x.Name, x.Series, number(x.Values), number(x.Before)))
	}
	return all
}

// TestCardinality: the same counts from buffers, parts and blocks; by day; of the right tenant; and what has
// created series survives a restart.
func TestCardinality(t *testing.T) {
	s := newSetup(t, func(o *EngineOptions) { o.Registerer = prometheus.NewRegistry() })
	defer func() { must(t, s.Close()) }()
	today := time.Unix(0, s.now).UTC().Truncate(24 * time.Hour)
	yesterday := today.AddDate(0, 0, -1)
	push := func(tenant string, at time.Time, from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			must(t, s.push(tenant, model.LabelsOf("__name__", fmt.Sprint("m", i%3), "i", fmt.Sprint(i), "job", "x"), at.UnixNano(), 1))
		}
	}
	push("a", yesterday.Add(time.Hour), 0, 10)
	push("a", today.Add(time.Hour), 6, 12)
	push("b", today.Add(time.Hour), 0, 1)
	count := func(change func(q *prom.CountQuery)) *prom.Counts {
		t.Helper()
		q := &prom.CountQuery{Tenant: "a", Signal: model.Metrics, By: prom.CountMetrics, Limit: 10, Quota: &model.Quota{MaxBytes: 10 << 20}, Cost: &model.Cost{}}
		change(q)
		got, err := s.Engine.counter().Count(context.Background(), q)
		must(t, err)
		return got
	}
	check := func(when string) {
		t.Helper()
		for _, test := range []struct {
			name   string
			change func(q *prom.CountQuery)
			series uint64
			want   []string
		}{
			{"metrics", func(q *prom.CountQuery) {}, 12, []string{"m0 4 - -", "m1 4 - -", "m2 4 - -"}},
			{"first", func(q *prom.CountQuery) { q.Limit = 1 }, 12, []string{"m0 4 - -"}},
			{"labels", func(q *prom.CountQuery) { q.By = prom.CountLabels }, 12, []string{"i 12 12 -", "__name__ 12 3 -", "job 12 1 -"}},
			{"values", func(q *prom.CountQuery) { q.By, q.Label = prom.CountValues, "job" }, 12, []string{"x 12 - -"}},
			{"all labels", func(q *prom.CountQuery) { q.By, q.Limit = prom.CountValues, 2 }, 12, []string{"job=x 12 - -", "__name__=m0 4 - -"}},
			{"selected", func(q *prom.CountQuery) {
				q.Matchers = []*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, "i", "1|4|9")}
			}, 3, []string{"m1 2 - -", "m0 1 - -"}},
			{"another tenant", func(q *prom.CountQuery) { q.Tenant = "b" }, 1, []string{"m0 1 - -"}},
			{"no tenant", func(q *prom.CountQuery) { q.Tenant = "c" }, 0, nil},
			{"logs", func(q *prom.CountQuery) { q.By, q.Signal = prom.CountLabels, model.Logs }, 0, nil},
		} {
			if got := count(test.change); got.Series != test.series || got.Undercount != 0 || !reflect.DeepEqual(entriesText(got.List), test.want) {
				t.Errorf("%s, %s: %d series, %v", when, test.name, got.Series, entriesText(got.List))
			}
		}
	}
	check("in buffers")
	must(t, s.Flush())
	check("in parts")

	byDay := func(when, tenant string) {
		t.Helper()
		if got := count(func(q *prom.CountQuery) { q.Tenant, q.Day = tenant, yesterday }); got.Series != 10 || !reflect.DeepEqual(entriesText(got.List), []string{"m0 4 - -", "m1 3 - -", "m2 3 - -"}) {
			t.Errorf("%s, yesterday: %+v", when, got)
		}
		got := count(func(q *prom.CountQuery) { q.Tenant, q.Day, q.Against = tenant, today, yesterday })
		if got.Series != 6 || *got.Before != 10 || !reflect.DeepEqual(entriesText(got.List), []string{"m0 2 - 4", "m1 2 - 3", "m2 2 - 3"}) {
			t.Errorf("%s, changes: %+v %v", when, got, entriesText(got.List))
		}
		got = count(func(q *prom.CountQuery) {
			q.Tenant, q.By, q.Day, q.Against = tenant, prom.CountLabels, today, yesterday
		})
		if !reflect.DeepEqual(entriesText(got.List), []string{"i 0 6 10"}) {
			t.Errorf("%s, changes of labels: %v", when, entriesText(got.List))
		}
	}
	byDay("in parts", "a")
	// A block of late samples may hold several days until it is merged, so the days are shipped apart.
	push("d", yesterday.Add(time.Hour), 0, 10)
	must(t, s.Ship())
	push("d", today.Add(time.Hour), 6, 12)
	must(t, s.Ship())
	byDay("in the bucket", "d")

	active := func() *prom.Active {
		got, err := s.Engine.counter().Active(context.Background(), &prom.ActiveQuery{Tenant: "a", Signal: model.Metrics, From: today, To: today, Limit: 2})
		must(t, err)
		return got
	}
	before := active()
	if before.Active != 12 || before.New.Series != 12 || !reflect.DeepEqual(entriesText(before.New.List), []string{"m0 4 - -", "m1 4 - -"}) {
		t.Errorf("%+v", before)
	}
	must(t, s.Engine.Close())
	s.o.Registerer = prometheus.NewRegistry()
	var err error
	s.Engine, err = OpenEngine(context.Background(), s.o)
	must(t, err)
	if after := active(); len(after.Days) != 1 || after.Days[0].Series != 12 || !reflect.DeepEqual(after.Days, before.Days) {
		t.Errorf("after a restart: %+v, before %+v", after.Days, before.Days)
	}
}

// TestUnused: what queries ask for, in whatever way, is used, and the rest is what a rule would drop.
func TestUnused(t *testing.T) {
	s := newSetup(t, func(o *EngineOptions) {
		o.Registerer = prometheus.NewRegistry()
		o.Prices = usage.Prices{Series: 10}
	})
	defer func() { must(t, s.Close()) }()
	for _, name := range []string{"equal", "regex_a", "regex_b", "byjob", "grouped", "idle", "idle.two"} {
		job := "other"
		if name == "byjob" {
			job = "mine"
		}
		for i := range 2 {
			must(t, s.push("a", model.LabelsOf("__name__", name, "job", job, "i", fmt.Sprint(i), "pod", "p", "cluster", "c"), s.now, 1))
		}
	}
	c := config.Default()
	must(t, c.Memory.UnmarshalText([]byte("256MiB")))
	must(t, c.Resolve(config.Machine{MemoryBytes: 1 << 30, DiskBytes: 1 << 30}))
	engine := newPromEngine(c, prometheus.NewRegistry(), nil)
	defer func() { _ = engine.Close() }()
	mux := http.NewServeMux()
	prom.New(promOptions(c, s.Engine, engine, api.Options{Registerer: prometheus.NewRegistry(), Now: func() time.Time { return time.Unix(0, s.now) }})).Routes(mux)
	get := func(path string) string {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, "/api/v1/"+path, nil)
		r.Header.Set(model.TenantHeader, "a")
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Fatal(path, w.Body)
		}
		return w.Body.String()
	}
	at := fmt.Sprint("&time=", s.now/1e9)
	for _, q := range []string{
		"query?query=" + url.QueryEscape(`rate(equal[5m])`) + at,
		"query?query=" + url.QueryEscape(`{__name__=~"regex_.*"}`) + at,
		"series?match[]=" + url.QueryEscape(`{job="mine"}`),
		"query?query=" + url.QueryEscape(`sum by (i) (grouped)`) + at,
		// Looking at what there is does not use it.
		"cardinality/metrics", "cardinality/labels?day=2023-11-14", "label/__name__/values", "labels", "status/tsdb",
	} {
		get(q)
	}
	s.now += int64(24 * time.Hour)
	must(t, s.Flush())
	check := func(when string) {
		t.Helper()
		var got struct{ Data prom.Unused }
		must(t, json.Unmarshal([]byte(get("cardinality/unused")), &got))
		u := &got.Data
		if u.Days != 1 || u.Full || u.Series != 14 || u.Metrics != 2 || u.ByMetric[0].Name != "idle" || u.ByMetric[0].Series != 2 || u.Saved.Series != 4 || u.ByMetric[1].DollarsPerMonth != 0.6 {
			t.Errorf("%s: %+v", when, u)
		}
		if want := []prom.UnusedLabel{{Name: "cluster", Series: 14, Values: 1, ValueBytes: 14, Droppable: true}, {Name: "pod", Series: 14, Values: 1, ValueBytes: 14, Droppable: true}}; !reflect.DeepEqual(u.ByLabel, want) {
			t.Errorf("%s: %+v", when, u.ByLabel)
		}
		if want := "- source_labels: [__name__]\n  regex: 'idle|idle\\.two'\n  action: drop\n- regex: 'cluster|pod'\n  action: labeldrop\n"; u.Relabel != want {
			t.Errorf("%s: %q", when, u.Relabel)
		}
		// The rule is one that Prometheus takes, and drops what it should.
		var rules []*relabel.Config
		must(t, yaml.Unmarshal([]byte(u.Relabel), &rules))
		for _, r := range rules {
			must(t, r.Validate(prommodel.UTF8Validation))
		}
		if relabel.ProcessBuilder(labels.NewBuilder(labels.FromStrings("__name__", "idle.two")), rules...) {
			t.Error("the rule keeps an unused metric")
		}
		b := labels.NewBuilder(labels.FromStrings("__name__", "equal", "pod", "p", "i", "1"))
		if keep := relabel.ProcessBuilder(b, rules...); !keep || b.Labels().String() != `{__name__="equal", i="1"}` {
			t.Errorf("the rule makes %s, %v of a used metric", b.Labels(), keep)
		}
	}
	check("at first")
	must(t, s.Engine.Close())
	s.o.Registerer = prometheus.NewRegistry()
	var err error
	s.Engine, err = OpenEngine(context.Background(), s.o)
	must(t, err)
	mux = http.NewServeMux()
	prom.New(promOptions(c, s.Engine, engine, api.Options{Registerer: prometheus.NewRegistry()})).Routes(mux)
	check("after a restart")
}

// limits.metric-series counts the series of the known set, also after a restart. Known series are stored at
// the limit.
func TestMetricSeries(t *testing.T) {
	c := config.Default()
	c.Groups.Metric = 2
	book := &tenantBook{c: &c, close: func() {}}
	book.now.Store(c.EveryTenant())
	s := newSetup(t, func(o *EngineOptions) { o.Tenants, o.Idle = book, false })
	awaitKnown(t, s.Engine)
	series := func(i int) model.Labels { return model.LabelsOf("__name__", "up", "i", fmt.Sprint(i)) }
	push := func(i int) error { return s.push("a", series(i), s.now, float64(i)) }
	refused := func(when string, err error) {
		t.Helper()
		var r *write.Refused
		if !errors.As(err, &r) || r.Status != http.StatusTooManyRequests || r.Limit != "limits.metric-series" {
			t.Errorf("%s: %v", when, err)
		}
	}
	must(t, push(1))
	must(t, push(2))
	refused("a third series", push(3))
	must(t, s.push("b", series(3), s.now, 1))
	must(t, s.push("a", series(1), s.now+1, 1))
	must(t, s.Close())
	var err error
	s.o.Registerer = prometheus.NewRegistry()
	s.Engine, err = OpenEngine(t.Context(), s.o)
	must(t, err)
	awaitKnown(t, s.Engine)
	refused("after a restart", push(3))
	must(t, s.Close())
}

// awaitKnown waits until the engine knows which series are active.
func awaitKnown(t *testing.T, e *Engine) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := e.head.Active("", model.Metrics); err == nil {
			return
		} else if time.Since(begin) > time.Minute {
			t.Fatal(err)
		}
	}
}

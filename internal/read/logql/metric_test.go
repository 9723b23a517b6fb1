package logql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/read/readtest"
)

func numbersTable(n *Numbers) string {
	var sb strings.Builder
	for _, s := range n.Matrix.Series {
		sb.WriteString(s.Labels.String())
		for i, v := range s.Values {
			if s.Present.Has(i) {
				fmt.Fprintf(&sb, " %d:%v", n.Matrix.Steps.Time(i), v)
			}
		}
		sb.WriteByte('\n')
	}
	for _, w := range n.Warnings {
		fmt.Fprintln(&sb, "warning:", w)
	}
	return sb.String()
}

// second is a unit of time in which ranges of queries can be written.
const second = 1_000_000_000

// factory is a small world of two tenants, with a line each few seconds.
func factory(t *testing.T) *Engine {
	t.Helper()
	m := readtest.NewMemory(1)
	add := func(tenant string, l model.Labels, lines ...readtest.Line) {
		for i := range lines {
			lines[i].Time *= second
		}
		m.AddText(tenant, l.Key(1, model.Logs), l, lines...)
	}
	add("a", model.LabelsOf("app", "web", "zone", "1"),
		readtest.Line{Time: 10, Text: `{"ms":5,"path":"/"}`},
		readtest.Line{Time: 20, Text: `{"ms":7,"path":"/cart"}`},
		readtest.Line{Time: 25, Text: `{"ms":9,"path":"/"}`})
	add("a", model.LabelsOf("app", "web", "zone", "2"),
		readtest.Line{Time: 12, Text: `{"ms":1,"path":"/"}`},
		readtest.Line{Time: 22, Text: `{"ms":"slow","path":"/cart"}`})
	add("a", model.LabelsOf("app", "db"), readtest.Line{Time: 20, Text: "slow query"})
	add("b", model.LabelsOf("app", "web", TenantLabel, "mine"), readtest.Line{Time: 25, Text: "GET /b"})
	return New(Options{Read: read.New(read.Options{Sources: []read.Source{m}})})
}

func TestNumbers(t *testing.T) {
	e := factory(t)
	steps := vector.Steps{Start: 10 * second, Step: 10 * second, Count: 3}
	instant := vector.Steps{Start: 30 * second, Count: 1}
	one, both := []string{"a"}, []string{"a", "b"}
	for _, c := range []struct {
		query     string
		tenants   []string
		instant   bool
		maxSeries int
		partial   bool
		kind      ResultKind
		want      string
	}{
		{query: `1 + 1`, tenants: one, instant: true, kind: ResultScalar, want: `
{} 30000000000:2
`},
		{query: `1 + 1`, tenants: one, want: `
{} 10000000000:2 20000000000:2 30000000000:2
`},
		{query: `vector(3)`, tenants: one, instant: true, kind: ResultVector, want: `
{} 30000000000:3
`},
		{query: `count_over_time({app=~".+"}[10s])`, tenants: one, want: `
{app="db"} 20000000000:1
{app="web", zone="1"} 10000000000:1 20000000000:1 30000000000:1
{app="web", zone="2"} 20000000000:1 30000000000:1
`},
		{query: `sum by (app) (count_over_time({app=~".+"}[30s]))`, tenants: one, instant: true, kind: ResultVector, want: `
{app="db"} 30000000000:1
{app="web"} 30000000000:5
`},
		{query: `sort_desc(sum by (app) (count_over_time({app=~".+"}[30s])))`, tenants: one, instant: true, kind: ResultVector, want: `
{app="web"} 30000000000:5
{app="db"} 30000000000:1
`},
		{query: `sum by (path) (rate({app="web"} | json [20s])) / on () group_left sum(rate({app="web"}[20s]))`, tenants: one, want: `
{path="/"} 10000000000:1 20000000000:0.6666666666666667 30000000000:0.5
{path="/cart"} 20000000000:0.33333333333333337 30000000000:0.5
`},
		{query: `max by (path) (max_over_time({app="web"} | json | unwrap ms | __error__="" [30s]))`, tenants: one, instant: true, kind: ResultVector, want: `
{path="/"} 30000000000:9
{path="/cart"} 30000000000:7
`},
		{query: `sum by (__tenant_id__) (count_over_time({app="web"}[1m]))`, tenants: both, instant: true, kind: ResultVector, want: `
{__tenant_id__="a"} 30000000000:5
{__tenant_id__="b"} 30000000000:1
`},
		{query: `count_over_time({app="web", __tenant_id__="b"}[1m])`, tenants: both, instant: true, kind: ResultVector, want: `
{__tenant_id__="b", app="web", original___tenant_id__="mine"} 30000000000:1
`},
		{query: `count_over_time({app=~".+"}[10s])`, tenants: one, maxSeries: 3, want: `
{app="db"} 20000000000:1
{app="web", zone="1"} 10000000000:1 20000000000:1 30000000000:1
{app="web", zone="2"} 20000000000:1 30000000000:1
`},
		{query: `count_over_time({app=~".+"}[10s])`, tenants: one, maxSeries: 2, partial: true, want: `
{app="db"} 20000000000:1
{app="web", zone="1"} 10000000000:1 20000000000:1 30000000000:1
warning: maximum number of series (2) reached for a single query; returning partial results
`},
		{query: `label_replace(count_over_time({app=~".+"}[10s]), "app", "x", "", "") or label_replace(vector(1), "zone", "2", "", "")`, tenants: one, maxSeries: 4, want: `
{app="x"} 20000000000:1
{app="x", zone="1"} 10000000000:1 20000000000:1 30000000000:1
{app="x", zone="2"} 20000000000:1 30000000000:1
{zone="2"} 10000000000:1 20000000000:1 30000000000:1
`},
	} {
		p, err := Prepare(c.query)
		if err != nil {
			t.Fatalf("%s: %v", c.query, err)
		}
		q := &MetricQuery{
			Tenants: c.tenants, Prepared: p, Steps: steps, Instant: c.instant, MaxSeries: c.maxSeries, Partial: c.partial,
			Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{},
		}
		if c.instant {
			q.Steps = instant
		}
		got, err := e.Numbers(context.Background(), q)
		if err != nil {
			t.Errorf("%s: %v", c.query, err)
			continue
		}
		if d := cmp.Diff(c.want, "\n"+numbersTable(got)); d != "" || got.Kind != c.kind {
			t.Errorf("%s: kind %d: %s", c.query, got.Kind, d)
		}
		got.Matrix.Release(q.Quota)
		if q.Quota.Charged() != (&model.Quota{}).Charged() {
			t.Errorf("%s: %+v is still charged", c.query, q.Quota.Charged())
		}
	}
}

func TestNumbersRefused(t *testing.T) {
	e := factory(t)
	for _, c := range []struct {
		query    string
		quota    int64
		class    error
		want     string
		canceled bool
	}{
		{query: `count_over_time({app=~".+"}[10s])`, class: model.ErrLimit, want: "maximum number of series (2) reached for a single query; consider reducing query cardinality by adding more specific stream selectors, reducing the time range, or aggregating results with functions like sum(), count() or topk()"},
		{query: `sum_over_time({app="web"} | json | unwrap ms [1m])`, class: model.ErrInvalid, want: "pipeline error: 'SampleExtractionErr' for series: '"},
		{query: `rate({app="web"}[1m]) + on (app) rate({app="web"}[1m])`, class: model.ErrInvalid, want: "found duplicate series on the right hand-side;many-to-many matching not allowed: matching labels must be unique on one side"},
		{query: `sum(1)`, class: model.ErrInvalid, want: "unexpected expr type (*syntax.LiteralExpr)"},
		{query: `{app="web"}`, class: model.ErrInvalid, want: "log queries are not supported as an instant query type, please change your query to a range query type"},
		{query: `rate({app="web"}[1m])`, quota: 100, class: model.ErrLimit, want: "limit exceeded: the query needs more than 100 bytes of memory (query.max-bytes)"},
		{query: `vector(1) + vector(2)`, quota: 300, class: model.ErrLimit, want: "limit exceeded: the query needs more than 300 bytes of memory (query.max-bytes)"},
		{query: `rate({app="web"}[1m])`, class: context.Canceled, canceled: true},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		if c.canceled {
			cancel()
		}
		p, err := Prepare(c.query)
		if err == nil {
			q := &MetricQuery{Tenants: []string{"a"}, Prepared: p, Steps: vector.Steps{Start: 20 * second, Step: second, Count: 20}, MaxSeries: 2, Quota: &model.Quota{MaxBytes: c.quota}}
			_, err = e.Numbers(ctx, q)
		}
		if !errors.Is(err, c.class) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.query, err)
		}
		cancel()
	}
}

// TestNumbersStats: a range aggregation that occurs twice is evaluated once, and the figures are those of all
// range aggregations.
func TestNumbersStats(t *testing.T) {
	e := factory(t)
	figures := func(query string) Stats {
		got, err := e.Numbers(t.Context(), &MetricQuery{
			Tenants: []string{"a"}, Prepared: prepared(query), Steps: vector.Steps{Start: 30 * second, Count: 1}, Instant: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		got.Stats.Exec = 0
		return got.Stats
	}
	once := figures(`sum by (zone) (rate({app="web"} |= "ms" [30s]))`)
	twice := figures(`sum by (zone) (rate({app="web"} |= "ms" [30s])) / sum by (zone) (rate({app="web"} |= "ms" [30s]))`)
	if once != twice || once.Lines != 5 || once.Passed != 5 || once.Entries != 2 || once.Streams != 2 {
		t.Errorf("%+v\n%+v", once, twice)
	}
	if both := figures(`sum by (zone) (rate({app="web"} |= "ms" [30s])) / sum by (zone) (rate({app="web"} |= "m" [30s]))`); both.Lines != 10 {
		t.Errorf("%+v", both)
	}
}

// TestNumbersOfAHead counts lines of buffers and local parts, with what the lines themselves say.
func TestNumbersOfAHead(t *testing.T) {
	selectors := []string{`{app="x"}`, `{app="x"} |= "GET"`, `{app="x"} | logfmt | user="bob"`, `{app="x"} | trace="t17"`, `{app="x"} |~ "took (1|2)"`}
	rapid.Check(t, func(t *rapid.T) {
		w := &world{readtest.NewWorld(streamsOf(rapid.SampledFrom([]int{1, 3}).Draw(t, "streams"))...)}
		e, closeHead := drawHead(t, w)
		defer closeHead()
		for range 4 {
			a, b := rapid.SampledFrom(selectors).Draw(t, "a"), rapid.SampledFrom(selectors).Draw(t, "b")
			window := rapid.SampledFrom([]int64{1, 60, 500, 5000}).Draw(t, "range")
			steps := vector.Steps{Start: 1_700_000_000 * second, Step: rapid.SampledFrom([]int64{1, 60, 333}).Draw(t, "step") * second, Count: rapid.IntRange(1, 20).Draw(t, "steps")}
			query := fmt.Sprintf(`sum by (s) (count_over_time(%[1]s [%[3]ds])) or on (s) (0 * sum by (s) (count_over_time(%[2]s [%[3]ds])) + 100)`, a, b, window)
			got, err := e.Numbers(context.Background(), &MetricQuery{
				Tenants: []string{oneTenant}, Prepared: prepared(query), Steps: steps, Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 40}}, Cost: &model.Cost{},
			})
			if err != nil {
				t.Fatal(err)
			}
			countA, countB := w.counts(t, a, steps, window*second), w.counts(t, b, steps, window*second)
			points := 0
			for step := range steps.Count {
				for s, l := range w.Streams {
					want := countA[step][s]
					if want == 0 && countB[step][s] > 0 {
						want = 100
					}
					if want > 0 {
						points++
					}
					if value := valueOf(got.Matrix, model.LabelsOf("s", string(l.Get("s"))), step); value != want {
						t.Fatalf("%s: step %d, %s: got %v, want %v", query, step, l, value, want)
					}
				}
			}
			if int(got.Stats.Entries) != points {
				t.Fatalf("%s: %d values, want %d", query, got.Stats.Entries, points)
			}
		}
	})
}

// counts returns how many lines of each stream pass a log query in the window before each step.
func (w *world) counts(t *rapid.T, query string, steps vector.Steps, window int64) [][]float64 {
	out := make([][]float64, steps.Count)
	for step := range out {
		out[step] = make([]float64, len(w.Streams))
	}
	q := &Query{Tenants: []string{oneTenant}, Prepared: prepared(query), Start: math.MinInt64, End: math.MaxInt64}
	for _, row := range w.expected(t, q) {
		var at int64
		if _, err := fmt.Sscan(row, &at); err != nil {
			t.Fatal(err)
		}
		for s, l := range w.Streams {
			if !strings.Contains(row, l.String()) {
				continue
			}
			for step := range out {
				if end := steps.Time(step); at <= end && at > end-window {
					out[step][s]++
				}
			}
		}
	}
	return out
}

func valueOf(m *vector.Matrix, l model.Labels, step int) float64 {
	for _, s := range m.Series {
		if string(s.Labels) == string(l) && s.Present.Has(step) {
			return s.Values[step]
		}
	}
	return 0
}

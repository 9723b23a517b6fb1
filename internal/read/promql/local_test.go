package promql_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	upstreampromql "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
)

// drawExpr draws an expression in which some parts, at any depth, are computed here and others upstream.
func drawExpr(t *rapid.T, depth int) string {
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	selector := func() string {
		return pick("selector", `m`, `m`, `n`, `m{a="1"}`, `m{b!=""}`, `{__name__="m",a=~"0|2"}`, `{__name__=~"m|n"}`, `none`)
	}
	modifier := func() string { return pick("modifier", ``, ``, ``, ` offset 13s`, ` offset -17s`, ` @ 60`, ` @ end()`) }
	window := func() string { return pick("window", `1ms`, `7s`, `7s1ms`, `19s37ms`, `20s`, `45s`, `2m`, `1h`) }
	if depth == 0 {
		if rapid.Bool().Draw(t, "plain") {
			return selector() + modifier()
		}
		f := pick("function", "rate", "increase", "delta", "irate", "idelta", "deriv", "changes", "resets", "avg_over_time", "min_over_time", "max_over_time",
			"sum_over_time", "count_over_time", "present_over_time", "stddev_over_time", "stdvar_over_time", "last_over_time", "first_over_time", "absent_over_time", "quantile_over_time", "predict_linear")
		before, after := "", ""
		switch f {
		case "quantile_over_time":
			before = pick("quantile", "0.3, ", "-1, ")
		case "predict_linear":
			after = ", 60"
		}
		return fmt.Sprintf("%s(%s%s[%s]%s%s)", f, before, selector(), window(), modifier(), after)
	}
	inner := drawExpr(t, depth-1)
	switch rapid.IntRange(0, 9).Draw(t, "outer") {
	case 0:
		return fmt.Sprintf("(%s)", inner)
	case 1:
		return fmt.Sprintf("%s %s %s", inner, pick("operator", "+", "/", "> bool", "or", "and", "unless"), drawExpr(t, depth-1))
	case 2:
		return fmt.Sprintf("%s(%s)", pick("vector function", "absent", "timestamp", "abs", "sort", "ceil"), inner)
	case 3:
		return fmt.Sprintf("max_over_time((%s)[30s:%s] %s)", inner, pick("subquery step", "7s", "7s", ""), pick("subquery offset", "", "", "offset 11s", "@ 50"))
	case 4:
		return fmt.Sprintf(`label_replace(%s, "c", "$1", "a", "(.*)")`, inner)
	case 5:
		return "-" + inner
	}
	by := pick("grouping", ``, ``, `by (a)`, `by (b, a)`, `by (c)`, `by (__name__, a)`, `without (a)`, `without ()`, `without (b, c)`)
	op := pick("aggregation", "sum", "sum", "avg", "avg", "count", "min", "max", "group", "stddev", "topk")
	if op == "topk" {
		return fmt.Sprintf("topk %s (2, %s)", by, inner)
	}
	return fmt.Sprintf("%s %s (%s)", op, by, inner)
}

// drawValue draws values that are hard to add: resets, stale markers, NaN, infinities, large values next to
// small ones.
func drawValue(t *rapid.T, before float64) float64 {
	switch rapid.IntRange(0, 19).Draw(t, "value") {
	case 0:
		return math.Float64frombits(value.StaleNaN)
	case 1:
		return rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64, 1e-300}).Draw(t, "special")
	case 2, 3:
		return rapid.Float64Range(0, 1).Draw(t, "reset")
	}
	return before + rapid.Float64Range(0, 1e3).Draw(t, "more")
}

// drawTimes draws ascending times in milliseconds, some of them twice.
func drawTimes(t *rapid.T) []int64 {
	var times []int64
	at := rapid.Int64Range(-100_000, 100_000).Draw(t, "first")
	for range rapid.IntRange(0, 30).Draw(t, "samples") {
		times = append(times, at)
		at += rapid.SampledFrom([]int64{0, 1, 999, 5000, 10_000, 10_000, 10_000, 40_000}).Draw(t, "gap")
	}
	return times
}

// drawWorld draws series in two sources, some with histograms, some with labels for type or unit.
func drawWorld(t *rapid.T) []read.Source {
	memories := []*readtest.Memory{readtest.NewMemory(2), readtest.NewMemory(1)}
	odd := rapid.IntRange(0, 9).Draw(t, "odd")
	for _, name := range []string{"m", "n"} {
		scraped := drawTimes(t) // of several series
		for i := range rapid.IntRange(0, 6).Draw(t, "series") {
			pairs := []string{"__name__", name}
			if odd == 0 && i == 1 {
				pairs = append(pairs, "__type__", "counter")
			}
			pairs = append(pairs, "a", fmt.Sprint(i%3))
			if i > 0 {
				pairs = append(pairs, "b", fmt.Sprint(i))
			}
			l := model.LabelsOf(pairs...)
			times, v := scraped, 0.0
			if rapid.Bool().Draw(t, "other times") {
				times = drawTimes(t)
			}
			for _, at := range times {
				var rows model.Rows
				if odd == 1 && rapid.IntRange(0, 9).Draw(t, "blob") == 0 {
					rows.AppendBlob(at*1e6+5, model.KindHistogram, model.AppendHistogram(nil, &model.Histogram{Count: 3, Sum: math.Float64bits(4)}), 0)
				} else {
					v = drawValue(t, v)
					rows.Append(at*1e6+5, math.Float64bits(v), 0)
				}
				memories[rapid.IntRange(0, 1).Draw(t, "source")].Add(tenant, l.Key(7, model.Metrics), l, &rows)
			}
		}
	}
	return []read.Source{memories[0], memories[1]}
}

// TestComputedHere: results and warnings of nodes computed here equal upstream's, bit for bit.
func TestComputedHere(t *testing.T) {
	upstream := newEngine()
	defer upstream.Close()
	ours := &promql.Engine{Upstream: upstream, SubqueryStep: 10 * time.Second}
	rapid.Check(t, func(rt *rapid.T) {
		sources := drawWorld(rt)
		store := func() *promql.Queryable {
			return &promql.Queryable{Read: read.New(read.Options{Sources: sources}), Tenant: tenant, Quota: new(model.Quota), Cost: new(model.Cost)}
		}
		start := time.UnixMilli(rapid.Int64Range(-60_000, 200_000).Draw(rt, "start"))
		step := time.Duration(rapid.SampledFrom([]int64{1, 1000, 7000, 15_000, 60_000}).Draw(rt, "step")) * time.Millisecond
		end := start.Add(step * time.Duration(rapid.Int64Range(0, 30).Draw(rt, "steps")))
		for range 5 {
			text := drawExpr(rt, rapid.IntRange(0, 2).Draw(rt, "depth"))
			theirs, mine := store(), store()
			ask := ask
			if rapid.IntRange(0, 3).Draw(rt, "instant") == 0 {
				ask = askAt
			}
			want, got := ask(rt, upstream, theirs, text, start, end, step), ask(rt, ours, mine, text, start, end, step)
			for range 20 { // topk of what an operator returns has ties, which upstream breaks at random
				if got == want {
					break
				}
				got = ask(rt, ours, store(), text, start, end, step)
			}
			if got != want {
				rt.Fatalf("%s from %s to %s by %s\ngot\n%s\nwant\n%s", text, start.UTC(), end.UTC(), step, got, want)
			}
			if a, b := theirs.Cost.Series.Load(), mine.Cost.Series.Load(); b > a {
				rt.Fatalf("%s: %d series are counted, where upstream asks for %d", text, b, a)
			}
		}
	})
}

// askAt asks at the end of a range. The order of the result counts, unless upstream's own is undefined, as
// for a subquery over an operator.
func askAt(t *rapid.T, e upstreampromql.QueryEngine, s storage.Queryable, text string, _, end time.Time, _ time.Duration) string {
	q, err := e.NewInstantQuery(ctx, s, nil, text, end)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	r := q.Exec(ctx)
	if v, ok := r.Value.(upstreampromql.Vector); ok && strings.Contains(text, "[30s:") {
		slices.SortFunc(v, func(a, b upstreampromql.Sample) int { return labels.Compare(a.Metric, b.Metric) })
	}
	return shown(r, text)
}

// churned is a store with many short series and one with a histogram.
func churned(quota *model.Quota) (*promql.Queryable, []*readtest.Memory) {
	m := readtest.NewMemory(1)
	for i := range int64(200) {
		l := model.LabelsOf("__name__", "m", "pod", fmt.Sprint(i))
		for k := range int64(4) {
			var rows model.Rows
			rows.Append((i*10+k)*1e10, math.Float64bits(float64(k)), 0)
			m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
		}
	}
	var rows model.Rows
	rows.AppendBlob(1e10, model.KindHistogram, model.AppendHistogram(nil, &model.Histogram{Count: 3, Sum: math.Float64bits(4)}), 0)
	l := model.LabelsOf("__name__", "h", "pod", "z")
	m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
	return &promql.Queryable{Read: read.New(read.Options{Sources: []read.Source{m}}), Tenant: tenant, Quota: quota, Cost: new(model.Cost)}, []*readtest.Memory{m}
}

// TestComputedHereQuota: a query that upstream evaluates in the end, because of the quota or for another
// reason, is charged what upstream is charged. Nothing stays charged or open, and an error is upstream's.
func TestComputedHereQuota(t *testing.T) {
	upstream := newEngine()
	defer upstream.Close()
	ours := &promql.Engine{Upstream: upstream, Timeout: time.Minute}
	end := time.Unix(20_000, 0)
	for _, c := range []struct {
		text                       string
		series, samples, mostBytes int64
		fails                      bool
	}{
		{text: "sum by (pod) (rate(m[1m]))"},
		{text: "sum by (pod) (rate(m[1m]))", mostBytes: 300_000}, // 200 groups of 2,000 steps need 10 MB
		{text: "rate(m[1m])", mostBytes: 300_000},
		{text: "sum(m) + sum(rate(h[1h]))", series: 201, samples: 801, mostBytes: 300_000},
		{text: "sum(m)", series: 100, fails: true},
		{text: "sum(rate(m[1h]))", samples: 100, fails: true},
		{text: "sum by (pod) (m)", mostBytes: 10_000, fails: true},
	} {
		answer := func(e upstreampromql.QueryEngine) (string, error) {
			pool := &model.QueryPool{MaxBytes: 1 << 30}
			quota := &model.Quota{MaxSeries: c.series, MaxSamples: c.samples, MaxBytes: c.mostBytes, Pool: pool}
			store, memories := churned(quota)
			q, err := e.NewRangeQuery(ctx, store, nil, c.text, time.Unix(0, 0), end, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			r := q.Exec(ctx)
			text := r.String()
			q.Close()
			closed(t, memories)
			quota.Release()
			if n := pool.Used(); n != 0 {
				t.Errorf("%s: %d bytes are still charged", c.text, n)
			}
			return text, r.Err
		}
		want, theirs := answer(upstream)
		got, err := answer(ours)
		if got != want || (err != nil) != c.fails || (theirs != nil) != c.fails {
			t.Errorf("%s: %.200s, %v; should be %.200s, %v", c.text, got, err, want, theirs)
		}
	}
}

// countedSource counts how often series are selected. It may refuse those after the first 150.
type countedSource struct {
	read.Source
	selects int
	refuses error
}

func (s *countedSource) Select(ctx context.Context, req *model.Request) ([]model.Cursor, error) {
	s.selects++
	all, err := s.Source.Select(ctx, req)
	for i := range all {
		if s.refuses != nil {
			all[i] = &refusingCursor{Cursor: all[i], left: 150, err: s.refuses}
		}
	}
	return all, err
}

type refusingCursor struct {
	model.Cursor
	left int
	err  error
}

func (c *refusingCursor) Next(ctx context.Context) bool {
	c.left--
	return c.left >= 0 && c.Cursor.Next(ctx)
}

func (c *refusingCursor) Err() error {
	if c.left < 0 {
		return c.err
	}
	return c.Cursor.Err()
}

// TestReadsTooMuchOnce: a query that selects too many series, or reads too many samples, is not evaluated
// again by upstream, which would read them, too. Nor is one that another process refuses after some series.
// One that holds too much here is.
func TestReadsTooMuchOnce(t *testing.T) {
	upstream := newEngine()
	defer upstream.Close()
	ours := &promql.Engine{Upstream: upstream}
	for _, c := range []struct {
		quota   *model.Quota
		refuses error // from the source, in the middle
		selects int
		fails   bool
	}{
		{&model.Quota{MaxSeries: 150}, nil, 1, true},
		{&model.Quota{MaxSamples: 700}, nil, 1, true},
		{&model.Quota{}, fmt.Errorf("peer p: %w: the query selects more than 150 series", model.ErrLimit), 1, true},
		{&model.Quota{MaxBytes: 300_000}, nil, 2, false},
	} {
		store, memories := churned(c.quota)
		src := &countedSource{Source: memories[0], refuses: c.refuses}
		store.Read = read.New(read.Options{Sources: []read.Source{src}})
		q, err := ours.NewRangeQuery(ctx, store, nil, "sum by (pod) (rate(m[1m]))", time.Unix(0, 0), time.Unix(20_000, 0), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		r := q.Exec(ctx)
		if src.selects != c.selects || errors.Is(r.Err, model.ErrLimit) != c.fails {
			t.Errorf("selected %d times, want %d: %v", src.selects, c.selects, r.Err)
		}
		q.Close()
		closed(t, memories)
	}
}

// TestComputedHereEnds: a query that is cancelled, or whose source fails, ends with that error, and nothing
// stays open.
func TestComputedHereEnds(t *testing.T) {
	upstream := newEngine()
	defer upstream.Close()
	ours := &promql.Engine{Upstream: upstream}
	for _, text := range []string{"sum(m)", "rate(m[1m])", "sum by (pod) (rate(m[1m])) + avg(m)"} {
		store, memories := churned(new(model.Quota))
		done, cancel := context.WithCancel(ctx)
		q, err := ours.NewRangeQuery(done, store, nil, text, time.Unix(0, 0), time.Unix(20_000, 0), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if r := q.Exec(done); r.Err == nil {
			t.Errorf("%s: no error after the end", text)
		}
		q.Close()
		closed(t, memories)

		lost := errors.New("the disk is gone")
		for _, f := range []readtest.Failure{{Next: lost}, {Rows: lost}} {
			store, memories := churned(new(model.Quota))
			memories[0].Fail(f)
			q, err := ours.NewRangeQuery(ctx, store, nil, text, time.Unix(0, 0), time.Unix(20_000, 0), 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if r := q.Exec(ctx); !errors.Is(r.Err, lost) {
				t.Errorf("%s: %v, should be %v", text, r.Err, lost)
			}
			q.Close()
			closed(t, memories)
		}
	}
}

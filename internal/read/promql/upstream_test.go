package promql_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
)

// questions cover what an adapter can get wrong: look-back, stale markers, ranges, offsets, @, subqueries,
// label matchers, order and missing labels.
var questions = []string{
	`m`, `m offset 13s`, `m offset -13s`, `m @ 60`, `m[45s]`, `m[45s] offset 1m`, `rate(m[40s])`, `increase(m[1m] @ end())`, `count_over_time(m[30s:7s])`,
	`max_over_time(rate(m[20s])[1m:5s])`, `sum by (a) (m)`, `m{a="1"}`, `m{a!="1"}`, `m{a=~"1|2"}`, `m{a!~"1|2"}`, `m{b=""}`, `m{b!=""}`,
	`{__name__=~"m|n"}`, `{__name__!="m",a=~".+"}`, `m + on (a, b) n`, `m unless n`, `absent(m{a="9"})`, `changes(m[1m])`, `last_over_time(m[15s])`,
	`sum(m)`, `count(m)`, `count(-m)`, `count((m))`, `avg by (a) (m)`, `min by (b, a, b) (m)`, `max by (c) (m)`, `group by (__name__) ({__name__=~"m|n"})`,
	`quantile by (b) (.5, m)`, `sum without (a) (m)`, `count without () (m)`, `topk(99, m)`, `bottomk by (a) (99, m)`,
	`count by (a) ({__name__=~"m|n"})`, `sum(sum by (a, b) (m @ 60))`, `count(m or n)`, `count_values by (a) ("v", m)`, `sum by (a) (abs(m))`,
	`timestamp(m)`, `stddev_over_time(m[1m])`, `quantile_over_time(.5, m[1m])`, `count_values("v", m)`, `sort_desc(n)`, `m and n offset 20s`,
}

// aggregations are directly above a selector or not. Those that depend on the order of additions are not
// compared with upstream's storage, which has another order of series.
var aggregations = []string{
	`stddev(m)`, `stdvar by (a) (n)`, `sum(m)`, `avg({__name__=~"m|n"})`, `count by (b, a) (m)`, `sum by (__name__, c) ({__name__=~"m|n"})`,
	`count(-m)`, `sum by (a) ((m))`, `avg(m @ 60)`, `quantile(0.3, m)`, `topk(1, m)`, `sum without (b) (m)`, `max by (a) (m offset 5s)`,
}

// blind hides the grouping of aggregations from the storage.
type blind struct{ storage.Queryable }

func (b blind) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := b.Queryable.Querier(mint, maxt)
	return blindQuerier{q}, err
}

type blindQuerier struct{ storage.Querier }

func (b blindQuerier) Select(ctx context.Context, sort bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	h := *hints
	h.By, h.Grouping = false, nil
	return b.Querier.Select(ctx, sort, &h, ms...)
}

// TestProjection: aggregations give the same result with and without the labels that they do not read.
func TestProjection(t *testing.T) {
	engine := newEngine()
	defer engine.Close()
	rapid.Check(t, func(rt *rapid.T) {
		load, sources := draw(rt)
		ours := &promql.Queryable{Read: read.New(read.Options{Sources: sources}), Tenant: tenant, Quota: new(model.Quota), Cost: new(model.Cost)}
		start := time.UnixMilli(rapid.Int64Range(-60_000, 200_000).Draw(rt, "start"))
		for _, question := range aggregations {
			end := start.Add(time.Minute)
			want, got := ask(rt, engine, blind{ours}, question, start, end, 7*time.Second), ask(rt, engine, ours, question, start, end, 7*time.Second)
			if got != want {
				rt.Fatalf("%s\nover\n%s\ngot\n%s\nwant\n%s", question, load, got, want)
			}
		}
	})
}

func newEngine() *upstream.Engine {
	return upstream.NewEngine(upstream.EngineOpts{
		MaxSamples: 1e6, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, LookbackDelta: 25 * time.Second,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 10_000 }, Parser: parser.NewParser(parser.Options{}),
	})
}

// TestUpstreamStorage asks the engine the same questions over Shale's read path and over upstream's
// storage.
func TestUpstreamStorage(t *testing.T) {
	engine := newEngine()
	defer engine.Close()
	rapid.Check(t, func(rt *rapid.T) {
		load, sources := draw(rt)
		theirs := promqltest.LoadedStorage(t, load)
		defer theirs.Close()
		ours := &promql.Queryable{Read: read.New(read.Options{Sources: sources}), Tenant: tenant, Quota: new(model.Quota), Cost: new(model.Cost)}
		start := time.UnixMilli(rapid.Int64Range(-60_000, 200_000).Draw(rt, "start"))
		end := start.Add(time.Duration(rapid.Int64Range(0, 200_000).Draw(rt, "span")) * time.Millisecond)
		step := time.Duration(rapid.Int64Range(1000, 30_000).Draw(rt, "step")) * time.Millisecond
		for _, question := range questions {
			want, got := ask(rt, engine, theirs, question, start, end, step), ask(rt, engine, ours, question, start, end, step)
			if got != want {
				rt.Fatalf("%s from %s to %s by %s\nover\n%s\ngot\n%s\nwant\n%s", question, start.UTC(), end.UTC(), step, load, got, want)
			}
		}
	})
}

// draw writes the same series in upstream's test language and into two sources.
func draw(t *rapid.T) (string, []read.Source) {
	step := rapid.Int64Range(1, 20).Draw(t, "interval")
	var text strings.Builder
	fmt.Fprintf(&text, "load %ds\n", step)
	memories := []*readtest.Memory{readtest.NewMemory(2), readtest.NewMemory(1)}
	for _, name := range []string{"m", "n"} {
		for i := range rapid.IntRange(0, 4).Draw(t, "series") {
			pairs := []string{"__name__", name, "a", fmt.Sprint(i % 3)}
			if i > 0 {
				pairs = append(pairs, "b", fmt.Sprint(i))
			}
			fmt.Fprintf(&text, "  %s{a=%q,b=%q}", name, pairs[3], append(pairs, "", "")[5])
			l := model.LabelsOf(pairs...)
			for j := range rapid.Int64Range(0, 20).Draw(t, "samples") {
				v, word := math.NaN(), "_"
				switch rapid.IntRange(0, 9).Draw(t, "kind") {
				case 0, 1:
				case 2:
					v, word = math.Float64frombits(value.StaleNaN), "stale"
				case 3:
					v, word = math.Inf(1), "Inf"
				default:
					v = float64(rapid.IntRange(0, 20).Draw(t, "value"))
					word = fmt.Sprint(v)
				}
				text.WriteString(" " + word)
				if word != "_" {
					var rows model.Rows
					rows.Append(j*step*1e9, math.Float64bits(v), 0)
					memories[rapid.IntRange(0, 1).Draw(t, "source")].Add(tenant, l.Key(7, model.Metrics), l, &rows)
				}
			}
			text.WriteString(" _\n")
		}
	}
	return text.String(), []read.Source{memories[0], memories[1]}
}

// ask returns the result of a range query, or of an instant query for expressions that are ranges. An error
// is a result, too.
func ask(t *rapid.T, e upstream.QueryEngine, s storage.Queryable, question string, start, end time.Time, step time.Duration) string {
	q, err := e.NewRangeQuery(ctx, s, nil, question, start, end, step)
	if err != nil {
		if q, err = e.NewInstantQuery(ctx, s, nil, question, end); err != nil {
			t.Fatal(err)
		}
	}
	defer q.Close()
	return shown(q.Exec(ctx), question)
}

// shown is a result as text. Warnings are sorted, since they arrive in no order.
func shown(r *upstream.Result, question string) string {
	warnings, infos := r.Warnings.AsStrings(question, 0, 0)
	slices.Sort(warnings)
	slices.Sort(infos)
	r.Warnings = nil
	return fmt.Sprint(r, warnings, infos)
}

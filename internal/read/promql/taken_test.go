package promql_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
)

// drawExpr draws an expression of which parts are taken over, at any depth, and parts are not.
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
			"sum_over_time", "count_over_time", "present_over_time", "stddev_over_time", "stdvar_over_time", "last_over_time", "absent_over_time")
		return fmt.Sprintf("%s(%s[%s]%s)", f, selector(), window(), modifier())
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
		return fmt.Sprintf("max_over_time((%s)[30s:7s])", inner)
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

// drawValue draws what is hard to add up: resets, markers of staleness, what is not a number, large and small ones together.
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

// drawWorld gives series in two sources, some with histograms, some with labels that say more of the metric.
func drawWorld(t *rapid.T) []read.Source {
	memories := []*readtest.Memory{readtest.NewMemory(2), readtest.NewMemory(1)}
	odd := rapid.IntRange(0, 9).Draw(t, "odd")
	for _, name := range []string{"m", "n"} {
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
			at, v := rapid.Int64Range(-100_000, 100_000).Draw(t, "first"), 0.0
			for range rapid.IntRange(0, 30).Draw(t, "samples") {
				var rows model.Rows
				if odd == 1 && rapid.IntRange(0, 9).Draw(t, "blob") == 0 {
					rows.AppendBlob(at*1e6+5, model.KindHistogram, model.AppendHistogram(nil, &model.Histogram{Count: 3, Sum: math.Float64bits(4)}), 0)
				} else {
					v = drawValue(t, v)
					rows.Append(at*1e6+5, math.Float64bits(v), 0)
				}
				memories[rapid.IntRange(0, 1).Draw(t, "source")].Add(tenant, l.Key(7, model.Metrics), l, &rows)
				at += rapid.SampledFrom([]int64{0, 1, 999, 5000, 10_000, 10_000, 10_000, 40_000}).Draw(t, "gap")
			}
		}
	}
	return []read.Source{memories[0], memories[1]}
}

// TestTakenOver: what is computed here is what upstream computes over the same series, bit for bit and with the same warnings.
func TestTakenOver(t *testing.T) {
	upstream := newEngine()
	defer upstream.Close()
	ours := &promql.Engine{Upstream: upstream}
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
			want, got := ask(rt, upstream, theirs, text, start, end, step), ask(rt, ours, mine, text, start, end, step)
			if got != want {
				rt.Fatalf("%s from %s to %s by %s\ngot\n%s\nwant\n%s", text, start.UTC(), end.UTC(), step, got, want)
			}
			if a, b := theirs.Cost.Series.Load(), mine.Cost.Series.Load(); b > a {
				rt.Fatalf("%s: %d series are counted, where upstream asks for %d", text, b, a)
			}
		}
	})
}

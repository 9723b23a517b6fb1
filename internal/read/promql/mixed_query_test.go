package promql_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
)

// mixedWorld makes random series of histograms and floats, and queries over them.
type mixedWorld struct {
	*rand.Rand
	odd bool // series change their layout, and samples are extreme
}

func oneOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// counter is a histogram whose counts grow.
type counter struct {
	h      model.Histogram
	counts []float64 // of the positive buckets, then of the negative ones
}

// counter returns a histogram of a random layout.
func (w *mixedWorld) counter() *counter {
	c := &counter{h: model.Histogram{Float: w.IntN(3) == 0, Gauge: w.IntN(8) == 0, Schema: oneOf(w.Rand, int32(0), 0, 0, 1, 3)}}
	custom := w.IntN(4) == 0
	if custom {
		c.h.Schema = histogram.CustomBucketsSchema
		for _, b := range oneOf(w.Rand, []float64{0, 1, 2, 3, 4, 5}, []float64{0, 1, 2, 3, 4, 5}, []float64{0.5, 1, 3, 5, 7, 9}, []float64{1, 2, 3, 4, 5, math.Inf(1)}) {
			c.h.Custom = append(c.h.Custom, math.Float64bits(b))
		}
	} else {
		c.h.ZeroThreshold = math.Float64bits(oneOf(w.Rand, 1e-3, 1e-3, 1e-3, 0, 2, 0.3))
	}
	spans := func() (out []model.HistogramSpan) {
		at := 0
		for range w.IntN(3) {
			s := model.HistogramSpan{Offset: int32(w.IntN(3)), Length: uint32(w.IntN(4))}
			if at += int(s.Offset) + int(s.Length); custom && at > 6 {
				break
			}
			for range s.Length {
				c.counts = append(c.counts, float64(w.IntN(5)))
			}
			out = append(out, s)
		}
		return out
	}
	c.h.PositiveSpans = spans()
	if !custom && w.IntN(2) == 0 {
		c.h.NegativeSpans = spans()
	}
	return c
}

// next returns the histogram after some observations, or after a reset.
func (w *mixedWorld) next(c *counter) *model.Histogram {
	h := c.h
	reset := w.IntN(12) == 0
	total := 0.0
	for i := range c.counts {
		if reset {
			c.counts[i] = 0
		}
		if w.IntN(2) == 0 {
			c.counts[i] += float64(w.IntN(9))
			if h.Float {
				c.counts[i] += 0.1
			}
		}
		total += c.counts[i]
	}
	h.Sum = math.Float64bits(total * 1.37)
	bits := func(v float64) uint64 {
		if h.Float {
			return math.Float64bits(v)
		}
		return uint64(v)
	}
	zeros := float64(w.IntN(3))
	if h.Schema == histogram.CustomBucketsSchema {
		zeros = 0
	}
	h.Count, h.ZeroCount = bits(total+zeros), bits(zeros)
	buckets := func(spans []model.HistogramSpan, from int) (out []uint64, end int) {
		last := 0.0
		for _, s := range spans {
			for range s.Length {
				if v := c.counts[from]; h.Float {
					out = append(out, math.Float64bits(v))
				} else {
					out = append(out, uint64(int64(v)-int64(last)))
					last = v
				}
				from++
			}
		}
		return out, from
	}
	var end int
	h.Positive, end = buckets(h.PositiveSpans, 0)
	h.Negative, _ = buckets(h.NegativeSpans, end)
	if w.odd && h.Float && w.IntN(6) == 0 {
		odd := oneOf(w.Rand, math.NaN(), math.Inf(1), math.MaxFloat64, -1, math.Copysign(0, -1), 1e300)
		for i := range h.Positive {
			h.Positive[i] = math.Float64bits(odd)
		}
		h.Count, h.Sum = math.Float64bits(odd), math.Float64bits(odd)
	}
	if w.odd && !h.Float && w.IntN(40) == 0 && len(h.Positive) > 0 {
		h.Positive[0] = 1 << 61
	}
	return &h
}

// add adds the samples of a series to the sources.
func (w *mixedWorld) add(l model.Labels, memories []*readtest.Memory) {
	mostly := w.IntN(6) // 0: floats
	c := w.counter()
	v := 0.0
	at := int64(w.IntN(60_000)) - 30_000
	for range w.IntN(40) {
		var rows model.Rows
		switch kind := w.IntN(30); {
		case kind == 0:
			rows.Append(at*1e6, model.StaleNaN, 0)
		case kind == 1:
			rows.AppendBlob(at*1e6, model.KindHistogram, model.AppendHistogram(nil, &model.Histogram{Sum: model.StaleNaN}), 0)
		case mostly == 0 || kind == 2 && mostly < 3:
			v += float64(w.IntN(100))
			rows.Append(at*1e6, math.Float64bits(v), 0)
		default:
			if w.odd && w.IntN(15) == 0 {
				c = w.counter()
			}
			rows.AppendBlob(at*1e6, model.KindHistogram, model.AppendHistogram(nil, w.next(c)), 0)
		}
		memories[w.IntN(len(memories))].Add(tenant, l.Key(7, model.Metrics), l, &rows)
		at += oneOf(w.Rand, int64(1), 5000, 10_000, 10_000, 10_000, 10_000, 40_000)
	}
}

func (w *mixedWorld) sources() []read.Source {
	memories := []*readtest.Memory{readtest.NewMemory(2), readtest.NewMemory(1)}
	for _, name := range []string{"h", "g_total"} {
		for i := range w.IntN(6) {
			w.add(model.LabelsOf("__name__", name, "a", fmt.Sprint(i%3), "b", fmt.Sprint(i)), memories)
		}
	}
	return []read.Source{memories[0], memories[1]}
}

// expr draws an expression over histograms.
func (w *mixedWorld) expr(depth int) string {
	if depth == 0 {
		selector := oneOf(w.Rand, `h`, `h`, `h`, `g_total`, `h{a="1"}`, `{__name__=~"h|g_total"}`, `h{b!="0"}`)
		modifier := oneOf(w.Rand, ``, ``, ``, ``, ` offset 13s`, ` offset -17s`, ` @ 60`, ` @ end()`)
		if w.IntN(3) == 0 {
			return selector + modifier
		}
		f := oneOf(w.Rand, "rate", "rate", "rate", "increase", "delta", "irate", "idelta", "deriv", "changes", "resets", "avg_over_time", "min_over_time", "max_over_time",
			"sum_over_time", "count_over_time", "present_over_time", "stddev_over_time", "stdvar_over_time", "last_over_time", "first_over_time", "absent_over_time", "quantile_over_time")
		scalar := ""
		if f == "quantile_over_time" {
			scalar = oneOf(w.Rand, "0.3, ", "-1, ", "scalar(h), ")
		}
		return fmt.Sprintf("%s(%s%s[%s]%s)", f, scalar, selector, oneOf(w.Rand, `7s`, `19s37ms`, `20s`, `45s`, `2m`, `1h`), modifier)
	}
	inner := w.expr(depth - 1)
	switch w.IntN(14) {
	case 0:
		return "(" + inner + ")"
	case 1:
		return fmt.Sprintf("%s %s %s", inner, oneOf(w.Rand, "+", "-", "*", "==", "or", "and", "unless"), w.expr(depth-1))
	case 2:
		return "-" + inner
	case 3:
		return fmt.Sprintf("%s((%s)[%s])", oneOf(w.Rand, "last_over_time", "avg_over_time", "rate"), inner, oneOf(w.Rand, "50s:7s", "50s:7s", "1m:"))
	case 4, 5, 6:
		return fmt.Sprintf("%s(%s)", oneOf(w.Rand, "histogram_quantile(0.9, ", "histogram_fraction(0, 2, ", "histogram_count(", "histogram_count(", "histogram_sum(",
			"histogram_avg(", "histogram_stddev("), inner) + ")"
	}
	by := oneOf(w.Rand, ``, ``, `by (a)`, `by (b, a)`, `by (__name__, a)`, `without (a)`, `without (b)`)
	return fmt.Sprintf("%s %s (%s)", oneOf(w.Rand, "sum", "sum", "sum", "avg", "avg", "count", "min", "max", "group", "stddev"), by, inner)
}

// exactly is a result as text that has every bit of it, except that all NaN are equal.
func exactly(r *upstream.Result, question string) string {
	var sb strings.Builder
	bits := func(fs ...float64) {
		for _, f := range fs {
			if math.IsNaN(f) {
				sb.WriteString(" NaN")
			} else {
				fmt.Fprintf(&sb, " %x", math.Float64bits(f))
			}
		}
	}
	show := func(t int64, f float64, h *histogram.FloatHistogram) {
		if fmt.Fprintf(&sb, " @%d", t); h == nil {
			bits(f)
			return
		}
		fmt.Fprintf(&sb, " {%d %d", h.CounterResetHint, h.Schema)
		bits(h.ZeroThreshold, h.ZeroCount, h.Count, h.Sum)
		fmt.Fprint(&sb, h.PositiveSpans)
		bits(h.PositiveBuckets...)
		fmt.Fprint(&sb, h.NegativeSpans)
		bits(h.NegativeBuckets...)
		bits(h.CustomValues...)
		sb.WriteString("}")
	}
	switch v := r.Value.(type) {
	case upstream.Matrix:
		slices.SortStableFunc(v, func(a, b upstream.Series) int { return labels.Compare(a.Metric, b.Metric) })
		for _, s := range v {
			fmt.Fprintf(&sb, "\n%s", s.Metric)
			for _, p := range s.Floats {
				show(p.T, p.F, nil)
			}
			for _, p := range s.Histograms {
				show(p.T, 0, p.H)
			}
		}
	case upstream.Vector:
		slices.SortStableFunc(v, func(a, b upstream.Sample) int { return labels.Compare(a.Metric, b.Metric) })
		for _, s := range v {
			fmt.Fprintf(&sb, "\n%s", s.Metric)
			show(s.T, s.F, s.H)
		}
	}
	warnings, infos := r.Warnings.AsStrings(question, 0, 0)
	slices.Sort(warnings)
	slices.Sort(infos)
	fmt.Fprintf(&sb, "\n%v %v %v", r.Err, warnings, infos)
	return sb.String()
}

// tries counts the queries that upstream was given.
type tries struct {
	upstream.QueryEngine
	n int
}

func (c *tries) NewRangeQuery(ctx context.Context, q storage.Queryable, o upstream.QueryOpts, s string, from, to time.Time, step time.Duration) (upstream.Query, error) {
	c.n++
	return c.QueryEngine.NewRangeQuery(ctx, q, o, s, from, to, step)
}

// TestMixedQueries: results and warnings of queries over histograms equal upstream's, bit for bit. Few
// queries are computed twice because only upstream can compute them.
func TestMixedQueries(t *testing.T) {
	theirs := newEngine()
	defer theirs.Close()
	counted := &tries{QueryEngine: theirs}
	ours := &promql.Engine{Upstream: counted, SubqueryStep: 10 * time.Second}
	queries, histograms := 0, 0
	for seed := uint64(0); queries < mixedQueries; seed++ {
		w := &mixedWorld{Rand: rand.New(rand.NewPCG(seed, 16)), odd: seed%3 == 0}
		sources := w.sources()
		answer := func(e upstream.QueryEngine, text string, start, end time.Time, step time.Duration) string {
			store := &promql.Queryable{Read: read.New(read.Options{Sources: sources}), Tenant: tenant, Quota: new(model.Quota), Cost: new(model.Cost)}
			q, err := e.NewRangeQuery(ctx, store, nil, text, start, end, step)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			defer q.Close()
			return exactly(q.Exec(ctx), text)
		}
		start := time.UnixMilli(w.Int64N(200_000) - 60_000)
		step := oneOf(w.Rand, time.Second, 7*time.Second, 15*time.Second, time.Minute)
		end := start.Add(step * time.Duration(w.IntN(30)))
		for range 10 {
			text := w.expr(w.IntN(4))
			want, got := answer(theirs, text, start, end, step), answer(ours, text, start, end, step)
			for range 50 { // above an operator, the order of series is random
				if got == want {
					break
				}
				want, got = answer(theirs, text, start, end, step), answer(ours, text, start, end, step)
			}
			if got != want {
				t.Fatalf("seed %d: %s from %s to %s by %s\ngot\n%s\nwant\n%s", seed, text, start.UTC(), end.UTC(), step, got, want)
			}
			if queries++; strings.Contains(want, "{") {
				histograms++
			}
		}
	}
	if histograms < queries/3 {
		t.Errorf("%d of %d results have histograms", histograms, queries)
	}
	if again := counted.n - queries; again > queries/10 {
		t.Errorf("%d of %d queries were computed twice", again, queries)
	}
}

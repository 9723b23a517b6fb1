package tsdbtest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"pgregory.net/rapid"
)

var questions = []string{
	`m`, `n`, `{__name__=~".+"}`, `m offset 13s`, `m offset -13s`, `m @ end()`, `m[45s]`, `timestamp(m)`, `-m`, `m * 2`, `m - m`, `m == m`, `m != m`,
	`rate(m[1m])`, `increase(m[45s])`, `irate(m[1m])`, `delta(m[1m])`, `idelta(m[1m])`, `resets(m[2m])`, `changes(m[2m])`, `rate(f[1m])`,
	`rate(m[30s:5s])`, `increase(m[1m] @ end())`, `rate(m[1m] offset 20s)`, `max_over_time(rate(m[20s])[1m:5s])`,
	`rate(m[1m] anchored)`, `increase(m[1m] smoothed)`, `rate(m[1m] smoothed)`, `delta(m[1m] anchored)`,
	`sum_over_time(m[1m])`, `avg_over_time(m[1m])`, `count_over_time(m[1m])`, `min_over_time(m[1m])`, `max_over_time(m[1m])`, `last_over_time(m[1m])`,
	`first_over_time(m[1m])`, `present_over_time(m[1m])`, `absent_over_time(m{a="1"}[30s])`, `stddev_over_time(m[1m])`, `quantile_over_time(.5, m[1m])`,
	`deriv(m[1m])`, `double_exponential_smoothing(m[1m], .5, .5)`, `ts_of_last_over_time(m[1m])`, `mad_over_time(m[1m])`,
	`sum(m)`, `sum by (a) (m)`, `avg by (b) (m)`, `count by (a) (m)`, `group by (b) (m)`, `min(m)`, `max(m)`, `count_values("v", m)`, `limit_ratio(.5, m)`, `limitk(2, m)`, `topk(2, m)`, `bottomk by (a) (1, m)`, `stddev(m)`, `stdvar by (a) (rate(m[1m]))`,
	`sum(rate(m[1m]))`, `avg(increase(m[1m]))`, `quantile(.5, m)`,
	`histogram_count(m)`, `histogram_sum(m)`, `histogram_avg(m)`, `histogram_quantile(.9, m)`, `histogram_quantile(.5, sum(rate(m[1m])))`,
	`histogram_fraction(0, 2, m)`, `histogram_stddev(m)`, `histogram_count(rate(m[1m]))`, `histogram_sum(increase(m[1m]))`, `histogram_count(sum_over_time(m[1m]))`,
	`histogram_quantile(.1, rate(m[1m]))`, `histogram_count(sum(m))`, `histogram_quantiles(m, "q", .1, .9)`,
	`m + on (i) n`, `m unless n`, `m and on (a) n`, `m or n`, `m * on (a) group_left () n`, `absent(m{a="9"})`, `m > 1`, `m >= bool 1`, `m{a="1"} or n{b!=""}`,
}

func newEngine(t testing.TB) *promql.Engine {
	e := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e6, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, LookbackDelta: 25 * time.Second,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 10_000 }, EnableDelayedNameRemoval: true, UseStartTimestamps: true,
		Parser: parser.NewParser(promqltest.TestParserOpts),
	})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("engine: %v", err)
		}
	})
	return e
}

// alike removes differences that both storages are allowed: it sorts series by their labels, because the
// rounding of sums and the choice among equals depend on the order, and removes empty buckets of histograms,
// because some results depend on them.
type alike struct{ storage.Queryable }

func (a alike) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := a.Queryable.Querier(mint, maxt)
	return alikeQuerier{q}, err
}

type alikeQuerier struct{ storage.Querier }

func (q alikeQuerier) Select(ctx context.Context, _ bool, h *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	return alikeSet{q.Querier.Select(ctx, true, h, ms...)}
}

type alikeSet struct{ storage.SeriesSet }

func (s alikeSet) At() storage.Series { return alikeSeries{s.SeriesSet.At()} }

type alikeSeries struct{ storage.Series }

func (s alikeSeries) Iterator(it chunkenc.Iterator) chunkenc.Iterator {
	if known, ok := it.(alikeIterator); ok {
		it = known.Iterator
	}
	return alikeIterator{s.Series.Iterator(it)}
}

type alikeIterator struct{ chunkenc.Iterator }

func (i alikeIterator) AtHistogram(h *histogram.Histogram) (int64, *histogram.Histogram) {
	t, h := i.Iterator.AtHistogram(h)
	return t, h.Copy().Compact(0) // the histogram shares memory with Prometheus
}

func (i alikeIterator) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	t, h := i.Iterator.AtFloatHistogram(h)
	return t, h.Copy().Compact(0) // the histogram shares memory with Prometheus
}

// ask returns the result as text: values bit for bit, except NaNs, since an operation may return any NaN. An
// error is a result, too.
func ask(t *rapid.T, e *promql.Engine, s storage.Queryable, question string, start, end time.Time, step time.Duration) []string {
	ctx := context.Background()
	s = alike{s}
	q, err := e.NewRangeQuery(ctx, s, nil, question, start, end, step)
	if err != nil {
		if q, err = e.NewInstantQuery(ctx, s, nil, question, end); err != nil {
			t.Fatalf("%s: %v", question, err)
		}
	}
	defer q.Close()
	r := q.Exec(ctx)
	if r.Err != nil {
		return []string{"error: " + r.Err.Error()}
	}
	var lines []string
	m, err := r.Matrix()
	if err != nil {
		t.Fatalf("%s: %v", question, err)
	}
	for _, s := range m {
		lines = append(lines, s.Metric.String())
		for _, p := range s.Floats {
			lines = append(lines, fmt.Sprintf("%s at %d: %s", s.Metric, p.T, floatText(p.F)))
		}
		for _, p := range s.Histograms {
			h := p.H.Copy().Compact(0)
			lines = append(lines, fmt.Sprintf("%s at %d: %s sum %s", s.Metric, p.T, h, floatText(h.Sum)))
		}
	}
	warnings, infos := r.Warnings.AsStrings(question, 0, 0)
	notes := append(annotations(warnings), infos...)
	slices.Sort(notes)
	return append(lines, notes...)
}

// different returns the lines that only one of two results has.
func different(got, want []string) string {
	var sb strings.Builder
	for _, side := range []struct {
		word       string
		has, other []string
	}{{"got", got, want}, {"want", want, got}} {
		for _, l := range side.has {
			if !slices.Contains(side.other, l) {
				fmt.Fprintf(&sb, "%s %s\n", side.word, l)
			}
		}
	}
	return sb.String()
}

func floatText(f float64) string {
	if math.IsNaN(f) {
		return "NaN"
	}
	return fmt.Sprintf("%g(%x)", f, math.Float64bits(f))
}

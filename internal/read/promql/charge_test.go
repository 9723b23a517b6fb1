package promql_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
)

// storeOf returns a store with the series under a quota.
func storeOf(m *readtest.Memory, quota *model.Quota) *promql.Queryable {
	return &promql.Queryable{Read: read.New(read.Options{Sources: []read.Source{m}}), Tenant: tenant, Quota: quota, Cost: new(model.Cost)}
}

// TestChargeOfLongRange: the charge for a long range at short steps does not overflow.
func TestChargeOfLongRange(t *testing.T) {
	racetest.SkipSerial(t)
	const samples = 1_100_000 // times the milliseconds of 290 years, that is more than 63 bits
	theirs := boundless()
	defer theirs.Close()
	ours := &promql.Engine{Upstream: theirs, SubqueryStep: time.Minute}
	for _, histograms := range []bool{false, true} {
		m := readtest.NewMemory(1)
		l := model.LabelsOf("__name__", "m", "pod", "a")
		var rows model.Rows
		for i := range int64(samples) {
			if histograms {
				h := model.Histogram{Count: uint64(i), Sum: math.Float64bits(4)}
				rows.AppendBlob(i*1e9, model.KindHistogram, model.AppendHistogram(nil, &h), 0)
			} else {
				rows.Append(i*1e9, math.Float64bits(1), 0)
			}
		}
		m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
		for _, text := range []string{`sum(rate(m[290y]))`, `sum_over_time({__name__=~"m"}[290y])`} {
			pool := &model.QueryPool{MaxBytes: 1 << 40}
			q, err := ours.NewRangeQuery(ctx, storeOf(m, &model.Quota{Pool: pool}), nil, text, time.Unix(samples, 0), time.Unix(samples, 3e6), time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if r := q.Exec(ctx); r.Err != nil {
				t.Errorf("%s: %v", text, r.Err)
			}
			if pool.Used() <= 0 {
				t.Errorf("%s: %d bytes are charged", text, pool.Used())
			}
			q.Close()
		}
	}
}

// TestDistantAt: a time so distant that its offset overflows gives upstream's result.
func TestDistantAt(t *testing.T) {
	theirs := boundless()
	defer theirs.Close()
	m := readtest.NewMemory(1)
	l := model.LabelsOf("__name__", "m_total", "pod", "a")
	var rows model.Rows
	for i := range int64(100) {
		rows.Append(i*10e9, math.Float64bits(float64(i)), 0)
	}
	m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
	for _, at := range []string{
		"@ 18446744073.709", "@ 18446744573.709", "@ 9300000000", "@ -9300000000", "@ -9223370000", "@ -9223372036.9", "@ -9223372000 offset 290y",
		"@ -9223372036854775", "@ 400", "@ 400 offset 1m",
	} {
		for _, text := range []string{`sum(m_total %s)`, `rate(m_total[5m] %s)`} {
			text = fmt.Sprintf(text, at)
			var results []string
			for _, e := range []upstream.QueryEngine{theirs, &promql.Engine{Upstream: theirs, SubqueryStep: time.Minute}} {
				q, err := e.NewInstantQuery(ctx, storeOf(m, new(model.Quota)), nil, text, time.Unix(500, 0))
				if err != nil {
					t.Fatal(err)
				}
				results = append(results, q.Exec(ctx).String())
				q.Close()
			}
			if results[0] != results[1] {
				t.Errorf("%s: got %q, want %q", text, results[1], results[0])
			}
		}
	}
}

// countingEngine counts the queries that are made: two if the first attempt is left to upstream.
type countingEngine struct {
	upstream.QueryEngine
	queries int
}

func (e *countingEngine) NewRangeQuery(ctx context.Context, q storage.Queryable, opts upstream.QueryOpts, text string, start, end time.Time, step time.Duration) (upstream.Query, error) {
	e.queries++
	return e.QueryEngine.NewRangeQuery(ctx, q, opts, text, start, end, step)
}

// addHistograms adds a series of histograms. The first bucket grows by ten from sample to sample.
func addHistograms(m *readtest.Memory, pod string, h model.Histogram, samples int, interval time.Duration) {
	l := model.LabelsOf("__name__", "h", "pod", pod)
	var rows model.Rows
	for i := range samples {
		h.Count += 10
		h.Positive[0] += 10
		rows.AppendBlob(int64(i)*int64(interval), model.KindHistogram, model.AppendHistogram(nil, &h), 0)
	}
	m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
}

// customHistogram returns a histogram with so many bounds of custom buckets, the last of which is given.
func customHistogram(bounds, buckets int, last float64) model.Histogram {
	h := model.Histogram{Schema: histogram.CustomBucketsSchema, PositiveSpans: []model.HistogramSpan{{Length: uint32(buckets)}}, Positive: make([]uint64, buckets)}
	for b := range bounds - 1 {
		h.Custom = append(h.Custom, math.Float64bits(float64(b)))
	}
	h.Custom = append(h.Custom, math.Float64bits(last))
	return h
}

// TestLeastBytes: queries over histograms are computed here within a limit that is near to what they hold.
// With less, upstream gets a chance.
func TestLeastBytes(t *testing.T) {
	theirs := boundless()
	defer theirs.Close()
	for _, one := range []struct {
		bounds, samples int // no bounds: 40 exponential buckets
		text            string
		least           int64 // bytes that suffice
	}{
		{0, 20_000, `count(h)`, 8 << 20},
		{0, 20_000, `sum(h)`, 8 << 20},
		{12, 240, `sum(h)`, 1600 << 10},
		{12, 240, `count(h)`, 600 << 10},
		{12, 240, `sum(rate(h[5m]))`, 2400 << 10},
		{12, 240, `count(rate(h[5m]))`, 600 << 10},
		{500, 240, `sum(h)`, 25 << 20},
		{500, 240, `count(h)`, 9 << 20},
		{500, 240, `last_over_time(h[5m])`, 10 << 20},
	} {
		m := readtest.NewMemory(1)
		for s := range 3 {
			h := model.Histogram{PositiveSpans: []model.HistogramSpan{{Length: 40}}, Positive: make([]uint64, 40)}
			if one.bounds > 0 {
				h = customHistogram(one.bounds, one.bounds, math.Inf(1))
			}
			addHistograms(m, fmt.Sprint(s), h, one.samples, 15*time.Second)
		}
		over, step := time.Hour, 2*time.Second
		if one.samples > 240 {
			over, step = 83*time.Hour, time.Hour
		}
		attempt := func(most int64) (attempts int, err error) {
			e := &countingEngine{QueryEngine: theirs}
			store := storeOf(m, &model.Quota{MaxBytes: most})
			err = evaluate(&promql.Engine{Upstream: e, SubqueryStep: time.Minute}, store, one.text, over, step, func(*upstream.Result) {})
			return e.queries, err
		}
		if n, err := attempt(one.least); err != nil || n != 1 {
			t.Errorf("%s with %d bounds and %d bytes: %d attempts, %v", one.text, one.bounds, one.least, n, err)
		}
		const tooLittle = 100 << 10 // but enough to read series with few bounds
		if n, err := attempt(tooLittle); one.bounds == 12 && (n != 2 || !errors.Is(err, model.ErrLimit)) {
			t.Errorf("%s with %d bounds and %d bytes: %d attempts, %v", one.text, one.bounds, tooLittle, n, err)
		}
	}
}

// TestChargeOfGrowingSum: a limit does not change what a query is charged, only whether it is refused. A
// bucket that is inserted may double the memory of a sum.
func TestChargeOfGrowingSum(t *testing.T) {
	theirs := boundless()
	defer theirs.Close()
	ours := &promql.Engine{Upstream: theirs, SubqueryStep: time.Minute}
	m := readtest.NewMemory(1)
	pods := []string{"a", "b"}
	key := func(pod string) string {
		return fmt.Sprint(model.LabelsOf("__name__", "h", "pod", pod).Key(7, model.Metrics))
	}
	if key(pods[0]) > key(pods[1]) {
		pods[0], pods[1] = pods[1], pods[0]
	}
	addHistograms(m, pods[0], model.Histogram{PositiveSpans: []model.HistogramSpan{{Length: 160}}, Positive: make([]uint64, 160)}, 60, time.Minute)
	addHistograms(m, pods[1], model.Histogram{PositiveSpans: []model.HistogramSpan{{Offset: -5, Length: 1}}, Positive: make([]uint64, 1)}, 60, time.Minute)
	charged := func(most int64) (used int64, err error) {
		pool := &model.QueryPool{MaxBytes: 1 << 40}
		quota := &model.Quota{Pool: pool, MaxBytes: most}
		err = evaluate(ours, storeOf(m, quota), `sum(h)`, time.Hour, 500*time.Millisecond, func(*upstream.Result) { used = pool.Used() })
		if quota.Release(); pool.Used() != 0 {
			t.Errorf("%d bytes are still charged", pool.Used())
		}
		return used, err
	}
	want, err := charged(0)
	if err != nil {
		t.Fatal(err)
	}
	for most := int64(24 << 20); most < 60<<20; most += 3 << 20 {
		if got, err := charged(most); err == nil && got != want {
			t.Errorf("with a limit of %d bytes, %d are charged; without one, %d", most, got, want)
		}
	}
}

// TestChargeOfReconciledBounds: where series have different bounds of custom buckets, each step of their sum
// has its own, and is charged for them.
func TestChargeOfReconciledBounds(t *testing.T) {
	theirs := boundless()
	defer theirs.Close()
	ours := &promql.Engine{Upstream: theirs, SubqueryStep: time.Minute}
	m := readtest.NewMemory(1)
	addHistograms(m, "a", customHistogram(500, 1, 1000), 60, time.Minute)
	addHistograms(m, "b", customHistogram(500, 1, 2000), 60, time.Minute)
	for _, text := range []string{`sum(h)`, `sum(rate(h[10m]))`, `avg(h)`, `sum(-h)`, `avg(-rate(h[10m]))`, `-sum(h)`,
		`h{pod="a"} + ignoring(pod) h{pod="b"}`, `h{pod="a"} - ignoring(pod) rate(h{pod="b"}[10m])`} {
		pool := &model.QueryPool{MaxBytes: 1 << 40}
		charged, held := int64(0), int64(0)
		err := evaluate(ours, storeOf(m, &model.Quota{Pool: pool}), text, time.Hour, 2*time.Second, func(r *upstream.Result) {
			charged = pool.Used()
			for _, s := range r.Value.(upstream.Matrix) {
				for _, p := range s.Histograms {
					held += 8 * int64(cap(p.H.CustomValues)+cap(p.H.PositiveBuckets))
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if held < 6<<20 || charged < held {
			t.Errorf("%s: %d bytes are charged, the result has %d", text, charged, held)
		}
	}
}

// TestGroupIsChargedFirst: a group with more steps than the limit allows is refused before it takes memory.
func TestGroupIsChargedFirst(t *testing.T) {
	racetest.SkipSerial(t)
	theirs := boundless()
	defer theirs.Close()
	m := readtest.NewMemory(1)
	l := model.LabelsOf("__name__", "m", "pod", "a")
	var rows model.Rows
	rows.Append(0, math.Float64bits(1), 0)
	m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := evaluate(&promql.Engine{Upstream: theirs, SubqueryStep: time.Minute}, storeOf(m, &model.Quota{MaxBytes: 1 << 20}),
		`sum(m)`, 24*time.Hour, time.Millisecond, func(*upstream.Result) {})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, model.ErrLimit) {
		t.Errorf("expected the limit's error, got %v", err)
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 1<<30 {
		t.Errorf("%d bytes were allocated", made)
	}
}

package promql_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
)

// latencies has so many series h of histograms with 20 buckets, a sample a minute for an hour, in groups of
// ten instances.
func latencies(series int) *readtest.Memory {
	m := readtest.NewMemory(1)
	for i := range series {
		l := model.LabelsOf("__name__", "h", "instance", fmt.Sprint(i%(series/10)), "path", fmt.Sprint(i))
		var rows model.Rows
		h := model.Histogram{
			ZeroThreshold: math.Float64bits(1e-128), PositiveSpans: []model.HistogramSpan{{Length: 12}, {Offset: 3, Length: 8}}, Positive: make([]uint64, 20),
		}
		for at := range int64(60) {
			h.Count += 20
			h.Sum = math.Float64bits(float64(h.Count) * 0.3)
			h.Positive[0]++
			if h.Positive[5] = uint64(at % 7); at%7 > 0 {
				h.Positive[6] = -uint64(at % 7)
			}
			rows.AppendBlob(at*60e9, model.KindHistogram, model.AppendHistogram(nil, &h), 0)
		}
		m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
	}
	return m
}

// overAnHour evaluates a query at 240 steps of an hour, and closes it after a look at the result.
func overAnHour(e upstream.QueryEngine, s storage.Queryable, text string, look func(*upstream.Result)) error {
	return evaluate(e, s, text, time.Hour, 15*time.Second, look)
}

func evaluate(e upstream.QueryEngine, s storage.Queryable, text string, over, step time.Duration, look func(*upstream.Result)) error {
	q, err := e.NewRangeQuery(ctx, s, nil, text, time.Unix(0, 0), time.Unix(0, 0).Add(over), step)
	if err != nil {
		return err
	}
	defer q.Close()
	r := q.Exec(ctx)
	if look(r); r.Err != nil {
		return r.Err
	}
	return nil
}

// boundless returns upstream's engine without a limit on samples.
func boundless() *upstream.Engine {
	return upstream.NewEngine(upstream.EngineOpts{
		MaxSamples: math.MaxInt, Timeout: time.Hour, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, Parser: parser.NewParser(parser.Options{}),
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
	})
}

// liveHeap returns the bytes that the last garbage collection found in use.
func liveHeap() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// watch collects garbage all the time until it is stopped, and then returns the greatest heap in use beyond
// what was in use at the beginning. It looks at the same moments.
func watch(look func()) (stop func() int64) {
	runtime.GC()
	runtime.GC()
	before, most := liveHeap(), int64(0)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			runtime.GC()
			look()
			most = max(most, liveHeap()-before)
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	return func() int64 {
		close(done)
		<-stopped
		return most
	}
}

// TestChargeFollowsHeap: what a query over histograms is charged is what it holds, within a factor, both when
// it is computed here and when upstream evaluates it.
func TestChargeFollowsHeap(t *testing.T) {
	racetest.SkipSerial(t)
	// The slack is for batches of series, which have one size for all queries.
	const least, most, slack = 0.8, 2.5, 4 << 20
	theirs := boundless()
	defer theirs.Close()
	ours := &promql.Engine{Upstream: theirs, SubqueryStep: time.Minute}
	source := latencies(200)
	for _, text := range []string{
		`h`, `h * 2`, `rate(h[10m])`, `sum by (path) (rate(h[10m]))`, `avg by (path) (rate(h[10m]))`, `sum(rate(h[10m]))`, `histogram_quantile(0.9, sum by (path) (rate(h[10m])))`,
		`last_over_time(h[10m])`, `h @ 600`, `avg_over_time(h[5m:30s])`, `histogram_count(h)`, `{__name__=~"h"} + h`, `rate({__name__=~"h"}[10m]) - h`,
	} {
		once := func() (charged, held int64) {
			pool := &model.QueryPool{MaxBytes: 1 << 40}
			quota := &model.Quota{Pool: pool}
			defer quota.Release()
			store := &promql.Queryable{Read: read.New(read.Options{Sources: []read.Source{source}}), Tenant: tenant, Quota: quota, Cost: new(model.Cost)}
			stop := watch(func() { charged = max(charged, pool.Used()) })
			if err := overAnHour(ours, store, text, func(*upstream.Result) {}); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return charged, stop()
		}
		for try := 1; ; try++ {
			charged, held := once()
			t.Logf("%s: %d KiB charged, %d KiB held: %.2f", text, charged>>10, held>>10, float64(charged)/float64(held))
			if float64(charged+slack) >= least*float64(held) && float64(charged) <= most*float64(held)+slack {
				break
			}
			// On a busy machine, a collection misses the peak, or counts much that became garbage meanwhile.
			if try == 10 {
				t.Errorf("%s: %d bytes are charged, %d are held", text, charged, held)
				break
			}
		}
	}
}

// TestMixedLimit: with any limit, a query over histograms gives the right result or an error that names the
// limit, and nothing stays charged or open.
func TestMixedLimit(t *testing.T) {
	racetest.SkipSerial(t)
	theirs := boundless()
	defer theirs.Close()
	ours := &promql.Engine{Upstream: theirs, SubqueryStep: time.Minute}
	source := latencies(20)
	for _, text := range []string{
		`h`, `-h`, `rate(h[10m])`, `sum by (path) (rate(h[10m]))`, `histogram_quantile(0.9, sum by (instance) (rate(h[10m])))`, `last_over_time(h[10m])`, `sum(h @ 600)`,
		`avg_over_time(h[5m:30s])`, `histogram_count(avg(h))`, `{__name__=~"h"} + h`,
	} {
		want, refused := "", 0
		for i := range 15 {
			pool := &model.QueryPool{MaxBytes: 1 << 40}
			quota := &model.Quota{Pool: pool}
			if i > 0 {
				quota.MaxBytes = 1 << (10 + i)
			}
			store := &promql.Queryable{Read: read.New(read.Options{Sources: []read.Source{source}}), Tenant: tenant, Quota: quota, Cost: new(model.Cost)}
			got := ""
			err := overAnHour(ours, store, text, func(r *upstream.Result) { got = exactly(r, text) })
			switch {
			case i == 0 && err == nil:
				want = got
			case err == nil && got != want:
				t.Errorf("%s: with a limit of %d the result is another one", text, quota.MaxBytes)
			case err != nil:
				if refused++; !errors.Is(err, model.ErrLimit) || !strings.Contains(err.Error(), "query.max-bytes") {
					t.Errorf("%s: with a limit of %d: %v", text, quota.MaxBytes, err)
				}
			}
			closed(t, []*readtest.Memory{source})
			if quota.Release(); pool.Used() != 0 {
				t.Errorf("%s: %d bytes are still charged", text, pool.Used())
			}
		}
		if refused == 0 || refused == 14 {
			t.Errorf("%s: refused with %d of 14 limits", text, refused)
		}
	}
}

// block is a source that also returns series without rows in the range.
type block struct{ *readtest.Memory }

func (b block) Select(ctx context.Context, req *model.Request) ([]model.Cursor, error) {
	all := *req
	all.Range = model.Always()
	cursors, err := b.Memory.Select(ctx, &all)
	for i, c := range cursors {
		cursors[i] = blockCursor{c, req.Range}
	}
	return cursors, err
}

type blockCursor struct {
	model.Cursor
	within model.TimeRange
}

func (c blockCursor) AppendRows(ctx context.Context, dst *model.Rows) error {
	var all model.Rows
	err := c.Cursor.AppendRows(ctx, &all)
	for i, t := range all.Times {
		if t >= c.within.Min && t <= c.within.Max {
			dst.AppendRows(&all, i, i+1)
		}
	}
	return err
}

// TestSeriesWithoutRows: a series without rows in the range is not charged. Blocks have more of them than
// parts.
func TestSeriesWithoutRows(t *testing.T) {
	theirs := newEngine()
	defer theirs.Close()
	charged := func(text string, others int64) int64 {
		m := readtest.NewMemory(1)
		for i := range 10 + others {
			at := int64(30e9)
			if i >= 10 {
				at = 3600e9
			}
			l := model.LabelsOf("__name__", "m", "pod", fmt.Sprint(i))
			var rows model.Rows
			rows.Append(at, math.Float64bits(1), 0)
			m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
		}
		pool := &model.QueryPool{MaxBytes: 1 << 30}
		store := &promql.Queryable{Read: read.New(read.Options{Sources: []read.Source{block{m}}}), Tenant: tenant, Quota: &model.Quota{Pool: pool}, Cost: new(model.Cost)}
		q, err := (&promql.Engine{Upstream: theirs}).NewRangeQuery(ctx, store, nil, text, time.Unix(0, 0), time.Unix(60, 0), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		if r := q.Exec(ctx); r.Err != nil {
			t.Fatal(r.Err)
		}
		return pool.Used()
	}
	for _, text := range []string{"m", "sort(m)", "rate(m[1m])", "sum(m)"} {
		if few, many := charged(text, 0), charged(text, 1000); few != many {
			t.Errorf("%s: %d bytes are charged, and %d with a thousand series that have no rows in the range", text, few, many)
		}
	}
}

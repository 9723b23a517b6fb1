package promql_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	upstream "github.com/prometheus/prometheus/promql"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/promql"
)

// BenchmarkHistogramQuery evaluates the commonest query over native histograms here and upstream.
func BenchmarkHistogramQuery(b *testing.B) {
	benchQuery(b, latencies(1000), `histogram_quantile(0.9, sum by (instance) (rate(h[10m])))`, time.Hour, 15*time.Second)
}

// BenchmarkRangeQuery evaluates queries over a day of 100,000 counters here and upstream.
func BenchmarkRangeQuery(b *testing.B) {
	for _, text := range []string{`sum by (job) (rate(m_total[15m]))`, `max_over_time(m_total[15m])`, `avg(m_total)`} {
		b.Run(text, func(b *testing.B) { benchQuery(b, counters(100_000), text, 24*time.Hour, 15*time.Minute) })
	}
}

// benchQuery reports the time of a query and, from a run of its own, its peak heap.
func benchQuery(b *testing.B, source read.Source, text string, over, step time.Duration) {
	theirs := boundless()
	defer theirs.Close()
	for _, c := range []struct {
		name   string
		engine upstream.QueryEngine
	}{{"here", &promql.Engine{Upstream: theirs}}, {"upstream", theirs}} {
		once := func() {
			store := &promql.Queryable{Read: read.New(read.Options{Sources: []read.Source{source}}), Tenant: tenant, Quota: new(model.Quota), Cost: new(model.Cost)}
			if err := evaluate(c.engine, store, text, over, step, func(*upstream.Result) {}); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
			b.StopTimer()
			stop := watch(func() {})
			once()
			b.ReportMetric(float64(stop())/(1<<20), "peak-MiB")
		})
	}
}

// fleet is a source of counters that it makes when they are read: only the reader's memory counts. They have
// a sample every five minutes for a day.
type fleet struct {
	keys   []model.Key // ascending
	labels []model.Labels
}

func counters(n int) *fleet {
	f := &fleet{}
	of := make(map[model.Key]model.Labels, n)
	for i := range n {
		l := model.LabelsOf("__name__", "m_total", "job", fmt.Sprint(i%10), "pod", fmt.Sprint(i))
		k := l.Key(7, model.Metrics)
		of[k] = l
		f.keys = append(f.keys, k)
	}
	slices.SortFunc(f.keys, model.Key.Compare)
	for _, k := range f.keys {
		f.labels = append(f.labels, of[k])
	}
	return f
}

func (f *fleet) Select(_ context.Context, req *model.Request) ([]model.Cursor, error) {
	return []model.Cursor{&fleetCursor{fleet: f, index: -1, within: req.Range}}, nil
}

func (f *fleet) LabelNames(context.Context, *model.Request, func([]byte) error) error { return nil }

func (f *fleet) LabelValues(context.Context, *model.Request, string, func([]byte) error) error {
	return nil
}

type fleetCursor struct {
	*fleet
	index  int
	within model.TimeRange
}

func (c *fleetCursor) Next(context.Context) bool {
	c.index++
	return c.index < len(c.keys)
}

func (c *fleetCursor) Key() model.Key       { return c.keys[c.index] }
func (c *fleetCursor) Labels() model.Labels { return c.labels[c.index] }
func (c *fleetCursor) Order() uint64        { return 1 }
func (c *fleetCursor) Err() error           { return nil }
func (c *fleetCursor) Close() error         { return nil }

func (c *fleetCursor) AppendRows(_ context.Context, dst *model.Rows) error {
	for i := range int64(288) {
		if at := i * 300e9; c.within.Contains(at) {
			dst.Append(at, math.Float64bits(float64(i*int64(c.index%13))), 0)
		}
	}
	return nil
}

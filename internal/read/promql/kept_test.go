package promql_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/read/results"
)

// keptWorld has fifty series of three hours, and a tier of results.
type keptWorld struct {
	t      *testing.T
	memory *readtest.Memory
	tier   *results.Tier
	engine *promql.Engine
}

func newKeptWorld(t *testing.T) *keptWorld {
	theirs := newEngine()
	t.Cleanup(func() { _ = theirs.Close() })
	m := readtest.NewMemory(1)
	for i := range 50 {
		l := model.LabelsOf("__name__", "m", "pod", fmt.Sprint(i))
		var rows model.Rows
		for at := range int64(3 * 60) {
			rows.Append(at*60e9+1e9, math.Float64bits(float64(at)), 0)
		}
		m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
	}
	return &keptWorld{t, m, results.New(results.Options{
		Limits:  results.Limits{Split: 15 * time.Minute, ClosedAfter: time.Second, MaxBytes: 1 << 30},
		Changes: new(results.Changes), Now: func() int64 { return 1e6 * 1e9 }, Registerer: prometheus.NewRegistry(),
	}), &promql.Engine{Upstream: theirs}}
}

// ask evaluates a query at the minutes [from, to] with what is kept, or without it.
func (w *keptWorld) ask(text string, from, to int64, quota *model.Quota, fresh bool) (result string, samples int64, err error) {
	w.t.Helper()
	store := storeOf(w.memory, quota)
	store.Results, store.Cost.Fresh = w.tier, fresh
	q, err := w.engine.NewRangeQuery(ctx, store, nil, text, time.Unix(from*60, 0), time.Unix(to*60, 0), time.Minute)
	if err != nil {
		w.t.Fatal(err)
	}
	defer closed(w.t, []*readtest.Memory{w.memory})
	defer q.Close()
	r := q.Exec(ctx)
	return r.String(), store.Cost.Samples.Load(), r.Err
}

// mustAsk is ask for what must succeed.
func (w *keptWorld) mustAsk(text string, from, to int64, quota *model.Quota, fresh bool) (result string, samples int64) {
	w.t.Helper()
	result, samples, err := w.ask(text, from, to, quota, fresh)
	if err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	return result, samples
}

// TestLimitsOfKept: a query that is within its limits without kept values is so with any of them. It is
// refused when it is not within them without any, and nothing is kept.
func TestLimitsOfKept(t *testing.T) {
	for _, c := range []struct {
		text       string
		histograms bool
		series     int64 // 0: no limit
		samples    bool  // as many as the whole node has
	}{
		{text: `sum by (pod) (rate(m[5m]))`, series: 50},
		{text: `rate(m[5m])`, series: 50},
		{text: `sum by (pod) (rate(m[1h]))`, samples: true},
		{text: `sum(rate(m[1h]))`, series: 50, samples: true},
		{text: `sum by (pod) (m) + sum by (pod) (rate(m[1h]))`, series: 100, samples: true},
		{text: `count(rate(m[5m]))`, series: 51, samples: true, histograms: true},
	} {
		w := newKeptWorld(t)
		if c.histograms {
			l := model.LabelsOf("__name__", "m", "pod", "h")
			var rows model.Rows
			for at := int64(160); at < 180; at++ {
				rows.AppendBlob(at*60e9+1e9, model.KindHistogram, model.AppendHistogram(nil, &model.Histogram{Count: uint64(at)}), 0)
			}
			w.memory.Add(tenant, l.Key(7, model.Metrics), l, &rows)
		}
		want, whole := w.mustAsk(c.text, 60, 175, new(model.Quota), true)
		quota := func(less int64) *model.Quota {
			q := &model.Quota{MaxSeries: c.series}
			if c.series > 0 {
				q.MaxSeries -= less
			}
			if c.samples {
				q.MaxSamples = whole - less
			}
			return q
		}
		if _, _, err := w.ask(c.text, 60, 175, quota(1), false); !errors.Is(err, model.ErrLimit) || !model.ReadsTooMuch(err) {
			t.Errorf("%s: %v, with less than it reads", c.text, err)
		}
		w.mustAsk(c.text, 75, 90, new(model.Quota), false)
		w.mustAsk(c.text, 120, 135, new(model.Quota), false)
		if got, _ := w.mustAsk(c.text, 60, 175, quota(0), false); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.text, got, want)
		}
		if _, read := w.mustAsk(c.text, 60, 175, quota(0), false); !c.histograms && read > whole/4*3 {
			t.Errorf("%s: %d of %d samples are read again", c.text, read, whole)
		}
	}
}

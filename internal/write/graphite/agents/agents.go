package agents

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Sink stores points. It returns when they are durable, and retries for as long as ctx lasts. Times are in
// Unix seconds.
type Sink interface {
	Store(ctx context.Context, tenant string, paths []string, times []int64, values []float64) error
}

// Options build a Writer.
type Options struct {
	// Interval is how often the series are written.
	Interval time.Duration
	// Prefix is the first node of all names, as CARBON_METRIC_PREFIX.
	Prefix string
	// Host is a node of all names. Its dots become underscores, as in carbon.
	Host     string
	Tenant   string
	Gatherer prometheus.Gatherer
	Sink     Sink
	Now      func() int64 // Unix nanoseconds
	Logger   *slog.Logger
}

// Writer writes the series until Close.
type Writer struct {
	o    Options
	last map[string]float64 // counters at the last write, by path
	at   int64              // of the last write, in Unix nanoseconds
	stop context.CancelFunc
	work sync.WaitGroup
}

// Start begins to write the series, the first time after an interval.
func Start(o Options) *Writer {
	w := newWriter(o)
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	w.work.Go(func() { w.run(ctx) })
	return w
}

func newWriter(o Options) *Writer {
	w := &Writer{o: o, last: map[string]float64{}}
	w.points() // the first interval begins now
	return w
}

// Close ends the writing and waits for it. The sink is not used afterwards.
func (w *Writer) Close() {
	w.stop()
	w.work.Wait()
}

func (w *Writer) run(ctx context.Context) {
	tick := time.NewTicker(w.o.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		paths, values := w.points()
		times := make([]int64, len(paths))
		for i := range times {
			times[i] = w.at / int64(time.Second)
		}
		if err := w.o.Sink.Store(ctx, w.o.Tenant, paths, times, values); err != nil && ctx.Err() == nil {
			w.o.Logger.Warn("cannot store the carbon.* series about this process", "err", err)
		}
	}
}

// points returns the paths and values of now. A counter is what was added since the last call.
func (w *Writer) points() (paths []string, values []float64) {
	// What could be gathered counts even if a metric has an error.
	families, err := w.o.Gatherer.Gather()
	if err != nil {
		w.o.Logger.Warn("some metrics of the process cannot be read", "err", err)
	}
	now := w.o.Now()
	seconds := float64(now-w.at) / 1e9
	w.at = now
	for _, s := range table() {
		sums := s.sums(families)
		for _, destination := range slices.Sorted(maps.Keys(sums)) {
			v := sums[destination]
			name := strings.Replace(s.name, "%s", node(destination), 1)
			path := w.o.Prefix + "." + s.daemon + "." + strings.ReplaceAll(w.o.Host, ".", "_") + "." + name
			if s.kind != current {
				added := v - w.last[path]
				w.last[path] = v
				if v = added; s.kind == percent {
					v = 100 * added / math.Max(seconds, 1e-3)
				}
			}
			paths, values = append(paths, path), append(values, v)
		}
	}
	return paths, values
}

// sums adds up the metrics of a series, by destination if the series has one, and otherwise under an empty
// text. It returns nothing if the process has none of them.
func (s *series) sums(families []*dto.MetricFamily) map[string]float64 {
	sums := map[string]float64{}
	each := strings.Contains(s.name, "%s")
	for _, f := range families {
		for _, from := range s.from {
			if f.GetName() != from.family {
				continue
			}
			if !each {
				sums[""] += 0
			}
			for _, m := range f.GetMetric() {
				if from.has(m) {
					key := ""
					if each {
						key = label(m, "destination")
					}
					sums[key] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
	}
	return sums
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func (f *source) has(m *dto.Metric) bool {
	return f.reason == "" || label(m, "reason") == f.reason
}

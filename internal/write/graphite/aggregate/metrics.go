package aggregate

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	stored, refused, logErrors, logDamage prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, a *Aggregator) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string, read func() float64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	locked := func(read func() float64) func() float64 {
		return func() float64 {
			a.mu.Lock()
			defer a.mu.Unlock()
			return read()
		}
	}
	gauge("shale_graphite_aggregation_buffers", "Aggregates of Graphite points that have points of recent intervals.", locked(func() float64 { return float64(len(a.buffers)) }))
	gauge("shale_graphite_aggregation_bytes", "Bytes held by the points and intervals of Graphite aggregates.", locked(func() float64 { return float64(a.bytes) }))
	gauge("shale_graphite_aggregation_log_bytes", "Bytes of the file that keeps the buffers of Graphite aggregates through a restart.", a.file.size)
	return &metrics{
		stored:    counter("shale_graphite_aggregated_points_total", "Points of Graphite aggregates that were computed and are durable, repeated ones included."),
		refused:   counter("shale_graphite_aggregation_refused_points_total", "Graphite points left out of an aggregate because the memory for aggregation was full."),
		logErrors: counter("shale_graphite_aggregation_log_errors_total", "Failed attempts to write the file that keeps the buffers of Graphite aggregates through a restart."),
		logDamage: counter("shale_graphite_aggregation_log_damaged_total", "Files of Graphite aggregates that were cut off or damaged at their end when they were read."),
	}
}

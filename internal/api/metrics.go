package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count the requests of a dialect. Their names are the dialect's.
type Metrics struct {
	Requests *prometheus.CounterVec   // by handler and code
	Seconds  *prometheus.HistogramVec // by handler
	Gate     GateMetrics
}

// GateMetrics count what happens at a gate.
type GateMetrics struct {
	Running, Waiting prometheus.Gauge
	Refused          prometheus.Counter
}

// RequestBuckets are the bounds of Metrics.Seconds.
var RequestBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}

// observe counts a request, and its time unless the connection left HTTP: such a connection lasts as long as
// its client likes.
func (m *Metrics) observe(name string, status int, took time.Duration, upgraded bool) {
	if m == nil {
		return
	}
	m.Requests.WithLabelValues(name, strconv.Itoa(status)).Inc()
	if !upgraded {
		m.Seconds.WithLabelValues(name).Observe(took.Seconds())
	}
}

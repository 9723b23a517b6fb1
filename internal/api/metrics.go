package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/model"
)

// Metrics count the requests of a dialect. Their names are the dialect's.
type Metrics struct {
	Requests *prometheus.CounterVec   // by handler and code
	Seconds  *prometheus.HistogramVec // by handler
	Gate     GateMetrics
}

// GateMetrics count what happens at a gate.
type GateMetrics struct {
	Running, Waiting, Unread prometheus.Gauge
	Refused                  prometheus.Counter
}

// WaitMetrics count the queries of all dialects that wait for memory.
type WaitMetrics struct {
	waiting prometheus.Gauge
	waits   *prometheus.CounterVec // by outcome
	seconds prometheus.Histogram
}

// The outcomes of a wait for memory.
const (
	waitGranted = "granted"
	waitRefused = "refused"
	waitLeft    = "left"
)

// NewWaitMetrics returns the metrics, registered, with that of the goroutines that wait for a processor.
func NewWaitMetrics(reg prometheus.Registerer, p *model.Processors) *WaitMetrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_api_processor_waiting_goroutines", Help: "Goroutines of queries that wait for a processor, since other tenants send queries, too.",
	}, func() float64 { return float64(p.Waiting()) })
	return &WaitMetrics{
		waiting: f.NewGauge(prometheus.GaugeOpts{
			Name: "shale_api_memory_waiting_requests", Help: "Requests that wait for memory of the queries, to run from their beginning."}),
		waits: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_api_memory_waits_total", Help: "Waits of requests for memory of the queries, by outcome: granted, refused, left (by the client)."},
			[]string{"outcome"}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "shale_api_memory_wait_seconds", Help: "Seconds that requests waited for memory of the queries, each wait by itself.",
			Buckets: RequestBuckets}),
	}
}

// begin counts a request that waits, and returns what ends that.
func (m *WaitMetrics) begin() (end func()) {
	if m == nil {
		return func() {}
	}
	m.waiting.Inc()
	return m.waiting.Dec
}

// observe counts a wait that has ended.
func (m *WaitMetrics) observe(outcome string, took time.Duration) {
	if m == nil {
		return
	}
	m.waits.WithLabelValues(outcome).Inc()
	m.seconds.Observe(took.Seconds())
}

// RequestBuckets are the bounds of Metrics.Seconds.
var RequestBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}

// count counts a request.
func (m *Metrics) count(name string, status int) {
	if m != nil {
		m.Requests.WithLabelValues(name, strconv.Itoa(status)).Inc()
	}
}

// observe takes the time of a request.
func (m *Metrics) observe(name string, took time.Duration) {
	if m != nil {
		m.Seconds.WithLabelValues(name).Observe(took.Seconds())
	}
}

package lokipush

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests         *prometheus.CounterVec
	lines, bodyBytes prometheus.Counter
	seconds          prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_lokipush_requests_total", Help: "Pushes of log lines, by form (protobuf, json) and status of the answer."}, []string{"form", "code"}),
		lines:     counter("shale_lokipush_received_lines_total", "Log lines received by push that are durable."),
		bodyBytes: counter("shale_lokipush_body_bytes_total", "Bytes of bodies of pushes that were read, as sent."),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "shale_lokipush_request_seconds", Help: "Time from the headers of a push to its answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}),
	}
}

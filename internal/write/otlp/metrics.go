package otlp

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests                             *prometheus.CounterVec
	lines, samples, exemplars, bodyBytes prometheus.Counter
	seconds                              *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_otlp_requests_total", Help: "OTLP requests, by signal (logs, metrics), form (protobuf, json) and status of the answer."}, []string{"signal", "form", "code"}),
		lines:     counter("shale_otlp_received_lines_total", "Log lines received by OTLP that are durable."),
		samples:   counter("shale_otlp_received_samples_total", "Samples, floats and histograms, received by OTLP that are durable."),
		exemplars: counter("shale_otlp_received_exemplars_total", "Exemplars received by OTLP that are durable."),
		bodyBytes: counter("shale_otlp_body_bytes_total", "Bytes of OTLP bodies that were read, as sent."),
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shale_otlp_request_seconds", Help: "Time from the headers of an OTLP request to its answer, by signal.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"signal"}),
	}
}

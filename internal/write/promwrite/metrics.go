package promwrite

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests                      *prometheus.CounterVec
	samples, exemplars, bodyBytes prometheus.Counter
	seconds                       prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_promwrite_requests_total", Help: "Remote write requests, by version of remote write (1.0, 2.0) and status of the answer."}, []string{"version", "code"}),
		samples:   counter("shale_promwrite_received_samples_total", "Samples, floats and histograms, received by remote write that are durable."),
		exemplars: counter("shale_promwrite_received_exemplars_total", "Exemplars received by remote write that are durable."),
		bodyBytes: counter("shale_promwrite_body_bytes_total", "Bytes of remote write bodies that were read, as sent."),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "shale_promwrite_request_seconds", Help: "Time from the headers of a remote write request to its answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}),
	}
}

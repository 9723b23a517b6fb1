package carbonlink

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct{ requests, failures, points prometheus.Counter }

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		requests: counter("shale_carbonlink_requests_total", "Requests of graphite-web to graphite-cache-query-listen."),
		failures: counter("shale_carbonlink_failed_requests_total", "Requests of graphite-web to graphite-cache-query-listen that got an error."),
		points:   counter("shale_carbonlink_points_total", "Points sent to graphite-web over graphite-cache-query-listen."),
	}
}

package loki

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/api"
)

type metrics struct {
	api.Metrics
	tailed prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{Metrics: api.Metrics{
		Requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_api_loki_requests_total", Help: "Requests to the Loki API, by handler and HTTP status; 101 is a connection that followed lines and has ended."},
			[]string{"handler", "code"}),
		Seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shale_api_loki_request_seconds", Help: "Time from the request to the end of the answer, waiting included, of all but those that follow lines.",
			Buckets: api.RequestBuckets},
			[]string{"handler"}),
		Gate: api.GateMetrics{
			Running: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_loki_running_requests", Help: "Requests that are being worked on."}),
			Waiting: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_loki_waiting_requests", Help: "Requests that wait for their turn."}),
			Refused: f.NewCounter(prometheus.CounterOpts{
				Name: "shale_api_loki_refused_requests_total", Help: "Requests refused because their turn did not come in time."}),
		},
	},
		tailed: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_api_loki_tail_bytes_total", Help: "Bytes of JSON that were sent to those who follow lines."}),
	}
}

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
			Name: "shale_api_loki_requests_total", Help: "Requests to the Loki API, by handler and HTTP status; 101 is a tail connection that has ended."},
			[]string{"handler", "code"}),
		Seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shale_api_loki_request_seconds", Help: "Seconds from a Loki API request to the end of its response, including the wait for a turn, without tail connections.",
			Buckets: api.RequestBuckets},
			[]string{"handler"}),
		Gate: api.GateMetrics{
			Running: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_loki_running_requests", Help: "Loki API requests that are running."}),
			Waiting: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_loki_waiting_requests", Help: "Loki API requests that wait for a turn."}),
			Unread: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_loki_unread_requests", Help: "Loki API requests that gave back their turn because their client does not read the response."}),
			Refused: f.NewCounter(prometheus.CounterOpts{
				Name: "shale_api_loki_refused_requests_total", Help: "Loki API requests refused because no turn was free in time."}),
		},
	},
		tailed: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_api_loki_tail_bytes_total", Help: "Bytes of JSON sent to tail clients."}),
	}
}

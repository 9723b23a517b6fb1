package graphite

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/api"
)

func newMetrics(reg prometheus.Registerer) *api.Metrics {
	f := promauto.With(reg)
	return &api.Metrics{
		Requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_api_graphite_requests_total", Help: "Requests to the Graphite API, by handler and HTTP status."},
			[]string{"handler", "code"}),
		Seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shale_api_graphite_request_seconds", Help: "Seconds from a Graphite API request to the end of its response, including the wait for a turn.",
			Buckets: api.RequestBuckets},
			[]string{"handler"}),
		Gate: api.GateMetrics{
			Running: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_graphite_running_requests", Help: "Graphite API requests that are running."}),
			Waiting: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_graphite_waiting_requests", Help: "Graphite API requests that wait for a turn."}),
			Unread: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_graphite_unread_requests", Help: "Graphite API requests that gave back their turn because their client does not read the response."}),
			Refused: f.NewCounter(prometheus.CounterOpts{
				Name: "shale_api_graphite_refused_requests_total", Help: "Graphite API requests refused because no turn was free in time."}),
		},
	}
}

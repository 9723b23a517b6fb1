package prom

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

func newMetrics(reg prometheus.Registerer, pool *model.QueryPool) *api.Metrics {
	f := promauto.With(reg)
	if pool != nil {
		f.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "shale_api_prom_query_bytes", Help: "Bytes of memory charged to the running queries of all APIs."},
			func() float64 { return float64(pool.Used()) })
		f.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "shale_api_prom_query_limit_bytes", Help: "Bytes of memory that the queries of all APIs may hold together; queries beyond it wait, then are refused."},
			func() float64 { return float64(pool.MaxBytes) })
	}
	return &api.Metrics{
		Requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_api_prom_requests_total", Help: "Requests to the Prometheus API, by handler and HTTP status."},
			[]string{"handler", "code"}),
		Seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shale_api_prom_request_seconds", Help: "Seconds from a Prometheus API request to the end of its response, including the wait for a turn.",
			Buckets: api.RequestBuckets},
			[]string{"handler"}),
		Gate: api.GateMetrics{
			Running: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_prom_running_requests", Help: "Prometheus API requests that are running."}),
			Waiting: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_prom_waiting_requests", Help: "Prometheus API requests that wait for a turn."}),
			Unread: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_prom_unread_requests", Help: "Prometheus API requests that gave back their turn because their client does not read the response."}),
			Refused: f.NewCounter(prometheus.CounterOpts{
				Name: "shale_api_prom_refused_requests_total", Help: "Prometheus API requests refused because no turn was free in time."}),
		},
	}
}

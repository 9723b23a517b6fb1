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
			Name: "shale_api_prom_query_bytes", Help: "Memory that running queries have been charged for."},
			func() float64 { return float64(pool.Used()) })
		f.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "shale_api_prom_query_limit_bytes", Help: "Memory that all queries together may be charged for; beyond it they are refused."},
			func() float64 { return float64(pool.MaxBytes) })
	}
	return &api.Metrics{
		Requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_api_prom_requests_total", Help: "Requests to the Prometheus API, by handler and HTTP status."},
			[]string{"handler", "code"}),
		Seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shale_api_prom_request_seconds", Help: "Time from the request to the end of the answer, waiting included.",
			Buckets: api.RequestBuckets},
			[]string{"handler"}),
		Gate: api.GateMetrics{
			Running: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_prom_running_requests", Help: "Requests that are being worked on."}),
			Waiting: f.NewGauge(prometheus.GaugeOpts{
				Name: "shale_api_prom_waiting_requests", Help: "Requests that wait for their turn."}),
			Refused: f.NewCounter(prometheus.CounterOpts{
				Name: "shale_api_prom_refused_requests_total", Help: "Requests refused because their turn did not come in time."}),
		},
	}
}

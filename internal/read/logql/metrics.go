package logql

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	tails   prometheus.Gauge
	dropped prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		tails: f.NewGauge(prometheus.GaugeOpts{
			Name: "shale_logql_tails",
			Help: "Clients that follow lines as they come.",
		}),
		dropped: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_logql_tail_dropped_lines_total",
			Help: "Lines of followed streams that were left out because their client was too slow; it is told of them.",
		}),
	}
}

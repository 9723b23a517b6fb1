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
			Help: "Tail clients that are connected.",
		}),
		dropped: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_logql_tail_dropped_lines_total",
			Help: "Lines dropped because a tail client was too slow to receive them; the client is told of at most 1,000 of them at a time.",
		}),
	}
}

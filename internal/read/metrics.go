package read

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	collisions prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		collisions: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_read_key_collisions_total",
			Help: "Key collisions seen by queries: two label sets with one key, of which the query returns the first.",
		}),
	}
}

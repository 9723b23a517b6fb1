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
			Help: "Series met by queries whose key came with different labels in different places; the first label set was shown.",
		}),
	}
}

package issuer

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics count the fetches of keys.
type Metrics struct {
	fetches *prometheus.CounterVec
	fetched prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	f := promauto.With(r)
	m := &Metrics{
		fetches: f.NewCounterVec(prometheus.CounterOpts{Name: "shale_oidc_key_fetches_total", Help: "Fetches of the keys of the OpenID Connect issuer, by outcome: succeeded or failed."}, []string{"outcome"}),
		fetched: f.NewGauge(prometheus.GaugeOpts{Name: "shale_oidc_keys_fetched_seconds", Help: "Unix time at which the keys of the OpenID Connect issuer were fetched; 0: never."}),
	}
	m.fetches.WithLabelValues("succeeded")
	m.fetches.WithLabelValues("failed")
	return m
}

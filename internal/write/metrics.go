package write

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	stored, labels     prometheus.Counter
	discarded, refused *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, b *budget) *metrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_write_inflight_bytes", Help: "Bytes of requests that are being worked on, as sent and as decoded.",
	}, func() float64 { return float64(b.inUse()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_write_inflight_limit_bytes", Help: "Bytes that requests may hold at one time.",
	}, func() float64 { return float64(b.max) })
	return &metrics{
		stored: f.NewCounter(prometheus.CounterOpts{Name: "shale_write_samples_total", Help: "Samples acknowledged as durable."}),
		labels: f.NewCounter(prometheus.CounterOpts{Name: "shale_write_labels_total", Help: "Label sets that travelled with batches because their series were not yet known to be durable."}),
		discarded: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_write_discarded_samples_total", Help: "Samples left out, by reason."}, []string{"reason"}),
		refused: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_write_refused_requests_total", Help: "Batches or requests refused whole, by the limit or part that refused."}, []string{"limit"}),
	}
}

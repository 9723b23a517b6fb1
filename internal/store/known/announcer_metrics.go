package known

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type announcerMetrics struct {
	announced, crowded prometheus.Counter
	forgotten          *prometheus.CounterVec
}

func newAnnouncerMetrics(reg prometheus.Registerer, set *Set) *announcerMetrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_gateway_announced_series", Help: "Series whose labels a gateway need not send again."},
		func() float64 { return float64(set.Len()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_gateway_announced_series_limit", Help: "Largest number of series that a gateway can remember as announced."},
		func() float64 { return float64(set.Cap()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_gateway_announced_bytes", Help: "Bytes of memory for the series that a gateway remembers as announced."},
		func() float64 { return float64(set.Bytes()) })
	return &announcerMetrics{
		announced: f.NewCounter(prometheus.CounterOpts{Name: "shale_gateway_announced_labels_total", Help: "Label sets that a gateway sent with rows and that were acknowledged."}),
		crowded:   f.NewCounter(prometheus.CounterOpts{Name: "shale_gateway_crowded_labels_total", Help: "Label sets that a gateway will send again because it has no memory to remember them."}),
		forgotten: f.NewCounterVec(prometheus.CounterOpts{Name: "shale_gateway_forgotten_series_total", Help: "Series that a gateway has forgotten and announces again, by reason: age, partition (its new owner lacks labels), topic or clock."}, []string{"reason"}),
	}
}

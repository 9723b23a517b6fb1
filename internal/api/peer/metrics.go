package peer

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	failures *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, h *Handler) *metrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_peer_requests", Help: "Requests of query processes that are running, with open streams of text."},
		func() float64 { return float64(len(h.requests)) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_peer_requests_limit", Help: "Most requests of query processes at once; further ones are refused."},
		func() float64 { return float64(cap(h.requests)) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_peer_text_streams", Help: "Open streams of text, whose pages stay readable."},
		func() float64 { return float64(h.sessions.count()) })
	return &metrics{f.NewCounterVec(prometheus.CounterOpts{Name: "shale_peer_failures_total", Help: "Requests of query processes that ended with an error, by its code."}, []string{"code"})}
}

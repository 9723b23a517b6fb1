package peer

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	failures *prometheus.CounterVec
	lost     prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, h *Handler) *metrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_peer_requests", Help: "Requests of query processes that are running, with open streams of text."},
		func() float64 { return float64(len(h.requests)) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_peer_requests_limit", Help: "Most requests of query processes at once; further ones are refused."},
		func() float64 { return float64(cap(h.requests)) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_peer_text_streams", Help: "Open streams of text, whose pages stay readable."},
		func() float64 { return float64(h.sessions.count()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_peer_tails", Help: "Query processes and their clients that follow lines of this process."},
		func() float64 { return float64(len(h.tails)) })
	return &metrics{f.NewCounterVec(prometheus.CounterOpts{Name: "shale_peer_failures_total", Help: "Requests of query processes that ended with an error, by its code."}, []string{"code"}),
		f.NewCounter(prometheus.CounterOpts{Name: "shale_peer_tail_dropped_lines_total", Help: "Lines that query processes follow and that were left out, because they were read too slowly."})}
}

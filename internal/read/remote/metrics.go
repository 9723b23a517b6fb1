package remote

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests, bytes, lost prometheus.Counter
	gaps                  *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		requests: f.NewCounter(prometheus.CounterOpts{Name: "shale_remote_requests_total", Help: "Requests to processes that hold recent rows which were answered."}),
		bytes:    f.NewCounter(prometheus.CounterOpts{Name: "shale_remote_bytes_total", Help: "Bytes of frames from processes that hold recent rows."}),
		lost:     f.NewCounter(prometheus.CounterOpts{Name: "shale_remote_lost_total", Help: "Responses that broke off, of processes that hold recent rows; the query is then repeated once."}),
		gaps:     f.NewCounterVec(prometheus.CounterOpts{Name: "shale_query_gaps_total", Help: "Queries that were refused because rows are neither in the bucket nor with a process that can be asked, by reason: no_holder or not_covered."}, []string{"reason"}),
	}
}

package memcache

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The results of a batch of requests to a server.
const (
	resultAnswered = iota
	resultTimeout
	resultFailed  // the connection, or the way to one
	resultOut     // not sent: the breaker is open
	resultGivenUp // the caller has ended, or too much is in flight
)

var results = [...]string{resultAnswered: "answered", resultTimeout: "timeout", resultFailed: "failed", resultOut: "out", resultGivenUp: "given_up"}

type metrics struct {
	servers       prometheus.Gauge
	failedLookups prometheus.Counter

	batches                    *prometheus.CounterVec
	dials, failedDials, strays *prometheus.CounterVec
	seconds                    *prometheus.HistogramVec
	out                        *prometheus.GaugeVec
}

// nodeMetrics are those of one server.
type nodeMetrics struct {
	results                    [len(results)]prometheus.Counter
	dials, failedDials, strays prometheus.Counter
	seconds                    prometheus.Observer
	out                        prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	f := promauto.With(r)
	return &metrics{
		servers:       f.NewGauge(prometheus.GaugeOpts{Name: "shale_memcached_servers", Help: "Memcached servers that keys are spread over."}),
		failedLookups: f.NewCounter(prometheus.CounterOpts{Name: "shale_memcached_failed_lookups_total", Help: "Names of memcached servers that could not be resolved; the servers known from before were used."}),
		batches: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_memcached_batches_total", Help: "Batches of requests to a memcached server, by result: answered, timeout, failed (no connection), out (not sent, because the server had failed often) or given_up (the query ended, or too much was in flight).",
		}, []string{"server", "result"}),
		dials:       f.NewCounterVec(prometheus.CounterOpts{Name: "shale_memcached_dials_total", Help: "Connections to a memcached server that were tried."}, []string{"server"}),
		failedDials: f.NewCounterVec(prometheus.CounterOpts{Name: "shale_memcached_failed_dials_total", Help: "Connections to a memcached server that could not be opened."}, []string{"server"}),
		strays:      f.NewCounterVec(prometheus.CounterOpts{Name: "shale_memcached_stray_responses_total", Help: "Responses of a memcached server that no request waited for; they were dropped."}, []string{"server"}),
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shale_memcached_batch_seconds", Help: "Time from a batch of requests to the last of its responses, also if the query has not waited for it.",
			Buckets: []float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1},
		}, []string{"server"}),
		out: f.NewGaugeVec(prometheus.GaugeOpts{Name: "shale_memcached_server_out", Help: "Whether a memcached server has failed so often that at most one request at a time is sent to it."}, []string{"server"}),
	}
}

// of returns the metrics of a server.
func (m *metrics) of(server string) *nodeMetrics {
	n := &nodeMetrics{
		dials: m.dials.WithLabelValues(server), failedDials: m.failedDials.WithLabelValues(server), strays: m.strays.WithLabelValues(server),
		seconds: m.seconds.WithLabelValues(server), out: m.out.WithLabelValues(server),
	}
	for i, name := range results {
		n.results[i] = m.batches.WithLabelValues(server, name)
	}
	return n
}

// forget drops the metrics of a server that is gone, so that their number stays bounded.
func (m *metrics) forget(server string) {
	labels := prometheus.Labels{"server": server}
	m.batches.DeletePartialMatch(labels)
	m.dials.Delete(labels)
	m.failedDials.Delete(labels)
	m.strays.Delete(labels)
	m.seconds.Delete(labels)
	m.out.Delete(labels)
}

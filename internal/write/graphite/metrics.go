package graphite

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/write"
)

// transport counts what comes by TCP, by UDP, or in pickles.
type transport struct {
	name string
	// badReason is why bad lines, or items, are discarded.
	badReason                                     string
	received, lines, bad, bytes, dropped, retries prometheus.Counter
}

type metrics struct {
	tcp, udp, pickle  *transport
	connections       prometheus.Gauge
	accepted, refused prometheus.Counter
	droppedDatagrams  prometheus.Counter
	buffers, frames   prometheus.Gauge
	pickles           prometheus.Counter
	lostPickles       *prometheus.CounterVec
}

// newMetrics gives metrics; drops counts the datagrams that the system has dropped.
func newMetrics(reg prometheus.Registerer, drops func() float64) *metrics {
	f := promauto.With(reg)
	vec := func(name, help string, labels []string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	received := vec("shale_graphite_received_points_total", "Graphite points received that are durable.", []string{"transport"})
	lines := vec("shale_graphite_lines_total", "Graphite lines, or items of pickles, received, without empty ones.", []string{"transport"})
	bad := vec("shale_graphite_bad_lines_total", "Graphite lines, or items of pickles, that could not be read.", []string{"transport"})
	bytes := vec("shale_graphite_received_bytes_total", "Bytes of Graphite lines, or of pickles, received.", []string{"transport"})
	dropped := vec("shale_graphite_dropped_points_total", "Graphite points received, or lines of datagrams, for which there was no room.", []string{"transport"})
	retries := vec("shale_graphite_push_retries_total", "Pushes of Graphite points that were refused for a time and repeated.", []string{"transport"})
	of := func(name, badReason string) *transport {
		return &transport{
			name: name, badReason: badReason,
			received: received.WithLabelValues(name), lines: lines.WithLabelValues(name), bad: bad.WithLabelValues(name),
			bytes: bytes.WithLabelValues(name), dropped: dropped.WithLabelValues(name), retries: retries.WithLabelValues(name),
		}
	}
	f.NewCounterFunc(prometheus.CounterOpts{
		Name: "shale_graphite_kernel_dropped_datagrams_total", Help: "Graphite datagrams that the system dropped before Shale read them, on Linux.",
	}, drops)
	return &metrics{
		tcp: of("tcp", write.ReasonBadLine), udp: of("udp", write.ReasonBadLine), pickle: of("pickle", reasonBadItem),
		connections:      f.NewGauge(prometheus.GaugeOpts{Name: "shale_graphite_connections", Help: "Open Graphite connections."}),
		buffers:          f.NewGauge(prometheus.GaugeOpts{Name: "shale_graphite_buffer_bytes", Help: "Memory of the read buffers of Graphite connections."}),
		frames:           f.NewGauge(prometheus.GaugeOpts{Name: "shale_graphite_pickle_bytes", Help: "Memory of Graphite pickles that arrive or are read."}),
		accepted:         f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_connections_accepted_total", Help: "Graphite connections accepted and kept."}),
		refused:          f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_connections_refused_total", Help: "Graphite connections closed at once because too many were open."}),
		droppedDatagrams: f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_dropped_datagrams_total", Help: "Graphite datagrams dropped, in whole or in part, because there was no room."}),
		pickles:          f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_pickles_total", Help: "Graphite pickles received whole."}),
		lostPickles: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_graphite_lost_pickles_total", Help: "Graphite pickles lost, by reason: undecodable, too_long, too_slow, cut_off, stopped."}, []string{"reason"}),
	}
}

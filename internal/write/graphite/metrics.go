package graphite

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// transport counts what comes by TCP or by UDP.
type transport struct {
	name                                          string
	received, lines, bad, bytes, dropped, retries prometheus.Counter
}

type metrics struct {
	tcp, udp          *transport
	connections       prometheus.Gauge
	accepted, refused prometheus.Counter
	droppedDatagrams  prometheus.Counter
	buffers           prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	vec := func(name, help string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"transport"})
	}
	received := vec("shale_graphite_received_points_total", "Graphite points received that are durable.")
	lines := vec("shale_graphite_lines_total", "Graphite lines received, without empty ones.")
	bad := vec("shale_graphite_bad_lines_total", "Graphite lines that could not be read.")
	bytes := vec("shale_graphite_received_bytes_total", "Bytes of Graphite lines received.")
	dropped := vec("shale_graphite_dropped_points_total", "Graphite points received, or lines of datagrams, for which there was no room.")
	retries := vec("shale_graphite_push_retries_total", "Pushes of Graphite points that were refused for a time and repeated.")
	of := func(name string) *transport {
		return &transport{
			name: name, received: received.WithLabelValues(name), lines: lines.WithLabelValues(name), bad: bad.WithLabelValues(name),
			bytes: bytes.WithLabelValues(name), dropped: dropped.WithLabelValues(name), retries: retries.WithLabelValues(name),
		}
	}
	return &metrics{
		tcp: of("tcp"), udp: of("udp"),
		connections:      f.NewGauge(prometheus.GaugeOpts{Name: "shale_graphite_connections", Help: "Open Graphite connections."}),
		buffers:          f.NewGauge(prometheus.GaugeOpts{Name: "shale_graphite_buffer_bytes", Help: "Memory of the read buffers of Graphite connections."}),
		accepted:         f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_connections_accepted_total", Help: "Graphite connections accepted and kept."}),
		refused:          f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_connections_refused_total", Help: "Graphite connections closed at once because too many were open."}),
		droppedDatagrams: f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_dropped_datagrams_total", Help: "Graphite datagrams dropped, in whole or in part, because there was no room."}),
	}
}

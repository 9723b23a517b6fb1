package graphite

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/write"
)

// transport has the metrics of one transport: tcp, udp, pickle or protobuf.
type transport struct {
	name string
	// badReason is the reason under which bad lines or points are discarded.
	badReason                                     string
	received, lines, bad, bytes, dropped, retries prometheus.Counter
}

type metrics struct {
	tcp, udp             *transport
	pickle, protobuf     frames
	connections          prometheus.Gauge
	accepted, refused    prometheus.Counter
	displaced            prometheus.Counter
	unidentified         prometheus.Counter
	droppedDatagrams     prometheus.Counter
	buffers, pickleBytes prometheus.Gauge
}

// newMetrics registers the metrics. drops returns the number of datagrams that the kernel has dropped.
func newMetrics(reg prometheus.Registerer, drops func() float64) *metrics {
	f := promauto.With(reg)
	vec := func(name, help string, labels []string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	received := vec("shale_graphite_received_points_total", "Graphite points received and durable.", []string{"transport"})
	lines := vec("shale_graphite_lines_total", "Graphite lines and points of pickles and protobuf messages received, without empty lines.", []string{"transport"})
	bad := vec("shale_graphite_bad_lines_total", "Graphite lines and points of pickles and protobuf messages that could not be parsed.", []string{"transport"})
	bytes := vec("shale_graphite_received_bytes_total", "Bytes received as Graphite lines, pickles or protobuf messages.", []string{"transport"})
	dropped := vec("shale_graphite_dropped_points_total", "Graphite points received and lost: no room for a datagram, a refusal, or not durable before shutdown.", []string{"transport"})
	retries := vec("shale_graphite_push_retries_total", "Retries of pushes of Graphite points after the write path refused them temporarily.", []string{"transport"})
	newTransport := func(name, badReason string) *transport {
		return &transport{
			name: name, badReason: badReason,
			received: received.WithLabelValues(name), lines: lines.WithLabelValues(name), bad: bad.WithLabelValues(name),
			bytes: bytes.WithLabelValues(name), dropped: dropped.WithLabelValues(name), retries: retries.WithLabelValues(name),
		}
	}
	f.NewCounterFunc(prometheus.CounterOpts{
		Name: "shale_graphite_kernel_dropped_datagrams_total", Help: "Graphite datagrams that the Linux kernel dropped before Shale read them.",
	}, drops)
	return &metrics{
		tcp: newTransport("tcp", write.ReasonBadLine), udp: newTransport("udp", write.ReasonBadLine),
		pickle: frames{what: "pickle", transport: newTransport("pickle", reasonBadPoint), decode: decodePickle,
			received: f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_pickles_total", Help: "Graphite pickles received completely."}),
			lost:     vec("shale_graphite_lost_pickles_total", "Graphite pickles lost whole, by reason: undecodable, too_long, too_slow, cut_off, stopped, revoked.", []string{"reason"})},
		protobuf: frames{what: "protobuf message", transport: newTransport("protobuf", reasonBadPoint), decode: decodeProtobuf,
			received: f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_protobufs_total", Help: "Graphite protobuf messages received completely."}),
			lost:     vec("shale_graphite_lost_protobufs_total", "Graphite protobuf messages lost whole, by reason: undecodable, too_long, too_slow, cut_off, stopped, revoked.", []string{"reason"})},
		connections:      f.NewGauge(prometheus.GaugeOpts{Name: "shale_graphite_connections", Help: "Open Graphite connections."}),
		buffers:          f.NewGauge(prometheus.GaugeOpts{Name: "shale_graphite_buffer_bytes", Help: "Bytes held by the read buffers of Graphite connections."}),
		pickleBytes:      f.NewGauge(prometheus.GaugeOpts{Name: "shale_graphite_pickle_bytes", Help: "Bytes reserved for Graphite pickles and protobuf messages that are being received or decoded."}),
		accepted:         f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_connections_accepted_total", Help: "Graphite connections accepted and kept."}),
		refused:          f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_connections_refused_total", Help: "Graphite connections closed at once, or after their TLS handshake, because too many were open."}),
		displaced:        f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_connections_displaced_total", Help: "Graphite connections of the host with the most of them that gave way to one of another host, because limits.connections were open."}),
		unidentified:     f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_connections_unidentified_total", Help: "Graphite connections over TLS that were closed because the handshake failed or the client may not write."}),
		droppedDatagrams: f.NewCounter(prometheus.CounterOpts{Name: "shale_graphite_dropped_datagrams_total", Help: "Graphite datagrams dropped in whole or in part because there was no memory for their points."}),
	}
}

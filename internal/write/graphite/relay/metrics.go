package relay

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Reasons why a point is dropped.
const (
	full       = "full"       // the queue has no room
	disk       = "disk"       // the queue cannot be written
	unsendable = "unsendable" // the protocol cannot say it
	damaged    = "damaged"    // its lot cannot be read
	removed    = "removed"    // its destination is no longer one
)

type metrics struct {
	points, sent, lots, failures, repeated, dropped *prometheus.CounterVec
	queuedPoints, queuedBytes                       *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string, more ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"destination"}, more...))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return f.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"destination"})
	}
	return &metrics{
		points:       counter("shale_graphite_relay_points_total", "Graphite points to be relayed, dropped ones included, by the carbon that they are for."),
		sent:         counter("shale_graphite_relay_sent_points_total", "Relayed Graphite points that the carbon has confirmed."),
		lots:         counter("shale_graphite_relay_lots_total", "Lots of relayed Graphite points that the carbon has confirmed, each over a connection."),
		failures:     counter("shale_graphite_relay_failures_total", "Failed attempts to send a lot of relayed Graphite points, each of which is repeated."),
		repeated:     counter("shale_graphite_relay_repeated_points_total", "Relayed Graphite points that were sent without a confirmation and are sent again, so that they may arrive twice."),
		dropped:      counter("shale_graphite_relay_dropped_points_total", "Graphite points that the carbon will not get, by reason: full (the queue has no room), disk, unsendable, damaged, removed.", "reason"),
		queuedPoints: gauge("shale_graphite_relay_queued_points", "Relayed Graphite points in the queue of the carbon that are written and not confirmed."),
		queuedBytes:  gauge("shale_graphite_relay_queued_bytes", "Bytes of the queue of relayed Graphite points."),
	}
}

// counters are the metrics of one destination.
type counters struct {
	points, sent, lots, failures, repeated prometheus.Counter
	queuedPoints, queuedBytes              prometheus.Gauge
	dropped                                map[string]prometheus.Counter // by reason
}

func (m *metrics) of(destination string) *counters {
	c := &counters{
		points: m.points.WithLabelValues(destination), sent: m.sent.WithLabelValues(destination), lots: m.lots.WithLabelValues(destination),
		failures: m.failures.WithLabelValues(destination), repeated: m.repeated.WithLabelValues(destination),
		queuedPoints: m.queuedPoints.WithLabelValues(destination), queuedBytes: m.queuedBytes.WithLabelValues(destination),
		dropped: map[string]prometheus.Counter{},
	}
	for _, reason := range []string{full, disk, unsendable, damaged, removed} {
		c.dropped[reason] = m.dropped.WithLabelValues(destination, reason)
	}
	return c
}

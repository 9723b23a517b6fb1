package write

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/model"
)

type metrics struct {
	floats, histograms, exemplars, labels, metadata, lines, lineBytes        prometheus.Counter
	discardedSamples, discardedExemplars, discardedMetadata, refusedRequests *prometheus.CounterVec
	discardedLines, discardedLineBytes                                       *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, b *budget, p *model.Processors) *metrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_write_processor_waiting_requests", Help: "Write requests that have arrived and wait for a processor, since other tenants write, too.",
	}, func() float64 { return float64(p.Waiting()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_write_inflight_bytes", Help: "Bytes held by write requests in flight, as sent and as decoded.",
	}, func() float64 { return float64(b.inUse()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_write_inflight_limit_bytes", Help: "Most bytes that write requests in flight may hold.",
	}, func() float64 { return float64(b.max) })
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	samples := f.NewCounterVec(prometheus.CounterOpts{
		Name: "shale_write_samples_total", Help: "Samples acknowledged as durable, by kind: float, histogram."}, []string{"kind"})
	return &metrics{
		floats: samples.WithLabelValues("float"), histograms: samples.WithLabelValues("histogram"),
		exemplars: counter("shale_write_exemplars_total", "Exemplars acknowledged as durable."),
		labels:    counter("shale_write_labels_total", "Label sets written with a batch because their series were not yet known to be durable."),
		lines:     counter("shale_write_lines_total", "Log lines acknowledged as durable."),
		lineBytes: counter("shale_write_line_bytes_total", "Bytes of log lines acknowledged as durable, without their structured metadata."),
		metadata:  counter("shale_write_metadata_total", "Metric family metadata (type, help, unit) passed to the store because it was new or had changed."),
		discardedSamples: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_write_discarded_samples_total", Help: "Samples received but not stored, by reason."}, []string{"reason"}),
		discardedExemplars: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_write_discarded_exemplars_total", Help: "Exemplars received but not stored, by reason."}, []string{"reason"}),
		discardedLines: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_write_discarded_lines_total", Help: "Log lines received but not stored, by reason."}, []string{"reason"}),
		discardedLineBytes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_write_discarded_line_bytes_total", Help: "Bytes of log lines received but not stored, by reason."}, []string{"reason"}),
		discardedMetadata: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_write_discarded_metadata_total", Help: "Metric family metadata not stored, by reason: too_long, invalid, or refused by the store."}, []string{"reason"}),
		refusedRequests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_write_refused_requests_total", Help: "Write requests refused, in whole or for their new series, by the limit or component that refused."}, []string{"limit"}),
	}
}

func (m *metrics) stored(n Counts) {
	m.floats.Add(float64(n.Samples))
	m.histograms.Add(float64(n.Histograms))
	m.exemplars.Add(float64(n.Exemplars))
	m.lines.Add(float64(n.Lines))
	m.lineBytes.Add(float64(n.LineBytes))
}

func (m *metrics) discarded(reason string, n Counts) {
	if samples := n.Samples + n.Histograms; samples > 0 {
		m.discardedSamples.WithLabelValues(reason).Add(float64(samples))
	}
	if n.Exemplars > 0 {
		m.discardedExemplars.WithLabelValues(reason).Add(float64(n.Exemplars))
	}
	if n.Lines > 0 {
		m.discardedLines.WithLabelValues(reason).Add(float64(n.Lines))
		m.discardedLineBytes.WithLabelValues(reason).Add(float64(n.LineBytes))
	}
}

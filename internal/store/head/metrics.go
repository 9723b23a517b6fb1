package head

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/shaledb/shale/internal/store/head/local"
)

type metrics struct {
	flushes, partBytes, shippedBytes, shipErrors, collisions, workErrors, crowded prometheus.Counter
	flushSeconds                                                                  prometheus.Histogram
	merges, deferred, refusedMetadata                                             *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, h *Head) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string, value func() float64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	locked := func(value func() int64) func() float64 {
		return func() float64 {
			h.mu.Lock()
			defer h.mu.Unlock()
			return float64(value())
		}
	}
	gauge("shale_head_active_series", "Series in the known set.", func() float64 { return float64(h.known.Len()) })
	gauge("shale_head_active_series_limit", "Largest number of series that the known set has room for.", func() float64 { return float64(h.known.Cap()) })
	gauge("shale_head_known_bytes", "Bytes of memory that the known set takes.", func() float64 { return float64(h.known.Bytes()) })
	for _, limit := range []string{LimitTenantSeries, LimitTenantNewSeries, LimitNewSeries} {
		f.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "shale_head_unapplied_limits", Help: "1 while a limit on new series does not apply, by limit: until a start has rebuilt the known set, and for longer if labels cannot be read or are damaged.",
			ConstLabels: prometheus.Labels{"limit": limit},
		}, func() float64 {
			if h.applies(limit) {
				return 0
			}
			return 1
		})
	}
	gauge("shale_head_tenants", "Tenants seen since the start or found in local parts.", func() float64 { return float64(h.tenants.count()) })
	gauge("shale_head_row_buffer_bytes", "Bytes of memory that buffered rows take: rows that are in no part yet.", locked(func() int64 { return h.mu.buffers.rowBytes }))
	gauge("shale_head_row_buffer_limit_bytes", "Bytes of memory that buffered rows may take before senders wait; lines and histograms may take twice as much, since sorting does not copy them.",
		func() float64 { return float64(h.o.RowBytes) })
	gauge("shale_head_label_buffer_bytes", "Bytes of memory that buffered label sets take: label sets that are in no part yet.", locked(func() int64 { return h.mu.buffers.labelBytes }))
	gauge("shale_head_label_buffer_limit_bytes", "Bytes of memory that buffered label sets may take before senders wait.", func() float64 { return float64(h.o.LabelBytes) })
	gauge("shale_head_metadata_families", "Metric families with metadata (type, help or unit).", func() float64 { n, _ := h.metadata.Usage(); return float64(n) })
	gauge("shale_head_metadata_bytes", "Bytes of memory that the metadata of metric families takes.", func() float64 { _, n := h.metadata.Usage(); return float64(n) })
	for _, k := range []local.Kind{local.Data, local.Labels} {
		sum := func(value func(*local.Info) int64) func() float64 {
			return locked(func() (n int64) {
				for _, p := range h.mu.parts {
					if p.Info.Kind == k {
						n += value(&p.Info)
					}
				}
				return n
			})
		}
		labels := prometheus.Labels{"kind": string(k)}
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_head_parts", Help: "Local parts, by kind: data or labels.", ConstLabels: labels},
			sum(func(*local.Info) int64 { return 1 }))
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_head_parts_bytes", Help: "Bytes of local parts on disk, by kind: data or labels.", ConstLabels: labels},
			sum(func(i *local.Info) int64 { return i.Bytes }))
	}
	m := &metrics{
		flushes:      counter("shale_head_flushes_total", "Flushes of buffered rows and label sets into local parts."),
		partBytes:    counter("shale_head_part_written_bytes_total", "Bytes of local parts written by flushes and merges."),
		shippedBytes: counter("shale_head_shipped_bytes_total", "Bytes of blocks shipped to the bucket."),
		shipErrors:   counter("shale_head_ship_errors_total", "Failed attempts to ship blocks to the bucket; each is repeated."),
		workErrors:   counter("shale_head_background_errors_total", "Failed attempts of background work: flushes, merges and ships; each is repeated."),
		collisions:   counter("shale_head_key_collisions_total", "Key collisions: two different label sets with the same key, of which the first one is kept."),
		crowded:      counter("shale_head_crowded_label_sets_total", "Label sets stored once more because the known set has no room for their series."),
		deferred: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_head_deferred_series_total", Help: "New series that were refused or had to wait for a flush, counted at each attempt, by the limit that they exceeded."}, []string{"limit"}),
		refusedMetadata: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_head_refused_metadata_total", Help: "Metadata of metric families that was refused, by reason."}, []string{"reason"}),
		flushSeconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "shale_head_flush_seconds", Help: "Duration of a flush in seconds.", Buckets: prometheus.ExponentialBuckets(0.005, 2, 14)}),
		merges: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_head_merges_total", Help: "Merges of local parts, by result: data, labels, or windows sorted out of young parts."}, []string{"into"}),
	}
	return m
}

package local

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	bytes, records, dropped prometheus.Counter
	sync                    prometheus.Histogram
	errors                  *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, j *Journal) *metrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_journal_segments", Help: "Segments of the journal.",
	}, func() float64 {
		j.segments.mu.Lock()
		defer j.segments.mu.Unlock()
		return float64(len(j.segments.list))
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_journal_bytes", Help: "Size of all segments of the journal.",
	}, func() float64 { return float64(j.Bytes()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_journal_queue_bytes", Help: "Records on their way: from before they are encoded until they are applied.",
	}, func() float64 { return float64(j.held.Load()) })
	return &metrics{
		bytes:   f.NewCounter(prometheus.CounterOpts{Name: "shale_journal_append_bytes_total", Help: "Bytes of records made durable."}),
		records: f.NewCounter(prometheus.CounterOpts{Name: "shale_journal_records_total", Help: "Records made durable."}),
		dropped: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_journal_dropped_bytes_total", Help: "Bytes of a torn end that the start dropped."}),
		sync: f.NewHistogram(prometheus.HistogramOpts{
			Name: "shale_journal_sync_seconds", Help: "Time that a sync of the active segment took.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16)}),
		errors: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_journal_errors_total", Help: "Failed operations of the disk under the journal, by operation."}, []string{"op"}),
	}
}

package local

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	bytes, records, dropped, damaged prometheus.Counter
	sync                             prometheus.Histogram
	errors                           *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, j *Journal) *metrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_journal_segments", Help: "Number of journal segments on disk.",
	}, func() float64 {
		j.segments.mu.Lock()
		defer j.segments.mu.Unlock()
		return float64(len(j.segments.list))
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_journal_bytes", Help: "Bytes of all journal segments on disk.",
	}, func() float64 { return float64(j.Bytes()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_journal_queue_bytes", Help: "Bytes of journal records in memory, from before they are encoded until they are applied.",
	}, func() float64 { return float64(j.Held()) })
	return &metrics{
		bytes:   f.NewCounter(prometheus.CounterOpts{Name: "shale_journal_append_bytes_total", Help: "Bytes of journal records that were made durable."}),
		records: f.NewCounter(prometheus.CounterOpts{Name: "shale_journal_records_total", Help: "Journal records that were made durable."}),
		dropped: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_journal_dropped_bytes_total", Help: "Bytes that the start dropped from the torn end of the journal."}),
		damaged: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_journal_damaged_bytes_total", Help: "Bytes of damaged journal records that the start skipped because local parts hold their rows and labels."}),
		sync: f.NewHistogram(prometheus.HistogramOpts{
			Name: "shale_journal_sync_seconds", Help: "Duration of a sync of the active journal segment in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16)}),
		errors: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_journal_errors_total", Help: "Failed disk operations of the journal, by operation."}, []string{"op"}),
	}
}

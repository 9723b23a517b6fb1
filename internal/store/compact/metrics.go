package compact

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	runs, failures, raced, collisions prometheus.Counter
	merges                            *prometheus.CounterVec
	seconds                           prometheus.Histogram
	read, written                     prometheus.Counter
	blocksIn, blocksOut               prometheus.Counter
	backlog, damaged, last            prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		runs: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_runs_total", Help: "Runs of the compactor, each with any number of merges."}),
		merges: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_compact_merges_total", Help: "Merges of blocks, by why: day, late, many, delete."}, []string{"why"}),
		failures: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_failures_total", Help: "Merges and other work of the compactor that failed and are tried again."}),
		raced: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_raced_total", Help: "Merges thrown away because another compactor was faster."}),
		collisions: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_key_collisions_total", Help: "Different label sets seen under one key in merges; the first one stays."}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "shale_compact_merge_seconds", Help: "Time of a merge.", Buckets: prometheus.ExponentialBuckets(0.05, 2, 18)}),
		read: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_read_bytes_total", Help: "Bytes of blocks read by merges."}),
		written: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_written_bytes_total", Help: "Bytes of blocks uploaded by merges."}),
		blocksIn: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_blocks_in_total", Help: "Blocks that were replaced by merges."}),
		blocksOut: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_blocks_out_total", Help: "Blocks that merges have made."}),
		backlog: f.NewGauge(prometheus.GaugeOpts{
			Name: "shale_compact_backlog_blocks", Help: "Blocks that waited for a due merge when the last run ended."}),
		damaged: f.NewGauge(prometheus.GaugeOpts{
			Name: "shale_compact_damaged_blocks", Help: "Blocks that could not be read and are left out of merges."}),
		last: f.NewGauge(prometheus.GaugeOpts{
			Name: "shale_compact_last_run_timestamp_seconds", Help: "When the last run ended that had no error, Unix time."}),
	}
}

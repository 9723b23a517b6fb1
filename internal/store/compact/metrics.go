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
	rolled                            *prometheus.CounterVec
	unrolled                          prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		runs: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_runs_total", Help: "Runs of the compactor, each with any number of merges."}),
		merges: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_compact_merges_total", Help: "Merges of blocks, by reason: day, late, many, delete, expire, rollup."}, []string{"why"}),
		failures: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_failures_total", Help: "Failed merges and other failed steps of the compactor, which it retries."}),
		raced: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_raced_total", Help: "Merges discarded because another compactor was faster."}),
		collisions: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_key_collisions_total", Help: "Key collisions in merges: two label sets under one key, of which the first stays."}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "shale_compact_merge_seconds", Help: "Duration of one merge in seconds.", Buckets: prometheus.ExponentialBuckets(0.05, 2, 18)}),
		read: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_read_bytes_total", Help: "Bytes of blocks read by merges."}),
		written: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_written_bytes_total", Help: "Bytes of blocks uploaded by merges."}),
		blocksIn: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_blocks_in_total", Help: "Blocks replaced by merges."}),
		blocksOut: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_compact_blocks_out_total", Help: "Blocks written by merges."}),
		rolled: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_rollup_rows_total", Help: "Rows of rollups written to blocks, by the length of their slots."}, []string{"every"}),
		unrolled: f.NewGauge(prometheus.GaugeOpts{
			Name: "shale_rollup_waiting_blocks", Help: "Blocks of days that are over whose rollups were not made or not made again by the end of the last run."}),
		backlog: f.NewGauge(prometheus.GaugeOpts{
			Name: "shale_compact_backlog_blocks", Help: "Blocks that were waiting for a due merge at the end of the last run."}),
		damaged: f.NewGauge(prometheus.GaugeOpts{
			Name: "shale_compact_damaged_blocks", Help: "Unreadable blocks that merges leave out."}),
		last: f.NewGauge(prometheus.GaugeOpts{
			Name: "shale_compact_last_run_timestamp_seconds", Help: "Unix time of the end of the last run without an error."}),
	}
}

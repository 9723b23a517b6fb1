package patterns

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	bytes                                             prometheus.Gauge
	mined, joined, dropped, forgotten, shrunk, failed prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{Name: "shale_logql_patterns_bytes",
			Help: "Memory of the patterns of log lines and their counts."}),
		mined: prometheus.NewCounter(prometheus.CounterOpts{Name: "shale_logql_patterns_mined_lines_total",
			Help: "Log lines whose pattern was determined; when very many lines arrive, only a sample is."}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "shale_logql_patterns_dropped_lines_total",
			Help: "Log lines that no pattern counts, because the queue had room neither for them nor for a line that stands for them."}),
		joined: prometheus.NewCounter(prometheus.CounterOpts{Name: "shale_logql_patterns_joined_lines_total",
			Help: "Sampled log lines that are counted by a queued line of their stream, level and 10 seconds, because the queue for patterns was nearly full."}),
		forgotten: prometheus.NewCounter(prometheus.CounterOpts{Name: "shale_logql_patterns_forgotten_total",
			Help: "Patterns that were forgotten because their stream had too many; their counts are lost."}),
		shrunk: prometheus.NewCounter(prometheus.CounterOpts{Name: "shale_logql_patterns_shrinks_total",
			Help: "Times that patterns of a tenant lost their oldest counts, or the resolution of these, to free memory."}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "shale_logql_patterns_failures_total",
			Help: "Failures of the search for patterns in log lines, or of changes of their counts; all counts of the tenant concerned were dropped."}),
	}
	if r != nil {
		r.MustRegister(m.bytes, m.mined, m.joined, m.dropped, m.forgotten, m.shrunk, m.failed)
	}
	return m
}

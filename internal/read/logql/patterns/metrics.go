package patterns

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	bytes                                     prometheus.Gauge
	mined, joined, dropped, forgotten, shrunk prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{Name: "shale_logql_patterns_bytes",
			Help: "Memory of the patterns of log lines and their counts."}),
		mined: prometheus.NewCounter(prometheus.CounterOpts{Name: "shale_logql_patterns_mined_lines_total",
			Help: "Log lines whose pattern was looked for; of very many lines a sample is."}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "shale_logql_patterns_dropped_lines_total",
			Help: "Log lines that no pattern counts, because they or the line that was to count for them found no room to wait."}),
		joined: prometheus.NewCounter(prometheus.CounterOpts{Name: "shale_logql_patterns_joined_lines_total",
			Help: "Log lines of the sample for patterns that found little room to wait; a waiting line of their stream, level and 10 seconds counts for them."}),
		forgotten: prometheus.NewCounter(prometheus.CounterOpts{Name: "shale_logql_patterns_forgotten_total",
			Help: "Patterns that were forgotten because their stream had too many; their counts are lost."}),
		shrunk: prometheus.NewCounter(prometheus.CounterOpts{Name: "shale_logql_patterns_shrinks_total",
			Help: "Times that patterns of a tenant lost their oldest counts, or the resolution of these, to free memory."}),
	}
	if r != nil {
		r.MustRegister(m.bytes, m.mined, m.joined, m.dropped, m.forgotten, m.shrunk)
	}
	return m
}

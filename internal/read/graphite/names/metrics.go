package names

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	lookups                        *prometheus.CounterVec // by way
	builds, names, bytes, failures prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		lookups: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_names_lookups_total", Help: "Lookups of Graphite patterns in the names of one part, by way: index, scan, or damaged: a scan because the stored index is damaged."},
			[]string{"way"}),
		builds: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_names_index_builds_total", Help: "Indexes made of the Graphite names of one part."}),
		names: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_names_indexed_total", Help: "Graphite names of which indexes were made."}),
		bytes: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_names_index_bytes_total", Help: "Bytes of the indexes made of Graphite names."}),
		failures: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_names_index_failures_total", Help: "Attempts to make indexes of the Graphite names of a tenant that met an unexpected error; the log has it. No further one begins for ten minutes."}),
	}
}

func (m *metrics) built(names uint64, bytes int) {
	m.builds.Inc()
	m.names.Add(float64(names))
	m.bytes.Add(float64(bytes))
}

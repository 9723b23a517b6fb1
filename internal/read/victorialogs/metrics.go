package victorialogs

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	bytes    prometheus.Counter
	retries  prometheus.Counter
	rows     prometheus.Counter
	denied   prometheus.Counter
	placed   *prometheus.CounterVec
	counts   *prometheus.CounterVec
	changes  prometheus.Counter
	proofs   *prometheus.CounterVec
	shared   *prometheus.CounterVec
	joined   prometheus.Counter
	paused   *prometheus.CounterVec
	refused  *prometheus.CounterVec
	waiting  prometheus.Gauge
}

// The kinds of requests.
const (
	kindDirectory = "directory" // streams and numbers of lines in cells of time
	kindGroups    = "groups"    // the same of streams that are counted together
	kindLines     = "lines"
	kindSamples   = "samples" // of lines, and numbers of lines in their windows
	kindStreams   = "streams"
	kindTail      = "tail"
	kindCounts    = "counts" // in windows of time, to see changes
	kindCopies    = "copies" // whether lines of windows may be there twice
)

func newMetrics(r prometheus.Registerer, open func() bool, limit func() int) *metrics {
	f := promauto.With(r)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_victorialogs_breaker_open",
		Help: "1 while requests to VictoriaLogs are refused because the last ones failed, else 0.",
	}, func() float64 {
		if open() {
			return 1
		}
		return 0
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_victorialogs_requests_limit",
		Help: "Requests to VictoriaLogs that may run at one time now: victorialogs.max-requests, and fewer while it is slow or refuses.",
	}, func() float64 { return float64(limit()) })
	return &metrics{
		waiting: f.NewGauge(prometheus.GaugeOpts{
			Name: "shale_victorialogs_waiting_requests", Help: "Requests to VictoriaLogs that wait for their turn.",
		}),
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_victorialogs_requests_total",
			Help: "Requests to VictoriaLogs, by kind (directory, groups, lines, samples, streams, tail, counts, copies) and outcome (ok, error, ended by the query, refused by the breaker, crowded: too many wait).",
		}, []string{"kind", "outcome"}),
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shale_victorialogs_request_seconds", Help: "Time of requests to VictoriaLogs until their last row, by kind.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"kind"}),
		bytes: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_victorialogs_received_bytes_total", Help: "Bytes of responses of VictoriaLogs, decompressed.",
		}),
		retries: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_victorialogs_retries_total", Help: "Requests to VictoriaLogs that were sent again after a failure.",
		}),
		rows: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_victorialogs_lines_total", Help: "Log lines that were fetched from VictoriaLogs.",
		}),
		denied: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_victorialogs_denied_total", Help: "Requests of tenants that have no account in victorialogs.accounts.",
		}),
		placed: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_victorialogs_parts_total",
			Help: "Matchers and filters of requests to VictoriaLogs, by where they run: pushed, partial, or local.",
		}, []string{"where"}),
		counts: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_victorialogs_counts_total",
			Help: "Counts of lines that detect changes, by outcome (ok, late, error); after late or error, queries use no kept results.",
		}, []string{"outcome"}),
		proofs: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_victorialogs_proofs_total",
			Help: "Searches for duplicate lines in windows of time, by outcome (ok, late, error); without a finished search, each count looks for duplicates itself.",
		}, []string{"outcome"}),
		shared: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_victorialogs_shared_total",
			Help: "Counts of lines of an extent of time in the SSD and memcached tiers, by outcome: hit, miss, damaged, kept, changed (their lines changed before they were kept).",
		}, []string{"outcome"}),
		joined: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_victorialogs_joined_total", Help: "Counts of lines that were answered by a request to VictoriaLogs shared with other counts.",
		}),
		paused: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_victorialogs_joined_pauses_total",
			Help: "Times after which all counts of a tenant were sent to VictoriaLogs alone for a minute, by the reason in a response to several of them: large (more than 8 MiB of rows), or late.",
		}, []string{"reason"}),
		refused: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_victorialogs_refused_total",
			Help: "Requests that VictoriaLogs refused as invalid, by form (samples of lines, packed rows of counts) and scope (server: it does not know the form; selector: some queries only). The form is then not tried for ten minutes.",
		}, []string{"form", "scope"}),
		changes: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_victorialogs_changes_total", Help: "Ranges of time whose lines have changed, so that results over them are computed again.",
		}),
	}
}

func (m *metrics) pausedFor(reason string) { m.paused.WithLabelValues(reason).Inc() }

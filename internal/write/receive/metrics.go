package receive

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/write"
)

// Metrics are those of one receiver. Counters of rows that the protocol does not carry are nil.
type Metrics struct {
	// Requests is labelled by the form of a request and, last, by the status code of its response.
	Requests *prometheus.CounterVec
	// Seconds is labelled by the signal if the receiver has more than one.
	Seconds                              *prometheus.HistogramVec
	BodyBytes, Lines, Samples, Exemplars prometheus.Counter
}

// Registry makes metrics and registers them.
type Registry struct{ promauto.Factory }

// NewRegistry returns a registry that registers with reg, which may be nil.
func NewRegistry(reg prometheus.Registerer) Registry { return Registry{promauto.With(reg)} }

// Counter makes a counter.
func (r Registry) Counter(name, help string) prometheus.Counter {
	return r.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// Requests makes the counter of requests.
func (r Registry) Requests(name, help string, labels []string) *prometheus.CounterVec {
	return r.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Seconds makes the histogram of the time that requests take. Without labels it is exported from the
// start.
func (r Registry) Seconds(name, help string, labels []string) *prometheus.HistogramVec {
	h := r.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}, labels)
	if len(labels) == 0 {
		h.WithLabelValues()
	}
	return h
}

// Observe counts a request by the form, without the status code, and the time since begin by the signals.
func (m *Metrics) Observe(begin time.Time, res *Response, form []string, signals ...string) {
	m.Requests.WithLabelValues(append(form, strconv.Itoa(res.Status))...).Inc()
	m.Seconds.WithLabelValues(signals...).Observe(time.Since(begin).Seconds())
}

func (m *Metrics) received(n write.Counts) {
	add := func(c prometheus.Counter, n int) {
		if c != nil {
			c.Add(float64(n))
		}
	}
	add(m.Lines, n.Lines)
	add(m.Samples, n.Samples+n.Histograms)
	add(m.Exemplars, n.Exemplars)
}

package ingest

import (
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// OwnerMetrics are the metrics of the partitions of a process.
type OwnerMetrics struct {
	mu                           sync.Mutex
	owners                       []*Owner
	state, covered, next, behind *prometheus.Desc
	moves                        *prometheus.CounterVec
	takeovers                    prometheus.Counter
}

// NewOwnerMetrics registers the metrics of an owner.
func NewOwnerMetrics(reg prometheus.Registerer) *OwnerMetrics {
	label := []string{"topic", "partition"}
	m := &OwnerMetrics{
		state: prometheus.NewDesc("shale_partition_state", "Whether a partition is in a state: opening, reading (not at the end yet), ready, leaving (to another process), waiting (for the topic before), closed (its topic has ended), stopped or ended.",
			[]string{"topic", "partition", "state"}, nil),
		covered: prometheus.NewDesc("shale_partition_covered_offset", "First offset of a partition that is not in the bucket, as far as this process knows.", label, nil),
		next:    prometheus.NewDesc("shale_partition_next_offset", "First offset of a partition that was not read.", label, nil),
		behind:  prometheus.NewDesc("shale_partition_unshipped_records", "Records of a partition that were read and are not in the bucket.", label, nil),
	}
	m.moves = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "shale_partition_moves_total", Help: "Partitions that came to this process or left it, by what happened: held, released (after a ship) or lost (the session ended).",
	}, []string{"what"})
	m.takeovers = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "shale_partition_takeovers_total", Help: "Times that a standby process (ship=standby) took over shipping a partition because no other process shipped it.",
	})
	reg.MustRegister(m, m.moves, m.takeovers)
	return m
}

func (m *OwnerMetrics) moved(what string, partitions int) {
	if m != nil {
		m.moves.WithLabelValues(what).Add(float64(partitions))
	}
}

func (m *OwnerMetrics) tookOver() {
	if m != nil {
		m.takeovers.Inc()
	}
}

// watch adds an owner, and unwatch removes it.
func (m *OwnerMetrics) watch(w *Owner) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.owners = append(m.owners, w)
	}
}

func (m *OwnerMetrics) unwatch(w *Owner) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.owners = slices.DeleteFunc(slices.Clone(m.owners), func(o *Owner) bool { return o == w })
	}
}

// Describe sends the descriptions of the metrics.
func (m *OwnerMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.state, m.covered, m.next, m.behind} {
		to <- d
	}
}

// Collect sends the values of the metrics.
func (m *OwnerMetrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	owners := m.owners
	m.mu.Unlock()
	for _, w := range owners {
		m.collect(w, to)
	}
}

func (m *OwnerMetrics) collect(w *Owner, to chan<- prometheus.Metric) {
	w.Each(func(number int32, p *Partition, state State, _ error) {
		name := strconv.Itoa(int(number))
		gauge := func(d *prometheus.Desc, v float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{w.o.Topic, name}, labels...)...)
		}
		for _, s := range []State{Opening, Reading, Ready, Leaving, Waiting, Closed, Stopped, Ended} {
			v := 0.0
			if s == state {
				v = 1
			}
			gauge(m.state, v, string(s))
		}
		if p != nil {
			gauge(m.covered, float64(p.Shipped()))
			gauge(m.next, float64(p.Next()))
			gauge(m.behind, float64(p.Next()-p.Shipped()))
		}
	})
}

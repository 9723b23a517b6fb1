package ingest

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// registrations are the metrics of one partition. They leave with it, so that the next owner of the partition
// in this process can register its own.
type registrations struct {
	prometheus.Registerer
	mu  sync.Mutex
	all []prometheus.Collector
}

// register returns a registerer that gives all metrics some labels. It registers nothing if reg is nil.
func register(reg prometheus.Registerer, labels prometheus.Labels) *registrations {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	return &registrations{Registerer: prometheus.WrapRegistererWith(labels, reg)}
}

// Register adds a collector.
func (r *registrations) Register(c prometheus.Collector) error {
	err := r.Registerer.Register(c)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, c)
	}
	return err
}

// MustRegister adds collectors, and panics if one cannot be added.
func (r *registrations) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// end removes all collectors.
func (r *registrations) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.all {
		r.Unregister(c)
	}
	r.all = nil
}

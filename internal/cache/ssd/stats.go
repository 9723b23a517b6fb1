package ssd

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Stats is what a tier holds, and what it has done since it was opened.
type Stats struct {
	Entries, Bytes, Limit          int64
	Admitted, Evicted, Unread, Bad int64
	Written, Reinserted            int64
	// Out says that the tier has taken itself out, at least for writes.
	Out bool
}

// Stats returns them.
func (s *Store) Stats() Stats {
	return Stats{
		Entries: s.index.entries.Load(), Bytes: s.index.bytes.Load(), Limit: s.o.MaxBytes, Admitted: s.m.admitted.n.Load(), Evicted: s.m.evicted.n.Load(),
		Unread: s.m.unread.n.Load(), Bad: s.m.bad.n.Load(), Written: s.m.written.n.Load(), Reinserted: s.m.reinserted.n.Load(), Out: !s.health.writable(),
	}
}

// counter is a counter of Prometheus that can be read.
type counter struct {
	prometheus.Counter
	n atomic.Int64
}

// Inc adds 1, and Add a whole number.
func (c *counter) Inc() { c.Add(1) }
func (c *counter) Add(v float64) {
	c.n.Add(int64(v))
	c.Counter.Add(v)
}

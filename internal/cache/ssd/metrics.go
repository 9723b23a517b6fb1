package ssd

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/cache/ledger"
)

// The reasons for which a value is not kept.
const (
	refusedOut    = "out"    // the tier is out
	refusedSize   = "size"   // the value is too large
	refusedQueue  = "queue"  // too much waits to be written
	refusedBudget = "budget" // the day's writes are spent
	refusedIndex  = "index"  // the index is full
)

type metrics struct {
	hits, misses, evicted, unread, admitted, bad, written, reinserted, fresh *counter
	refusals                                                                 map[string]prometheus.Counter
	account                                                                  *ledger.Tier
}

func (m *metrics) refused(reason string) {
	m.refusals[reason].Inc()
	m.account.Refused()
}

// wrote counts bytes that were written to the disk besides records.
func (m *metrics) wrote(n int) {
	m.written.Add(float64(n))
	m.account.Wrote(int64(n))
}

func newMetrics(s *Store) *metrics {
	f := promauto.With(s.o.Registerer)
	tier := prometheus.Labels{"tier": "ssd"}
	newCounter := func(name, help string) *counter {
		return &counter{Counter: f.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: tier})}
	}
	m := &metrics{
		hits:       newCounter("shale_cache_hits_total", "Pages found in the cache."),
		misses:     newCounter("shale_cache_misses_total", "Pages that had to be fetched from the next tier."),
		evicted:    newCounter("shale_cache_evictions_total", "Pages that were evicted to make room for others."),
		unread:     newCounter("shale_cache_evictions_unread_total", "Pages that were evicted without being used by any query since they entered the cache."),
		admitted:   newCounter("shale_cache_admitted_total", "Pages that were written to the SSD cache: those that a second query wanted, and those of new blocks."),
		bad:        newCounter("shale_cache_bad_records_total", "Records of a tier of the cache that could not be read or did not match their checksum, and were fetched from the bucket instead."),
		written:    newCounter("shale_cache_written_bytes_total", "Bytes that a tier of the cache has written to its disk or its servers."),
		reinserted: newCounter("shale_cache_reinserted_bytes_total", "Bytes that the SSD cache has written once more because queries had used them."),
		fresh:      newCounter("shale_cache_fresh_bytes_total", "Bytes of new blocks that a tier of the cache took before a query asked for them."),
		refusals:   make(map[string]prometheus.Counter),
		account:    s.o.Account,
	}
	refusals := f.NewCounterVec(prometheus.CounterOpts{
		Name: "shale_cache_refused_total", Help: "Pages that a tier of the cache did not keep, by reason; docs/cache.md lists the reasons.",
		ConstLabels: tier,
	}, []string{"reason"})
	for _, reason := range []string{refusedOut, refusedSize, refusedQueue, refusedBudget, refusedIndex} {
		m.refusals[reason] = refusals.WithLabelValues(reason)
	}
	m.gauges(s, f, tier)
	return m
}

func (m *metrics) gauges(s *Store, f promauto.Factory, tier prometheus.Labels) {
	gauge := func(name, help string, value func() int64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: tier}, func() float64 { return float64(value()) })
	}
	gauge("shale_cache_bytes", "Bytes in the cache.", s.index.bytes.Load)
	gauge("shale_cache_limit_bytes", "Bytes that the cache may hold.", func() int64 { return s.o.MaxBytes })
	gauge("shale_cache_entries", "Pages in the SSD cache.", s.index.entries.Load)
	gauge("shale_cache_entries_limit", "Most pages that the memory of the SSD cache can index; at this bound, the oldest segment is dropped.", func() int64 { return s.maxEntries })
	gauge("shale_cache_index_bytes", "Memory of the index of the SSD cache.", s.index.memory)
	gauge("shale_cache_waiting_bytes", "Memory of the pages that wait for a second query that wants them.", s.filter.Bytes)
	gauge("shale_cache_queue_bytes", "Memory of the pages that wait to be written to a tier of the cache.", s.queued.Load)
	gauge("shale_cache_write_budget_bytes", "Bytes that the SSD cache may write now; a day adds cache.ssd-writes-per-day times its size.", s.budget.left.Load)
	for _, c := range causes() {
		labels := prometheus.Labels{"tier": "ssd", "cause": c.String()}
		f.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "shale_cache_out", Help: "1 while the SSD cache has disabled itself, by cause: slow, failing, full, unwritable, missing or hung; when full or unwritable, it is still read.", ConstLabels: labels,
		}, func() float64 {
			if s.health.has(c) {
				return 1
			}
			return 0
		})
	}
}

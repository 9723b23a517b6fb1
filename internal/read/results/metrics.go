package results

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Why kept values are dropped when they are asked for.
const (
	staleRows = iota
	staleRetention
	staleReasons
)

// Why values are not kept.
const (
	refusedMoved = iota
	refusedLarge
	refusedReasons
)

type metrics struct {
	hits, ownHits, misses prometheus.Counter
	stale                 [staleReasons]prometheus.Counter
	refused               [refusedReasons]prometheus.Counter
}

func newMetrics(r prometheus.Registerer, t *Tier) *metrics {
	f := promauto.With(r)
	tier := prometheus.Labels{"tier": "result"}
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: tier})
	}
	m := &metrics{
		hits:    counter("shale_cache_hits_total", "Pages found in the cache."),
		ownHits: counter("shale_cache_own_hits_total", "Extents of results that the same query had just computed, which do not count as hits."),
		misses:  counter("shale_cache_misses_total", "Pages that had to be fetched from the next tier."),
	}
	reasons := func(name, help string, into []prometheus.Counter, names ...string) {
		v := f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: tier}, []string{"reason"})
		for i, reason := range names {
			into[i] = v.WithLabelValues(reason)
		}
	}
	reasons("shale_cache_stale_total", "Kept results that a query found out of date, by reason: rows (late rows, a deletion, a block of another process), retention.",
		m.stale[:], "rows", "retention")
	reasons("shale_cache_results_refused_total", "Computed results that were not kept, by reason: moved (rows changed meanwhile), large.",
		m.refused[:], "moved", "large")
	locked := func(get func(*store) int64) func() float64 {
		return func() float64 {
			t.store.mu.Lock()
			defer t.store.mu.Unlock()
			return float64(get(&t.store))
		}
	}
	f.NewCounterFunc(prometheus.CounterOpts{Name: "shale_cache_evictions_total", Help: "Pages that were evicted to make room for others.", ConstLabels: tier},
		locked(func(s *store) int64 { return s.evicted }))
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_cache_bytes", Help: "Bytes in the cache.", ConstLabels: tier},
		locked(func(s *store) int64 { return s.bytes }))
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_cache_results", Help: "Kept results.", ConstLabels: tier},
		locked(func(s *store) int64 { return int64(len(s.entries)) }))
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_cache_limit_bytes", Help: "Bytes that the cache may hold.", ConstLabels: tier},
		func() float64 { return float64(t.store.most) })
	return m
}

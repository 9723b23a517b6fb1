package memcached

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The reasons for which a value is not stored.
const (
	refusedOut    = "out"    // the server is left alone, or none is known
	refusedSize   = "size"   // the value is larger than the server takes
	refusedQueue  = "queue"  // too much waits to be stored
	refusedServer = "server" // the server said no: it has no memory left
	refusedFailed = "failed" // the connection ended, or the time was over
)

type metrics struct {
	hits, misses, waits, bad, stored, written, fresh prometheus.Counter
	refusals                                         map[string]prometheus.Counter
}

func (m *metrics) refused(reason string) { m.refusals[reason].Inc() }

func newMetrics(t *Tier) *metrics {
	f := promauto.With(t.o.Registerer)
	tier := prometheus.Labels{"tier": "memcached"}
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: tier})
	}
	m := &metrics{
		hits:     counter("shale_cache_hits_total", "Pages found in the cache."),
		misses:   counter("shale_cache_misses_total", "Pages that had to be fetched from the next tier."),
		waits:    counter("shale_cache_waits_total", "Pages for which a query waited briefly, because another process was storing them in memcached."),
		stored:   counter("shale_cache_stored_total", "Pages that were stored in memcached."),
		bad:      counter("shale_cache_bad_records_total", "Records of a tier of the cache that could not be read or did not match their checksum, and were fetched from the bucket instead."),
		written:  counter("shale_cache_written_bytes_total", "Bytes that a tier of the cache has written to its disk or its servers."),
		fresh:    counter("shale_cache_fresh_bytes_total", "Bytes of new blocks that a tier of the cache took before a query asked for them."),
		refusals: make(map[string]prometheus.Counter),
	}
	refusals := f.NewCounterVec(prometheus.CounterOpts{
		Name: "shale_cache_refused_total", Help: "Pages that a tier of the cache did not keep, by reason; docs/cache.md lists the reasons.", ConstLabels: tier,
	}, []string{"reason"})
	for _, reason := range []string{refusedOut, refusedSize, refusedQueue, refusedServer, refusedFailed} {
		m.refusals[reason] = refusals.WithLabelValues(reason)
	}
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_cache_queue_bytes", Help: "Memory of the pages that wait to be written to a tier of the cache.", ConstLabels: tier,
	}, func() float64 { return float64(t.queued.Load()) })
	return m
}

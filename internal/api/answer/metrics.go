package answer

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	hits, misses, joined, evicted prometheus.Counter
	stale                         map[string]prometheus.Counter // by cause
}

func newMetrics(t *Tier) *metrics {
	f := promauto.With(t.o.Registerer)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		hits:    counter("shale_answers_hits_total", "Requests whose whole response was kept from an earlier one."),
		misses:  counter("shale_answers_misses_total", "Requests that may have a kept response and had none."),
		joined:  counter("shale_answers_joined_total", "Requests that got the response to an equal request that was running."),
		evicted: counter("shale_answers_evictions_total", "Kept responses that were evicted to make room for others."),
		stale:   make(map[string]prometheus.Counter),
	}
	stale := f.NewCounterVec(prometheus.CounterOpts{
		Name: "shale_answers_stale_total", Help: "Kept responses that were requested but out of date, by cause: rows (new in their range), lists (of series changed), whole (catalogue or deletion), expired (retention), unknown (another server cannot tell; it stays kept).",
	}, []string{"cause"})
	for _, c := range t.o.Causes {
		m.stale[c] = stale.WithLabelValues(c)
	}
	gauge := func(name, help string, value func() int64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			t.mu.Lock()
			defer t.mu.Unlock()
			return float64(value())
		})
	}
	gauge("shale_answers_bytes", "Memory of kept responses, in all their encodings.", func() int64 { return t.bytes })
	gauge("shale_answers_limit_bytes", "Memory that kept responses may take.", func() int64 { return t.o.MaxBytes })
	gauge("shale_answers_entries", "Kept responses.", func() int64 { return int64(len(t.entries)) })
	return m
}

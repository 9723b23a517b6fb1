package curve

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func (s *Sampler) meter() {
	f := promauto.With(s.o.Registerer)
	s.touches = f.NewCounter(prometheus.CounterOpts{Name: "shale_cache_sampled_total", Help: "First touches that were simulated for the curves of the cache."})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_cache_sample_ratio", Help: "Share of the keys that the curves of the cache are made of."}, s.share)
	f.NewCounterFunc(prometheus.CounterOpts{Name: "shale_cache_sample_dropped_total", Help: "First touches of the sample that came faster than they could be simulated."}, func() float64 {
		s.buffer.Lock()
		defer s.buffer.Unlock()
		return float64(s.buffer.dropped)
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_cache_sample_busy_ratio", Help: "Share of a processor that the simulations of the cache take."}, func() float64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.busy
	})
}

package kafka

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestCounterShared: what several roles of a process write is in one counter.
func TestCounterShared(t *testing.T) {
	r, o := prometheus.NewPedanticRegistry(), prometheus.CounterOpts{Name: "records_total", Help: "Records."}
	counter(r, o).Inc()
	counter(r, o).Add(2)
	counter(nil, o).Inc()
	all, err := r.Gather()
	if err != nil || len(all) != 1 || all[0].GetMetric()[0].GetCounter().GetValue() != 3 {
		t.Errorf("the registry has %v: %v", all, err)
	}
}

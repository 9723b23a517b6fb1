package kafka

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestForget: a partition that has left has no lag, and its reader has not failed.
func TestForget(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewReaderMetrics(reg)
	for p := range int32(2) {
		m.lag.WithLabelValues("shale", name(p)).Set(5)
		m.answered.WithLabelValues("shale", name(p)).Set(5)
		m.failed.WithLabelValues("shale", name(p)).Set(1)
	}
	m.Forget("shale", 0)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if len(f.Metric) != 1 || f.Metric[0].Label[0].GetValue() != "1" {
			t.Errorf("%s is left of %v", f.GetName(), f.Metric)
		}
	}
	if len(families) != 3 {
		t.Errorf("%d metrics are left", len(families))
	}
	var none *ReaderMetrics
	none.Forget("shale", 0)
}

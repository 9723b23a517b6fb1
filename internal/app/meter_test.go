package app

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/write"
)

// A hundred tenants have metrics of their own, whatever the number of names.
func TestTenantMeterIsBounded(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newTenantMeter(reg)
	for i := range 100_000 {
		m.Discarded(fmt.Sprint("flood-", i), write.ReasonTooOld, write.Counts{Samples: 1}) // stored nothing
		m.Received(fmt.Sprint("flood-", i), 10)
	}
	if len(m.shown) != 0 || testutil.ToFloat64(m.discardedSamples.WithLabelValues(otherTenants, write.ReasonTooOld)) != 100_000 {
		t.Errorf("%d tenants are shown", len(m.shown))
	}
	for i := range 1000 {
		m.Stored(fmt.Sprint("tenant-", i), write.Counts{Samples: 2, Lines: 1, LineBytes: 5})
	}
	m.Discarded("tenant-1", write.ReasonSampleRate, write.Counts{Samples: 3})
	m.Discarded("tenant-999", write.ReasonSampleRate, write.Counts{Lines: 4})
	if n, err := testutil.GatherAndCount(reg, "shale_tenant_samples_total"); err != nil || n != maxShownTenants+1 {
		t.Errorf("%d series: %v", n, err)
	}
	for _, c := range []struct {
		got  prometheus.Counter
		want float64
	}{
		{m.samples.WithLabelValues("tenant-1"), 2}, {m.lines.WithLabelValues("tenant-1"), 1}, {m.lineBytes.WithLabelValues("tenant-1"), 5},
		{m.samples.WithLabelValues(otherTenants), 1800}, {m.requests.WithLabelValues(otherTenants), 100_000}, {m.requestBytes.WithLabelValues(otherTenants), 1e6},
		{m.discardedSamples.WithLabelValues("tenant-1", write.ReasonSampleRate), 3}, {m.discardedLines.WithLabelValues(otherTenants, write.ReasonSampleRate), 4},
	} {
		if got := testutil.ToFloat64(c.got); got != c.want {
			t.Errorf("%s is %v, want %v", c.got.Desc(), got, c.want)
		}
	}
	alloctest.AtMost(t, 0, 100, func() {
		m.Stored("tenant-1", write.Counts{Samples: 1})
		m.Received("tenant-1", 1)
	})
}

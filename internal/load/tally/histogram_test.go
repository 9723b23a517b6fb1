package tally

import (
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h Durations
	if h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
	for us := 1; us <= 100_000; us++ {
		h.Observe(time.Duration(us) * time.Microsecond)
	}
	for q, want := range map[float64]time.Duration{0.5: 50 * time.Millisecond, 0.9: 90 * time.Millisecond, 0.99: 99 * time.Millisecond, 0.00005: 6 * time.Microsecond} {
		if got := h.Quantile(q); got < want || float64(got) > float64(want)*1.04 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if h.Max() != 100*time.Millisecond || h.Quantile(1) != h.Max() {
		t.Errorf("max %v, quantile 1 %v", h.Max(), h.Quantile(1))
	}
	for b := range histogramBuckets - 1 {
		if got := bucketOf(uint64(upperBound(b).Microseconds())); got != b {
			t.Fatalf("upper bound %v of bucket %d lies in %d", upperBound(b), b, got)
		}
	}
	h.Observe(1 << 62) // beyond the last bucket
}

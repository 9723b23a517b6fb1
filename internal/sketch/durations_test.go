package sketch

import (
	"testing"
	"time"
)

// TestDurations: a quantile is at most a step too long, and later times outweigh earlier ones.
func TestDurations(t *testing.T) {
	d := Durations{Least: time.Millisecond, Few: 50, Most: 4000}
	for range d.Few - 1 {
		d.Add(time.Second)
	}
	if got, ok := d.Quantile(0.5); ok {
		t.Errorf("%s of too few", got)
	}
	for round := range 3 {
		unit := time.Duration(1+9*round) * time.Millisecond
		for i := range 20_000 {
			d.Add(time.Duration(i%1000) * unit)
		}
		for _, share := range []float64{0.5, 0.95, 0.99} {
			got, ok := d.Quantile(share)
			if want := time.Duration(share * 1000 * float64(unit)); !ok || got < want*97/100 || got > want*112/100 {
				t.Errorf("round %d: quantile %v is %s, %v; want %s", round, share, got, ok, want)
			}
		}
	}
	for range 10 * d.Most {
		d.Add(time.Microsecond)
	}
	if got, _ := d.Quantile(0.99); got > d.Least {
		t.Errorf("old times are not forgotten: %s", got)
	}
	d.Add(time.Since(time.Time{})) // longer than the last step
}

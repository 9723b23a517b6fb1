package sketch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// The counts of random streams are never too high, and too low by no more than the sketch says, which keeps
// its own bound.
func TestFrequent(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		capacity := 2 + r.IntN(100)
		f, want, total := NewFrequent(capacity), map[string]uint64{}, uint64(0)
		for range 5000 {
			name := fmt.Sprint(int(math.Exp(r.Float64() * 8)))
			n := uint64(1 + r.IntN(3))
			f.Add([]byte(name), n)
			want[name] += n
			total += n
			if f.Len() > capacity {
				t.Fatalf("seed %d: %d names of %d", seed, f.Len(), capacity)
			}
		}
		if f.Total() != total || f.Undercount() > 2*total/uint64(capacity) {
			t.Errorf("seed %d: total %d of %d, undercount %d with a capacity of %d", seed, f.Total(), total, f.Undercount(), capacity)
		}
		for name, n := range want {
			if got := f.Count(name); got > n || n-got > f.Undercount() {
				t.Errorf("seed %d: %s has %d, got %d with an undercount of %d", seed, name, n, got, f.Undercount())
			}
		}
	}
}

func TestFrequentIsExactWhileItFits(t *testing.T) {
	f := NewFrequent(10)
	for i := range 10 {
		f.Add([]byte{byte('a' + i)}, uint64(i+1))
	}
	if most := f.Most(2); f.Undercount() != 0 || len(most) != 2 || most[0] != (Counted{"j", 10}) || most[1] != (Counted{"i", 9}) {
		t.Errorf("%v, undercount %d", most, f.Undercount())
	}
}

// Five standard errors: the hash is fixed, so the test passes always or never.
func TestDistinct(t *testing.T) {
	var d Distinct
	for i := range 200_000 {
		d.Add(fmt.Append(nil, "thing ", i))
		d.Add(fmt.Append(nil, "thing ", i/2))
		n := i + 1
		switch {
		case n == exactly && (!d.Exact() || d.Count() != exactly):
			t.Errorf("%d of %d things", d.Count(), n)
		case n&(n-1) == 0 && n > exactly || n%50_000 == 0:
			if got := float64(d.Count()); math.Abs(got-float64(n)) > 5*StandardError*float64(n) {
				t.Errorf("%v of %d things", got, n)
			}
		}
	}
	if (&Distinct{}).Count() != 0 {
		t.Error("an empty sketch counts something")
	}
}

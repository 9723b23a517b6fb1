package plot

import (
	"fmt"
	"math"
	"strings"
)

// ticks returns round numbers from 0 up to the first that is not below most: about n steps of 1, 2 or 5 times
// a power of ten.
func ticks(most float64, steps int) []float64 {
	if !(most > 0) || math.IsInf(most, 0) {
		most = 1
	}
	raw := most / float64(steps)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, f := range []float64{1, 2, 5} {
		if f*power >= raw*0.999 {
			step = f * power
			break
		}
	}
	var all []float64
	for i := 0; ; i++ {
		v := float64(i) * step
		all = append(all, v)
		if v >= most*0.999 {
			return all
		}
	}
}

// Number writes a number with a prefix of thousands.
func Number(v float64) string {
	for _, p := range []struct {
		from float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= p.from {
			return short(v/p.from) + p.name
		}
	}
	return short(v)
}

// short writes the needed digits of a tick.
func short(v float64) string {
	s := fmt.Sprintf("%.4f", v)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

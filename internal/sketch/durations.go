package sketch

import (
	"math"
	"time"
)

// A step of Durations ends 10 % above its beginning. With a Least of 20 µs, the last one begins at half an
// hour.
const (
	durationStep  = 1.1
	durationSteps = 192
)

// Durations tells how long recent requests took: it counts them by the logarithm of their time, and forgets
// old ones by halves.
type Durations struct {
	// Least is the upper end of the first step: shorter times are not told apart.
	Least time.Duration
	// Few is how many times must be known before there is a quantile.
	Few uint32
	// Most is how many times have the same weight. When it is reached, all count half.
	Most uint32

	counts [durationSteps]uint32
	total  uint32
}

// Add counts a time.
func (d *Durations) Add(took time.Duration) {
	i := 0
	if took > d.Least {
		i = int(math.Log(float64(took)/float64(d.Least))/math.Log(durationStep)) + 1
	}
	d.counts[min(i, durationSteps-1)]++
	if d.total++; d.total < d.Most {
		return
	}
	d.total = 0
	for i := range d.counts {
		d.counts[i] /= 2
		d.total += d.counts[i]
	}
}

// Quantile returns the time within which a share of the requests ended, at most 10 % too long. It returns
// false if it knows too few.
func (d *Durations) Quantile(share float64) (time.Duration, bool) {
	if d.total < d.Few {
		return 0, false
	}
	left := uint32(math.Ceil(share * float64(d.total)))
	for i, n := range d.counts {
		if n >= left {
			return time.Duration(float64(d.Least) * math.Pow(durationStep, float64(i))), true
		}
		left -= n
	}
	return 0, false
}

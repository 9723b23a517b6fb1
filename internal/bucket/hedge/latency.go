package hedge

import (
	"math"
	"time"
)

const (
	// leastLatency is the lower end of the first step, and step the ratio of the ends of each.
	leastLatency, step = time.Millisecond, 1.1
	// fewest is how many reads must be known before any is slow. After most of them all count half, so that
	// older ones are forgotten.
	fewest, most = 50, 4000
)

// latencies counts reads by the logarithm of the time that they took.
type latencies struct {
	counts [128]uint32 // up to 3 minutes
	total  uint32
}

func (l *latencies) add(took time.Duration) {
	i := 0
	if took > leastLatency {
		i = int(math.Log(float64(took)/float64(leastLatency))/math.Log(step)) + 1
	}
	l.counts[min(i, len(l.counts)-1)]++
	if l.total++; l.total < most {
		return
	}
	l.total = 0
	for i := range l.counts {
		l.counts[i] /= 2
		l.total += l.counts[i]
	}
}

// quantile returns the time within which a share of the reads ended, at most 10 % too long. It returns false
// if too few reads are known.
func (l *latencies) quantile(share float64) (time.Duration, bool) {
	if l.total < fewest {
		return 0, false
	}
	left := uint32(math.Ceil(share * float64(l.total)))
	for i, n := range l.counts {
		if n >= left {
			return time.Duration(float64(leastLatency) * math.Pow(step, float64(i))), true
		}
		left -= n
	}
	return 0, false
}

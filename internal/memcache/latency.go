package memcache

import (
	"math"
	"sync"
	"time"
)

const (
	// leastLatency is the lower end of the first step, and step the ratio of the ends of each.
	leastLatency, step = 20 * time.Microsecond, 1.15
	// fewest is how many batches must be known before their times are used. After most of them all count half,
	// so that older ones are forgotten.
	fewest, most = 20, 1000
)

// latencies counts batches by the logarithm of the time that they took.
type latencies struct {
	mu     sync.Mutex
	counts [96]uint32 // up to 10 s
	total  uint32
}

func (l *latencies) add(took time.Duration) {
	i := 0
	if took > leastLatency {
		i = int(math.Log(float64(took)/float64(leastLatency))/math.Log(step)) + 1
	}
	l.mu.Lock()
	defer l.mu.Unlock()
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

// quantile returns the time within which a share of the batches ended, at most 15 % too long. It returns
// false if too few are known.
func (l *latencies) quantile(share float64) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
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

package pace

import (
	"math"
	"time"

	"github.com/shaledb/shale/internal/bucket"
)

const (
	// The limit begins with firstConcurrent and never falls below leastConcurrent.
	firstConcurrent, leastConcurrent = 32, 4
	// A window ends after windowTime, once it has windowResponses.
	windowTime, windowResponses = time.Second, 16
	// slower is how many times slower than usual responses become before the limit falls, and cut the least
	// factor by which it falls.
	slower, cut = 2.0, 0.7
	// drift is the share by which the usual latency rises in a window in which responses were slower, so that
	// a store that has become slower for good is not held down.
	drift = 0.02
	// Latencies below floor count as floor: a local disk varies between microseconds and milliseconds.
	floor = 5 * time.Millisecond
)

// concurrency is the limit of requests at one time.
//
// Latencies are compared within classes of size, as geometric means: a stalled request among a hundred hardly
// moves them.
type concurrency struct {
	limit, most float64
	running     int
	busiest     int // most that ran in this window
	throttled   bool
	began       time.Time
	responses   int
	sizes       [bucket.SizeClasses]latency
}

// latency is the latency of responses of a class of size, as logarithms of seconds.
type latency struct {
	usual float64
	known bool
	sum   float64
	n     int
}

func newConcurrency(most int) concurrency {
	return concurrency{limit: min(firstConcurrent, float64(most)), most: float64(most)}
}

func (c *concurrency) free() bool { return c.running < int(c.limit) }

func (c *concurrency) start() {
	c.running++
	c.busiest = max(c.busiest, c.running)
}

// observe counts a response.
func (c *concurrency) observe(now time.Time, bytes int64, took time.Duration) {
	l := &c.sizes[bucket.SizeClass(bytes)]
	l.sum += math.Log(max(took, floor).Seconds())
	l.n++
	c.responses++
	c.turn(now)
}

// turn ends the window if it is over, and moves the limit.
func (c *concurrency) turn(now time.Time) {
	if c.began.IsZero() {
		c.began = now
	}
	if now.Sub(c.began) < windowTime || c.responses < windowResponses && !c.throttled {
		return
	}
	slowdown := c.slowdown()
	switch {
	case c.throttled:
		c.limit *= cut
	case slowdown > slower:
		c.limit *= max(cut, slower/slowdown)
	case float64(c.busiest) >= 0.8*math.Floor(c.limit):
		c.limit += max(1, c.limit/10)
	}
	c.limit = min(max(c.limit, leastConcurrent), c.most)
	c.began, c.responses, c.throttled, c.busiest = now, 0, false, c.running
}

// slowdown compares the responses of the window with usual ones, and forgets them.
func (c *concurrency) slowdown() float64 {
	var sum, weight float64
	for i := range c.sizes {
		l := &c.sizes[i]
		if l.n == 0 {
			continue
		}
		mean := l.sum / float64(l.n)
		switch {
		case !l.known || mean < l.usual:
			l.usual, l.known = mean, true
		default:
			sum += (mean - l.usual) * float64(l.n)
			l.usual = min(mean, l.usual+drift)
		}
		weight += float64(l.n)
		l.sum, l.n = 0, 0
	}
	if weight == 0 {
		return 1
	}
	return math.Exp(sum / weight)
}

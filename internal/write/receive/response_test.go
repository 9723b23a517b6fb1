package receive

import (
	"testing"
	"time"
)

func TestRetrySeconds(t *testing.T) {
	for _, c := range []struct {
		wait time.Duration
		dice float64
		want int
	}{
		{time.Millisecond, 0, 1}, {time.Second, 0.99, 1}, {5 * time.Second, 0, 5}, {5 * time.Second, 0.99, 7}, {1500 * time.Millisecond, 0, 2},
		{30 * time.Second, 0.99, 45}, {time.Minute, 0, 60},
	} {
		if got := retrySeconds(c.wait, c.dice); got != c.want {
			t.Errorf("%v, %v: %d, want %d", c.wait, c.dice, got, c.want)
		}
	}
}

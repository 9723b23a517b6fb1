package pace

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

func TestSchedule(t *testing.T) {
	now := time.Unix(1_700_000_000, 500_000_000)
	for name, c := range map[string]struct {
		timing   Timing
		series   int64
		unit     time.Duration
		start    time.Time
		step     time.Duration
		interval time.Duration
	}{
		"interval": {Timing{Interval: 10 * time.Second, Rounds: 6}, 100, time.Millisecond,
			now, 10 * time.Second, 10 * time.Second},
		"rate, every round in its own second": {Timing{Rate: 200, Duration: 10 * time.Second}, 100, time.Second,
			now.Add(-21 * 500 * time.Millisecond), time.Second, 500 * time.Millisecond},
		"as fast as it goes, rounds": {Timing{Rounds: 60}, 100, time.Second,
			now.Add(-60 * time.Second), time.Second, 0},
		"as fast as it goes, duration": {Timing{Duration: time.Second}, 100, time.Millisecond,
			now.Add(-time.Hour), time.Second, 0},
		"given": {Timing{Rounds: 2, Start: now.Add(-24 * time.Hour), Step: time.Minute}, 100, time.Second,
			now.Add(-24 * time.Hour), time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := c.timing.Schedule(now, c.series, c.unit)
			if err != nil {
				t.Fatal(err)
			}
			want := Timeline{Start: c.start.Truncate(c.unit).UnixNano(), Step: int64(c.step)}
			if s.Timeline != want || s.Interval != c.interval {
				t.Errorf("%+v, interval %v; want %+v, %v", s.Timeline, s.Interval, want, c.interval)
			}
		})
	}
	for name, timing := range map[string]Timing{
		"two paces": {Rate: 1, Interval: 1}, "negative": {Rounds: -1}, "step": {Step: 1500 * time.Millisecond},
		"before 1970": {Start: time.Unix(-1, 0)}, "too many rounds": {Rounds: 2_000_000_000},
	} {
		if _, err := timing.Schedule(now, 1, time.Second); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDue checks that a round is spread over its interval, and that generated time never runs into the
// future.
func TestDue(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s, _ := Timing{Interval: 10 * time.Second}.Schedule(now, 100, time.Second)
	if got := s.due(2, 5, 10); !got.Equal(now.Add(25 * time.Second)) {
		t.Errorf("due %v", got)
	}
	s, _ = Timing{Start: now.Add(-10 * time.Second), Step: 10 * time.Second}.Schedule(now, 100, time.Second)
	if got := s.due(1, 0, 1); !got.Equal(now) {
		t.Errorf("due %v", got)
	}
	if got := s.due(3, 0, 1); !got.Equal(now.Add(20 * time.Second)) {
		t.Errorf("round in the future is due %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Wait(ctx, 0, 0, 1); err == nil {
		t.Error("waits for a load that has ended")
	}
}

func TestTimelineRound(t *testing.T) {
	tl := Timeline{Start: 100e9, Step: 10e9}
	for ns, want := range map[int64]int{100e9: 0, 130e9: 3} {
		if r, ok := tl.Round(ns); !ok || r != want {
			t.Errorf("%d: round %d, %v", ns, r, ok)
		}
	}
	for _, ns := range []int64{90e9, 101e9, 99_999_999_999} {
		if r, ok := tl.Round(ns); ok {
			t.Errorf("%d: round %d", ns, r)
		}
	}
}

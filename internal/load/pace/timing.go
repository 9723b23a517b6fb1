package pace

import (
	"context"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Timing says how fast a load is sent, for how long, and which timestamps its samples have.
type Timing struct {
	// Rate is in samples a second, Interval the time between two rounds. At most one is set; with neither,
	// rounds follow each other as fast as the server accepts them.
	Rate     float64
	Interval time.Duration
	// Rounds and Duration end the load; with neither it goes on until its context ends.
	Rounds   int
	Duration time.Duration
	// Start is the time of the samples of round 0, Step the time from one round to the next. If Start is zero,
	// the last round has the current time; if Step is zero, it is the interval.
	Start time.Time
	Step  time.Duration
}

// Timeline gives each round of a load its time, in Unix nanoseconds.
type Timeline struct {
	Start int64 `json:"start"`
	Step  int64 `json:"step"`
}

// At returns the time of the samples of a round.
func (t Timeline) At(round int) int64 { return t.Start + int64(round)*t.Step }

// Round returns the round whose samples have the given time.
func (t Timeline) Round(ns int64) (int, bool) {
	d := ns - t.Start
	return int(d / t.Step), d >= 0 && d%t.Step == 0
}

// Schedule says when each part of each round is due. It is an open loop: due times do not depend on how fast
// the server responds, and the load catches up after a delay.
type Schedule struct {
	Timeline
	Begin    time.Time
	Interval time.Duration // 0: everything is due at once
	Rounds   int           // 0: no end
	duration time.Duration // 0: no end
	// hold keeps rounds that are generated faster than real time out of the future.
	hold bool
	// Ahead is how far after its round the timestamp of a sample may be.
	Ahead time.Duration
}

// backlog is how far back generated time begins if neither the pace nor the number of rounds is known.
const backlog = time.Hour

// Schedule fixes the schedule of a load of the given series that begins now. The times of its samples are
// multiples of unit. Its error is of class [model.ErrInvalid].
func (t Timing) Schedule(now time.Time, series int64, unit time.Duration) (Schedule, error) {
	switch {
	case !(t.Rate >= 0) || t.Interval < 0 || t.Duration < 0 || t.Rounds < 0 || t.Step < 0:
		return Schedule{}, fmt.Errorf("%w: load: rate, interval, duration, rounds and step must not be negative", model.ErrInvalid)
	case t.Rate > 0 && t.Interval > 0:
		return Schedule{}, fmt.Errorf("%w: load: either a rate or an interval sets the pace, not both", model.ErrInvalid)
	case t.Step%unit != 0:
		return Schedule{}, fmt.Errorf("%w: load: step %v: want a multiple of %v", model.ErrInvalid, t.Step, unit)
	}
	s := Schedule{Begin: now, Interval: t.Interval, Rounds: t.Rounds, duration: t.Duration}
	if t.Rate > 0 {
		s.Interval = max(1, time.Duration(float64(series)/t.Rate*1e9))
	}
	step := t.Step
	if step == 0 {
		step = time.Second
		if s.Interval > 0 {
			step = (s.Interval + unit - 1) / unit * unit
		}
	}
	start := t.Start
	if start.IsZero() {
		start = now.Add(-t.span(s.Interval, step))
	}
	if start.Before(time.Unix(0, 0)) {
		return Schedule{}, fmt.Errorf("%w: load: the first samples would have the time %v; want 1970 or later", model.ErrInvalid, start.UTC().Format(time.RFC3339))
	}
	s.hold = !start.After(now)
	s.Timeline = Timeline{Start: start.UnixNano() / int64(unit) * int64(unit), Step: int64(step)}
	return s, nil
}

// span returns how far generated time will outrun the clock.
func (t Timing) span(interval, step time.Duration) time.Duration {
	rounds := time.Duration(t.Rounds)
	if rounds == 0 {
		switch {
		case interval == 0:
			return backlog
		case t.Duration == 0:
			return max(0, (step-interval)*time.Duration(backlog/interval))
		}
		rounds = t.Duration/interval + 1
	}
	return max(0, rounds*(step-interval))
}

// due returns when the i-th of n parts of a round is to be sent.
func (s *Schedule) due(round int, i, n int64) time.Time {
	at := s.Begin
	if s.Interval > 0 {
		at = at.Add(time.Duration(round)*s.Interval + time.Duration(float64(s.Interval)*float64(i)/float64(n)))
	}
	if stamp := time.Unix(0, s.At(round)+int64(s.Ahead)); s.hold && stamp.After(at) {
		at = stamp
	}
	return at
}

// Wait waits until a part is due and returns its delay.
func (s *Schedule) Wait(ctx context.Context, round int, i, n int64) (lag time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	due := s.due(round, i, n)
	left := time.Until(due)
	if left <= 0 {
		if s.Interval == 0 {
			return 0, nil
		}
		return -left, nil
	}
	return 0, Sleep(ctx, left)
}

func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Within returns a context that ends with the load.
func (s *Schedule) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.duration == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, s.Begin.Add(s.duration))
}

// More reports whether a round belongs to the load.
func (s *Schedule) More(round int) bool { return s.Rounds == 0 || round < s.Rounds }

// Ms returns the time of a round in Unix milliseconds.
func (t Timeline) Ms(round int) int64 { return t.At(round) / int64(time.Millisecond) }

// Lateness is a share of samples that are sent after newer ones: later by an eighth, a quarter, a half or all
// of By.
type Lateness struct {
	Share float64       `json:"share"`
	By    time.Duration `json:"by"`
}

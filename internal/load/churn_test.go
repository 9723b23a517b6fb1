package load

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

func TestCycles(t *testing.T) {
	const s = int64(time.Second)
	c := course{Churn: Churn{SeriesInterval: 10 * time.Second, Relabel: Spread{SpreadStagger, 3 * time.Second}, StaleMarkers: true}, Timeline: Timeline{Start: 100 * s, Step: s}}
	for _, x := range []struct {
		target int
		at     int64
		cycle  int
	}{{0, 100, 0}, {0, 109, 0}, {0, 110, 1}, {0, 119, 1}, {0, 120, 2}, {1, 112, 0}, {1, 113, 1}, {1, 122, 1}, {2, 110, 0}, {2, 115, 0}, {2, 116, 1}, {0, 50, 0}} {
		if got := c.cycle(x.target, x.at*s); got != x.cycle {
			t.Errorf("target %d at %d s: cycle %d, want %d", x.target, x.at, got, x.cycle)
		}
	}
	if cycle, ok := c.ended(1, 13); !ok || cycle != 0 {
		t.Errorf("round 13 ends cycle %d, %v", cycle, ok)
	}
	for _, round := range []int{0, 12, 14} {
		if _, ok := c.ended(1, round); ok {
			t.Errorf("round %d ends a cycle", round)
		}
	}
	m := c.moment(1, 1, 15)
	if !m.fresh || m.tick != 2 || m.born != 113*s || m.cycle != 1 {
		t.Errorf("%+v", m)
	}
	c.Rollout = 1500 * time.Millisecond
	for target, want := range []int{0, 2, 3, 5} {
		if got := c.first(target); got != want {
			t.Errorf("target %d begins with round %d, want %d", target, got, want)
		}
	}
	if m := c.moment(2, 2, 4); !m.fresh || m.tick != 1 || m.born != 103*s {
		t.Errorf("%+v", m)
	}
}

// TestValuesStay: within the interval of values, and only there, rounds have one value.
func TestValuesStay(t *testing.T) {
	c := course{Churn: Churn{ValueInterval: 30 * time.Second}, Timeline: Timeline{Start: 0, Step: 10e9}}
	var ticks []uint64
	for round := range 9 {
		m := c.moment(0, 0, round)
		ticks = append(ticks, m.tick)
	}
	for i, tick := range ticks {
		if tick != uint64(i/3) {
			t.Errorf("ticks %v", ticks)
		}
	}
}

// TestCountersBeginAnew: in each cycle counters begin below one step and never fall, and they say since when.
func TestCountersBeginAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Fleet{Seed: rapid.Uint64().Draw(t, "seed"), Targets: 3, Metrics: 1, Series: 1, Name: "m", Value: Counter}
		f.Churn = Churn{SeriesInterval: 7 * time.Second, Relabel: Spread{SpreadUniform, 20 * time.Second}, Rollout: 2500 * time.Millisecond}
		if rapid.Bool().Draw(t, "values stay") {
			f.Churn.ValueInterval = 2 * time.Second
		}
		c := f.course(Timeline{Start: 1_700_000_000e9, Step: 1e9})
		for target := range f.Targets {
			last, cycle := 0.0, -1
			for round := c.first(target); round < 50; round++ {
				m := c.moment(target, int64(target), round)
				v := math.Float64frombits(f.Value.Bits(&m.instant, uint64(target)))
				if m.cycle != cycle && m.fresh && v >= 2*counterStep || m.cycle == cycle && v < last {
					t.Fatalf("target %d, round %d: %v after %v, cycle %d after %d", target, round, v, last, m.cycle, cycle)
				}
				if m.startMs() > m.ns/1e6 || m.fresh && m.ns-m.born > 60e9 {
					t.Fatalf("born at %d, sampled at %d", m.born, m.ns)
				}
				last, cycle = v, m.cycle
			}
		}
	})
}

func TestChurnCheck(t *testing.T) {
	for _, c := range []Churn{
		{ValueInterval: -1}, {SeriesInterval: time.Millisecond}, {Jitter: time.Microsecond}, {Rollout: 1 << 60}, {Relabel: Spread{SpreadStagger, 1 << 60}},
		{Relabel: Spread{SpreadUniform, 0}}, {Relabel: Spread{SpreadNone, 1}},
	} {
		if err := c.check(1000); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%+v passes: %v", c, err)
		}
	}
	l := small(t, "http://x", Timing{Interval: time.Second, Rounds: 1})
	l.Fleet.Churn.Jitter = time.Second
	if _, _, err := l.Run(t.Context()); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a jitter of a whole step: %v", err)
	}
	l.Fleet.Churn.Jitter, l.Fleet.StartTimes = 0, true
	if err := l.Check(); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("start timestamps in version 1: %v", err)
	}
	l.Fleet.StartTimes, l.Disorder.Twice = false, 2
	if err := l.Check(); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a share of 2: %v", err)
	}
}

// TestShares: shares of late and repeated samples, and of exemplars, are about what is asked for.
func TestShares(t *testing.T) {
	l := benchLoad(V2, Snappy, Counter)
	l.Fleet.Exemplars = 0.1
	l.Disorder = Disorder{Late: Lateness{0.2, 8 * time.Second}, Twice: 0.05}
	b := newBody(l)
	var sum contents
	for batch := range 25 {
		_, _, c := b.fill(batch, 100)
		sum.samples, sum.late, sum.twice, sum.exemplars = sum.samples+c.samples, sum.late+c.late, sum.twice+c.twice, sum.exemplars+c.exemplars
	}
	near := func(what string, got int, share float64) {
		if want := share * 50_000; float64(got) < 0.9*want || float64(got) > 1.1*want {
			t.Errorf("%s: %d of 50000, want %v", what, got, share)
		}
	}
	near("late", sum.late, 0.2)
	near("twice", sum.twice, 0.05*0.8)
	near("exemplars", sum.exemplars, 0.1)
	if want := []int{1, 2, 4, 8}; len(b.lags) != 4 || b.lags[3] != want[3] || b.lags[0] != want[0] {
		t.Errorf("lags %v", b.lags)
	}
}

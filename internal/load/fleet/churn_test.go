package fleet

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/model"
)

func TestCycles(t *testing.T) {
	const s = int64(time.Second)
	c := Course{Churn: Churn{SeriesInterval: 10 * time.Second, Relabel: Spread{SpreadStagger, 3 * time.Second}, StaleMarkers: true}, Timeline: pace.Timeline{Start: 100 * s, Step: s}}
	for _, x := range []struct {
		target int
		at     int64
		cycle  int
	}{{0, 100, 0}, {0, 109, 0}, {0, 110, 1}, {0, 119, 1}, {0, 120, 2}, {1, 112, 0}, {1, 113, 1}, {1, 122, 1}, {2, 110, 0}, {2, 115, 0}, {2, 116, 1}, {0, 50, 0}} {
		if got := c.Cycle(x.target, x.at*s); got != x.cycle {
			t.Errorf("target %d at %d s: cycle %d, want %d", x.target, x.at, got, x.cycle)
		}
	}
	if cycle, ok := c.Ended(1, 13); !ok || cycle != 0 {
		t.Errorf("round 13 ends cycle %d, %v", cycle, ok)
	}
	for _, round := range []int{0, 12, 14} {
		if _, ok := c.Ended(1, round); ok {
			t.Errorf("round %d ends a cycle", round)
		}
	}
	m := c.Moment(1, 1, 15)
	if !m.Fresh || m.Tick != 2 || m.Born != 113*s || m.Cycle != 1 {
		t.Errorf("%+v", m)
	}
	c.Rollout = 1500 * time.Millisecond
	for target, want := range []int{0, 2, 3, 5} {
		if got := c.First(target); got != want {
			t.Errorf("target %d begins with round %d, want %d", target, got, want)
		}
	}
	if m := c.Moment(2, 2, 4); !m.Fresh || m.Tick != 1 || m.Born != 103*s {
		t.Errorf("%+v", m)
	}
}

// TestValuesStay: within the interval of values, and only there, rounds have one value.
func TestValuesStay(t *testing.T) {
	c := Course{Churn: Churn{ValueInterval: 30 * time.Second}, Timeline: pace.Timeline{Start: 0, Step: 10e9}}
	var ticks []uint64
	for round := range 9 {
		m := c.Moment(0, 0, round)
		ticks = append(ticks, m.Tick)
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
		f := Fleet{Seed: rapid.Uint64().Draw(t, "seed"), Targets: 3, Metrics: 1, Series: 1, Name: "m", Value: values.Counter}
		f.Churn = Churn{SeriesInterval: 7 * time.Second, Relabel: Spread{SpreadUniform, 20 * time.Second}, Rollout: 2500 * time.Millisecond}
		if rapid.Bool().Draw(t, "values stay") {
			f.Churn.ValueInterval = 2 * time.Second
		}
		c := f.Course(pace.Timeline{Start: 1_700_000_000e9, Step: 1e9})
		for target := range f.Targets {
			last, cycle := 0.0, -1
			for round := c.First(target); round < 50; round++ {
				m := c.Moment(target, int64(target), round)
				v := math.Float64frombits(f.Value.Bits(&m.Instant, uint64(target)))
				if m.Cycle != cycle && m.Fresh && v >= 2*values.CounterStep || m.Cycle == cycle && v < last {
					t.Fatalf("target %d, round %d: %v after %v, cycle %d after %d", target, round, v, last, m.Cycle, cycle)
				}
				if m.StartMs() > m.Ns/1e6 || m.Fresh && m.Ns-m.Born > 60e9 {
					t.Fatalf("born at %d, sampled at %d", m.Born, m.Ns)
				}
				last, cycle = v, m.Cycle
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
}

package fleet

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/model"
)

func testFleetShape() Fleet {
	return Fleet{Seed: 7, Targets: 12, Metrics: 3, Series: 10, Labels: 12, Name: "load_metric", Value: values.Gauge}
}

func TestFleetCheck(t *testing.T) {
	for _, change := range []func(*Fleet){
		func(f *Fleet) { f.Targets = 0 }, func(f *Fleet) { f.Series = -1 }, func(f *Fleet) { f.Name = "9x" },
		func(f *Fleet) { f.Name = "a b" }, func(f *Fleet) { f.Labels = -1 }, func(f *Fleet) { f.Targets = MaxSeries },
	} {
		f := testFleetShape()
		change(&f)
		if f.Check() == nil {
			t.Errorf("%+v passes", f)
		}
	}
}

func TestAgentsCheck(t *testing.T) {
	good := Agents{Prefix: "a.b-c_d", Agents: 2, Metrics: 1, Connections: 2}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Agents){
		func(a *Agents) { a.Prefix = "" }, func(a *Agents) { a.Prefix = "a..b" }, func(a *Agents) { a.Prefix = "a." },
		func(a *Agents) { a.Prefix = ".a" }, func(a *Agents) { a.Prefix = "a b" }, func(a *Agents) { a.Connections = 3 },
		func(a *Agents) { a.Agents = 0 }, func(a *Agents) { a.Metrics = MaxSeries },
	} {
		a := good
		change(&a)
		if a.Check() == nil {
			t.Errorf("%+v passes", a)
		}
	}
}

// TestLaunches: agents are launched in order, each near its time.
func TestLaunches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Agents{Seed: rapid.Uint64().Draw(t, "seed"), Agents: 30, Metrics: 1, Connections: 30, Prefix: "a"}
		a.Spawn.Interval = time.Duration(rapid.Int64Range(1, 20e9).Draw(t, "interval"))
		a.Spawn.Jitter = time.Duration(rapid.Int64Range(0, int64(a.Spawn.Interval)).Draw(t, "jitter"))
		a.Spawn.Flush = time.Duration(rapid.Int64Range(1e9, 20e9).Draw(t, "flush"))
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		timeline := pace.Timeline{Start: 1_700_000_000e9, Step: int64(a.Spawn.Flush) / 1e9 * 1e9}
		last := time.Duration(0)
		for agent := range a.Agents {
			at := a.Launch(agent)
			// One that waits for an earlier one is launched at the latest when that one is.
			if at < last || at < time.Duration(agent)*a.Spawn.Interval-a.Spawn.Jitter || at > time.Duration(agent)*a.Spawn.Interval+a.Spawn.Jitter {
				t.Fatalf("agent %d at %v, the one before at %v", agent, at, last)
			}
			last = at
			if flush := time.Duration(a.First(agent))*a.Spawn.Flush + a.Phase(agent); flush != at+a.Spawn.Flush {
				t.Fatalf("agent %d is launched at %v and flushes at %v", agent, at, flush)
			}
			if s := a.Stamp(timeline, agent, 7); s < timeline.At(7) || s >= timeline.At(8) || s%1e9 != 0 {
				t.Fatalf("agent %d: points of round 7 bear %d", agent, s)
			}
			if c, at := a.Position(timeline, int64(agent), a.First(agent)); c != agent || at != 0 {
				t.Fatalf("agent %d: connection %d, position %d", agent, c, at)
			}
		}
	})
}

func TestAgentsCheckSpawn(t *testing.T) {
	good := Agents{Prefix: "a", Agents: 2, Metrics: 1, Connections: 2, Spawn: Spawn{Interval: 2, Jitter: 2, Flush: 1}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Agents){
		func(a *Agents) { a.Spawn.Jitter = 3 }, func(a *Agents) { a.Spawn.Flush = 0 }, func(a *Agents) { a.Connections = 1 },
		func(a *Agents) { a.Spawn.Interval = -1 }, func(a *Agents) { a.Value = values.HistogramInt }, func(a *Agents) { a.Spawn.Interval = 1 << 62 },
		func(a *Agents) { a.Protocol, a.UDP = Pickle, true },
	} {
		a := good
		change(&a)
		if err := a.Check(); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%+v passes: %v", a, err)
		}
	}
}

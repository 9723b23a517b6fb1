package load

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

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
		timeline := Timeline{Start: 1_700_000_000e9, Step: int64(a.Spawn.Flush) / 1e9 * 1e9}
		last := time.Duration(0)
		for agent := range a.Agents {
			at := a.launch(agent)
			// One that waits for an earlier one is launched at the latest when that one is.
			if at < last || at < time.Duration(agent)*a.Spawn.Interval-a.Spawn.Jitter || at > time.Duration(agent)*a.Spawn.Interval+a.Spawn.Jitter {
				t.Fatalf("agent %d at %v, the one before at %v", agent, at, last)
			}
			last = at
			if flush := time.Duration(a.first(agent))*a.Spawn.Flush + a.phase(agent); flush != at+a.Spawn.Flush {
				t.Fatalf("agent %d is launched at %v and flushes at %v", agent, at, flush)
			}
			if s := a.stamp(timeline, agent, 7); s < timeline.At(7) || s >= timeline.At(8) || s%1e9 != 0 {
				t.Fatalf("agent %d: points of round 7 bear %d", agent, s)
			}
			if c, at := a.position(timeline, int64(agent), a.first(agent)); c != agent || at != 0 {
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
		func(a *Agents) { a.Spawn.Interval = -1 }, func(a *Agents) { a.Value = HistogramInt }, func(a *Agents) { a.Spawn.Interval = 1 << 62 },
		func(a *Agents) { a.Protocol, a.UDP = Pickle, true },
	} {
		a := good
		change(&a)
		if err := a.Check(); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%+v passes: %v", a, err)
		}
	}
}

// TestGraphiteProtocolsVerify sends points in all forms, from agents that are all there and that are launched one by
// one, and reads them back.
func TestGraphiteProtocolsVerify(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Graphite){
		"tagged": func(l *Graphite) { l.Agents.Protocol = Tagged },
		"pickle": func(l *Graphite) { l.Agents.Protocol = Pickle },
		"spawn": func(l *Graphite) {
			l.Agents.Spawn = Spawn{Interval: 150 * time.Millisecond, Jitter: 150 * time.Millisecond, Flush: 100 * time.Millisecond}
		},
		"spawn, pickle, new connections": func(l *Graphite) {
			l.Agents.Spawn = Spawn{Interval: 70 * time.Millisecond, Flush: 100 * time.Millisecond}
			l.Agents.Protocol, l.NewConnections = Pickle, true
		},
		"disorder": func(l *Graphite) { l.Agents.Disorder = Disorder{Late: Lateness{0.2, 3 * time.Second}, Twice: 0.2} },
		"disorder, pickle, one connection": func(l *Graphite) {
			l.Agents.Disorder = Disorder{Late: Lateness{0.2, 3 * time.Second}, Twice: 0.2}
			l.Agents.Protocol, l.Agents.Connections = Pickle, 1
		},
		"disorder, spawn": func(l *Graphite) {
			l.Agents.Disorder = Disorder{Late: Lateness{0.3, 2 * time.Second}, Twice: 0.1}
			l.Agents.Spawn = Spawn{Interval: 150 * time.Millisecond, Jitter: 150 * time.Millisecond, Flush: 100 * time.Millisecond}
		},
		"tagged, new connections": func(l *Graphite) { l.Agents.Protocol, l.NewConnections = Tagged, true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newMemStore()
			srv := store.serve(t)
			l := smallGraphite(t, "", srv.URL, Timing{Rounds: 12, Interval: 100 * time.Millisecond})
			change(l)
			store.pickles = l.Agents.Protocol == Pickle
			l.Target = store.listen(t, "127.0.0.1:0").Addr().String()
			flushes := 12 * 5
			if l.Agents.Spawn.Interval > 0 {
				l.Agents.Connections, flushes = 5, 0
				for agent := range 5 {
					flushes += 12 - l.Agents.first(agent)
				}
			}
			fs := vfs.NewMem()
			var err error
			if l.State, err = CreateState(fs, "state", l.Header()); err != nil {
				t.Fatal(err)
			}
			kept, report, err := l.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := l.State.Close(); err != nil {
				t.Fatal(err)
			}
			loaded, err := LoadState(fs, "state")
			if err != nil {
				t.Fatal(err)
			}
			unique, per := int64(flushes)*20, int64(20*(1+l.Agents.Disorder.Twice))
			if report.Sent != int64(flushes)*per || report.Lost != 0 || report.Received.Points != uint64(report.Sent) {
				t.Errorf("report %+v, received %+v", report, report.Received)
			}
			if l.NewConnections && store.accepted != flushes || !l.NewConnections && store.accepted != l.Agents.Connections {
				t.Errorf("%d connections for %d flushes", store.accepted, flushes)
			}
			for which, s := range map[string]*State{"kept": kept, "loaded": loaded} {
				for _, chunk := range []int64{1 << 40, 100, 1} {
					v := verify(t, srv.URL, s, func(v *Verifier) { v.Chunk = chunk })
					if !v.OK() || v.Compared != unique || v.Counted != unique || v.CountedOf != unique {
						t.Errorf("%s, chunk %d: %+v", which, chunk, v)
					}
				}
			}
			id := store.some()[42]
			delete(store.samples[id], first(store, id))
			if v := verify(t, srv.URL, kept, nil); v.Missing != 1 || v.Short != 1 || v.Wrong+v.Extra+v.Over != 0 {
				t.Errorf("a lost point: %+v", v)
			}
		})
	}
}

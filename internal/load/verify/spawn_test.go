package verify

import (
	"testing"
	"time"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/racetest"
)

// TestGraphiteProtocolsVerify sends points in all forms, from agents that are all there and that are launched
// one by one, and reads them back.
func TestGraphiteProtocolsVerify(t *testing.T) {
	t.Parallel()
	for name, change := range racetest.Only(map[string]func(*send.Graphite){
		"tagged": func(l *send.Graphite) { l.Agents.Protocol = fleet.Tagged },
		"pickle": func(l *send.Graphite) { l.Agents.Protocol = fleet.Pickle },
		"spawn": func(l *send.Graphite) {
			l.Agents.Spawn = fleet.Spawn{Interval: 150 * time.Millisecond, Jitter: 150 * time.Millisecond, Flush: 100 * time.Millisecond}
		},
		"spawn, pickle, new connections": func(l *send.Graphite) {
			l.Agents.Spawn = fleet.Spawn{Interval: 70 * time.Millisecond, Flush: 100 * time.Millisecond}
			l.Agents.Protocol, l.NewConnections = fleet.Pickle, true
		},
		"disorder": func(l *send.Graphite) {
			l.Agents.Disorder = fleet.Disorder{Late: pace.Lateness{Share: 0.2, By: 3 * time.Second}, Twice: 0.2}
		},
		"disorder, pickle, one connection": func(l *send.Graphite) {
			l.Agents.Disorder = fleet.Disorder{Late: pace.Lateness{Share: 0.2, By: 3 * time.Second}, Twice: 0.2}
			l.Agents.Protocol, l.Agents.Connections = fleet.Pickle, 1
		},
		"disorder, spawn": func(l *send.Graphite) {
			l.Agents.Disorder = fleet.Disorder{Late: pace.Lateness{Share: 0.3, By: 2 * time.Second}, Twice: 0.1}
			l.Agents.Spawn = fleet.Spawn{Interval: 150 * time.Millisecond, Jitter: 150 * time.Millisecond, Flush: 100 * time.Millisecond}
		},
		"tagged, new connections": func(l *send.Graphite) { l.Agents.Protocol, l.NewConnections = fleet.Tagged, true },
	}, "tagged", "spawn, pickle, new connections", "disorder, spawn") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newMemStore()
			srv := store.serve(t)
			l := smallGraphite(t, "", srv.URL, pace.Timing{Rounds: 12, Interval: 100 * time.Millisecond})
			change(l)
			store.pickles = l.Agents.Protocol == fleet.Pickle
			l.Target = store.listen(t, "127.0.0.1:0").Addr().String()
			flushes := 12 * 5
			if l.Agents.Spawn.Interval > 0 {
				l.Agents.Connections, flushes = 5, 0
				for agent := range 5 {
					flushes += 12 - l.Agents.First(agent)
				}
			}
			states, report := runAndReload(t, l, &l.State)
			unique, per := int64(flushes)*20, int64(20*(1+l.Agents.Disorder.Twice))
			if report.Sent != int64(flushes)*per || report.Lost != 0 || report.Received.Points != uint64(report.Sent) {
				t.Errorf("report %+v, received %+v", report, report.Received)
			}
			if l.NewConnections && store.accepted != flushes || !l.NewConnections && store.accepted != l.Agents.Connections {
				t.Errorf("%d connections for %d flushes", store.accepted, flushes)
			}
			for which, s := range states {
				for _, chunk := range []int64{1 << 40, 100, 1} {
					v := verify(t, srv.URL, s, func(v *SampleVerifier) { v.Chunk = chunk })
					if !v.OK() || v.Compared != unique || v.Counted != unique || v.CountedOf != unique {
						t.Errorf("%s, chunk %d: %+v", which, chunk, v)
					}
				}
			}
			id := store.some()[42]
			delete(store.samples[id], first(store, id))
			if v := verify(t, srv.URL, states["kept"], nil); v.Missing != 1 || v.Short != 1 || v.Wrong+v.Extra+v.Over != 0 {
				t.Errorf("a lost point: %+v", v)
			}
		})
	}
}

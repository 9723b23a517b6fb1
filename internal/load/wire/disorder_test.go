package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
)

// TestFlushesInDisorder makes all points of a load in disorder. Each must be sent first at its Position, as
// often as it should be, and there must be no others.
func TestFlushesInDisorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rounds = 9
		a := fleet.Agents{Seed: rapid.Uint64().Draw(t, "seed"), Prefix: "a", Agents: rapid.IntRange(1, 4).Draw(t, "agents"), Metrics: rapid.IntRange(1, 12).Draw(t, "metrics")}
		a.Connections = rapid.IntRange(1, a.Agents).Draw(t, "connections")
		a.Disorder = fleet.Disorder{
			Late:  pace.Lateness{Share: rapid.Float64Range(0, 1).Draw(t, "late"), By: time.Duration(rapid.IntRange(0, 5).Draw(t, "by")) * time.Second},
			Twice: rapid.Float64Range(0, 1).Draw(t, "twice"),
		}
		known := rapid.Bool().Draw(t, "rounds known")
		if known {
			a.Disorder.Rounds = rounds
		}
		if rapid.Bool().Draw(t, "spawn") {
			a.Connections, a.Spawn = a.Agents, fleet.Spawn{Interval: 1500 * time.Millisecond, Jitter: time.Second, Flush: time.Second}
		}
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		timeline := pace.Timeline{Start: 1_000e9, Step: 1e9}
		first, times := map[string]uint64{}, map[string]int{}
		made := make([]uint64, a.Connections)
		for c := range a.Connections {
			l := NewPoints(&a, c, timeline)
			for l.Round < rounds {
				line, n := l.Fill(nil, 1, 1<<20, true)
				if n != 1 {
					t.Fatalf("%d points", n)
				}
				if _, ok := first[string(line)]; !ok {
					first[string(line)] = l.Made - 1
				}
				times[string(line)]++
			}
			made[c] = l.Made
			f := a.Flushes(timeline, c)
			if agents := uint64(a.AgentsOf(c)); max(0, rounds-a.First(c)) != f.Reached((l.Made+agents-1)/agents) || l.Made != f.Before(max(0, rounds-a.First(c)))*agents {
				t.Fatalf("connection %d: %d points, reached %d, %d before", c, l.Made, f.Reached((l.Made+agents-1)/agents), f.Before(rounds))
			}
		}
		expected := 0
		for g := range a.Total() {
			agent := int(g) / a.Metrics
			f := a.Flushes(timeline, agent)
			for round := a.First(agent); round < rounds; round++ {
				at := a.At(round)
				line := fmt.Sprintf("%s %s %d\n", a.Path(g), a.Value.AppendText(nil, &at, uint64(g)), a.Stamp(timeline, agent, round)/1e9)
				c, position := a.Position(timeline, g, round)
				flush, _ := f.Sent(agent, int(g)%a.Metrics, round-a.First(agent))
				if flush+a.First(agent) >= rounds {
					if known || position < made[c] {
						t.Fatalf("%q: put off beyond the end, position %d of %d", line, position, made[c])
					}
					continue
				}
				if got, ok := first[line]; !ok || got != position {
					t.Fatalf("%q: at %d, %v, want %d", line, got, ok, position)
				}
				if flush != round-a.First(agent) && times[line] != 1 || times[line] > 2 {
					t.Fatalf("%q comes %d times", line, times[line])
				}
				expected += times[line]
				delete(times, line)
			}
		}
		if len(times) > 0 {
			t.Fatalf("nobody expects %v", times)
		}
	})
}

// TestFlushShares: a tenth of the points late and a twentieth twice is a tenth and a twentieth.
func TestFlushShares(t *testing.T) {
	a := fleet.Agents{Prefix: "a", Agents: 3, Metrics: 200, Connections: 1}
	a.Disorder = fleet.Disorder{Late: pace.Lateness{Share: 0.1, By: 3 * time.Second}, Twice: 0.05}
	l := NewPoints(&a, 0, pace.Timeline{Start: 1_000e9, Step: 1e9})
	var all strings.Builder
	for l.Round < 20 {
		buf, _ := l.Fill(nil, 1000, 1<<20, true)
		all.Write(buf)
	}
	seen, late, twice, newest := map[string]bool{}, 0, 0, map[string]string{}
	for line := range strings.Lines(all.String()) {
		f := strings.Fields(line)
		switch {
		case seen[line]:
			twice++
		case f[2] < newest[f[0]]:
			late++
		default:
			newest[f[0]] = f[2]
		}
		seen[line] = true
	}
	if late < 3*20*17-200 || late > 3*20*17 || twice != 20*10*3 {
		t.Errorf("%d late, %d twice", late, twice)
	}
}

package load

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestFlushesInDisorder makes all points of a load in disorder, and finds each where position says that it is sent
// first, as often as it should be, and none beside.
func TestFlushesInDisorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rounds = 9
		a := Agents{Seed: rapid.Uint64().Draw(t, "seed"), Prefix: "a", Agents: rapid.IntRange(1, 4).Draw(t, "agents"), Metrics: rapid.IntRange(1, 12).Draw(t, "metrics")}
		a.Connections = rapid.IntRange(1, a.Agents).Draw(t, "connections")
		a.Disorder = Disorder{
			Late:  Lateness{rapid.Float64Range(0, 1).Draw(t, "late"), time.Duration(rapid.IntRange(0, 5).Draw(t, "by")) * time.Second},
			Twice: rapid.Float64Range(0, 1).Draw(t, "twice"),
		}
		known := rapid.Bool().Draw(t, "rounds known")
		if known {
			a.Disorder.Rounds = rounds
		}
		if rapid.Bool().Draw(t, "spawn") {
			a.Connections, a.Spawn = a.Agents, Spawn{Interval: 1500 * time.Millisecond, Jitter: time.Second, Flush: time.Second}
		}
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		timeline := Timeline{Start: 1_000e9, Step: 1e9}
		first, times := map[string]uint64{}, map[string]int{}
		made := make([]uint64, a.Connections)
		for c := range a.Connections {
			l := newFeed(&a, c, timeline)
			for l.round < rounds {
				line, n := l.fill(nil, 1, 1<<20, true)
				if n != 1 {
					t.Fatalf("%d points", n)
				}
				if _, ok := first[string(line)]; !ok {
					first[string(line)] = l.made - 1
				}
				times[string(line)]++
			}
			made[c] = l.made
			f := a.flushes(timeline, c)
			if agents := uint64(a.agentsOf(c)); max(0, rounds-a.first(c)) != f.reached((l.made+agents-1)/agents) || l.made != f.before(max(0, rounds-a.first(c)))*agents {
				t.Fatalf("connection %d: %d points, reached %d, %d before", c, l.made, f.reached((l.made+agents-1)/agents), f.before(rounds))
			}
		}
		expected := 0
		for g := range a.Total() {
			agent := int(g) / a.Metrics
			f := a.flushes(timeline, agent)
			for round := a.first(agent); round < rounds; round++ {
				at := a.at(round)
				line := fmt.Sprintf("%s %s %d\n", a.Path(g), a.Value.AppendText(nil, &at, uint64(g)), a.stamp(timeline, agent, round)/1e9)
				c, position := a.position(timeline, g, round)
				flush, _ := f.sent(agent, int(g)%a.Metrics, round-a.first(agent))
				if flush+a.first(agent) >= rounds {
					if known || position < made[c] {
						t.Fatalf("%q: put off beyond the end, position %d of %d", line, position, made[c])
					}
					continue
				}
				if got, ok := first[line]; !ok || got != position {
					t.Fatalf("%q: at %d, %v, want %d", line, got, ok, position)
				}
				if flush != round-a.first(agent) && times[line] != 1 || times[line] > 2 {
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
	a := Agents{Prefix: "a", Agents: 3, Metrics: 200, Connections: 1}
	a.Disorder = Disorder{Late: Lateness{0.1, 3 * time.Second}, Twice: 0.05}
	l := newFeed(&a, 0, Timeline{Start: 1_000e9, Step: 1e9})
	var all strings.Builder
	for l.round < 20 {
		buf, _ := l.fill(nil, 1000, 1<<20, true)
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

package load

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLinesInOrder checks that connections together send every point once, each where position says.
func TestLinesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Agents{Seed: 3, Prefix: "x.y", Agents: rapid.IntRange(1, 9).Draw(t, "agents"), Metrics: rapid.IntRange(1, 30).Draw(t, "metrics"), Value: Gauge}
		a.Connections = rapid.IntRange(1, a.Agents).Draw(t, "connections")
		full := rapid.IntRange(1, 500).Draw(t, "full")
		most := rapid.IntRange(1, 50).Draw(t, "most")
		whole := rapid.Bool().Draw(t, "whole")
		timeline := Timeline{Start: 1_000e9, Step: 10e9}
		var sent [][]string
		for c := range a.Connections {
			l := newFeed(&a, c, timeline)
			var points []string
			for l.round < 3 {
				round, agent := l.round, l.agent
				buf, n := l.fill(nil, most, full, whole)
				got := strings.SplitAfter(string(buf), "\n")
				got = got[:len(got)-1]
				if len(got) != n || n == 0 || n > most || n > 1 && len(buf) > full {
					t.Fatalf("%d lines, said %d, most %d, %d bytes of %d", len(got), n, most, len(buf), full)
				}
				for _, line := range got {
					if !strings.HasSuffix(line, fmt.Sprintf(" %d\n", timeline.At(round)/1e9)) {
						t.Fatalf("round %d: line %q", round, line)
					}
					if !whole && !strings.Contains(line, fmt.Sprintf(".agent.%d.", agent)) {
						t.Fatalf("agent %d: line %q", agent, line)
					}
				}
				points = append(points, got...)
			}
			if uint64(len(points)) != 3*uint64(a.agentsOf(c)*a.Metrics) || l.made != uint64(len(points)) {
				t.Fatalf("connection %d: %d points, want 3 times %d", c, len(points), a.agentsOf(c)*a.Metrics)
			}
			sent = append(sent, points)
		}
		for g := range a.Total() {
			for round := range 3 {
				c, at := a.position(timeline, g, round)
				now := a.at(round)
				v := a.Value.AppendText(nil, &now, uint64(g))
				want := a.Path(g) + " " + string(v) + " " + strconv.FormatInt(timeline.At(round)/1e9, 10) + "\n"
				if sent[c][at] != want {
					t.Fatalf("series %d, round %d: %q, want %q", g, round, sent[c][at], want)
				}
			}
		}
	})
}

func TestAgentsCheck(t *testing.T) {
	good := Agents{Prefix: "a.b-c_d", Agents: 2, Metrics: 1, Connections: 2}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Agents){
		func(a *Agents) { a.Prefix = "" }, func(a *Agents) { a.Prefix = "a..b" }, func(a *Agents) { a.Prefix = "a." },
		func(a *Agents) { a.Prefix = ".a" }, func(a *Agents) { a.Prefix = "a b" }, func(a *Agents) { a.Connections = 3 },
		func(a *Agents) { a.Agents = 0 }, func(a *Agents) { a.Metrics = maxSeries },
	} {
		a := good
		change(&a)
		if a.Check() == nil {
			t.Errorf("%+v passes", a)
		}
	}
}

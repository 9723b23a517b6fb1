package wire

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/values"
)

// TestLinesInOrder checks that connections together send every point once, each where position says.
func TestLinesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := fleet.Agents{Seed: 3, Prefix: "x.y", Agents: rapid.IntRange(1, 9).Draw(t, "agents"), Metrics: rapid.IntRange(1, 30).Draw(t, "metrics"), Value: values.Gauge}
		a.Connections = rapid.IntRange(1, a.Agents).Draw(t, "connections")
		full := rapid.IntRange(1, 500).Draw(t, "full")
		most := rapid.IntRange(1, 50).Draw(t, "most")
		whole := rapid.Bool().Draw(t, "whole")
		timeline := pace.Timeline{Start: 1_000e9, Step: 10e9}
		var sent [][]string
		for c := range a.Connections {
			l := NewPoints(&a, c, timeline)
			var points []string
			for l.Round < 3 {
				round, agent := l.Round, l.Agent
				buf, n := l.Fill(nil, most, full, whole)
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
			if uint64(len(points)) != 3*uint64(a.AgentsOf(c)*a.Metrics) || l.Made != uint64(len(points)) {
				t.Fatalf("connection %d: %d points, want 3 times %d", c, len(points), a.AgentsOf(c)*a.Metrics)
			}
			sent = append(sent, points)
		}
		for g := range a.Total() {
			for round := range 3 {
				c, at := a.Position(timeline, g, round)
				now := a.At(round)
				v := a.Value.AppendText(nil, &now, uint64(g))
				want := a.Path(g) + " " + string(v) + " " + strconv.FormatInt(timeline.At(round)/1e9, 10) + "\n"
				if sent[c][at] != want {
					t.Fatalf("series %d, round %d: %q, want %q", g, round, sent[c][at], want)
				}
			}
		}
	})
}

package load

import (
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func testFleet() Fleet {
	return Fleet{Seed: 7, Targets: 12, Metrics: 3, Series: 10, Labels: 12, Name: "load_metric", Value: Gauge}
}

// TestGolden keeps names and values as they are: a state file of an older build must verify with a newer one.
func TestGolden(t *testing.T) {
	var sb strings.Builder
	f := testFleet()
	for _, g := range []int64{0, 9, 10, 359} {
		fmt.Fprintf(&sb, "%s\n", f.Selector(g))
	}
	for _, m := range []ValueModel{Int100, Counter, Gauge, Random} {
		for round := range uint64(3) {
			at := instant{seed: 7, tick: round}
			fmt.Fprintf(&sb, "%s %d: %s %s\n", m, round, m.AppendText(nil, &at, 0), m.AppendText(nil, &at, 123_456_789))
		}
	}
	l := &RemoteWrite{Fleet: f, Schedule: Schedule{Timeline: Timeline{Start: 1_700_000_000_123e6 - 5e9, Step: 1e9}}}
	raw := unpack(t)(newBody(l).fillSeries(150, 200, 5))
	fmt.Fprintf(&sb, "request of %d bytes, CRC32C %08x\n", len(raw), crc32.Checksum(raw, castagnoli))
	a := Agents{Seed: 7, Prefix: "a.b", Agents: 3, Metrics: 2, Connections: 2, Value: Gauge}
	feed := newFeed(&a, 0, Timeline{Start: 1_700_000_000e9, Step: 10e9})
	lines, _ := feed.fill(nil, 100, 1<<20, true)
	lines, _ = feed.fill(lines, 3, 1<<20, true)
	sb.Write(lines)
	golden(t, "names_and_values.golden", sb.String())
}

// TestTextIsTheSameNumber keeps what goes out as text and what goes out as bits one value.
func TestTextIsTheSameNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := ValueModel(rapid.IntRange(0, int(Const)).Draw(t, "model"))
		at := instant{
			seed: rapid.Uint64().Draw(t, "seed"), tick: rapid.Uint64Range(0, 1<<40).Draw(t, "tick"), fresh: rapid.Bool().Draw(t, "fresh"),
		}
		g := rapid.Uint64Range(0, maxSeries).Draw(t, "series")
		v, err := strconv.ParseFloat(string(m.AppendText(nil, &at, g)), 64)
		if err != nil || math.Float64bits(v) != m.Bits(&at, g) {
			t.Fatalf("text %s, bits of %v: %v", m.AppendText(nil, &at, g), math.Float64frombits(m.Bits(&at, g)), err)
		}
		at.tick++
		next := math.Float64frombits(m.Bits(&at, g))
		switch m {
		case Int100:
			if v < 0 || v > 99 || v != math.Trunc(v) {
				t.Fatalf("int100: %v", v)
			}
		case Counter:
			if next < v {
				t.Fatalf("counter falls from %v to %v", v, next)
			}
		case Gauge, Walk:
			if v < 0 || v > 100 {
				t.Fatalf("%v: %v", m, v)
			}
		case Const:
			if v != next {
				t.Fatalf("const changes from %v to %v", v, next)
			}
		}
	})
}

func TestValuesSpread(t *testing.T) {
	var seen [100]int
	for g := range uint64(10_000) {
		seen[int(math.Float64frombits(Int100.Bits(&instant{seed: 1, tick: g % 7}, g)))]++
	}
	for v, n := range seen {
		if n < 50 || n > 170 {
			t.Errorf("value %d comes %d times in 10000", v, n)
		}
	}
}

func TestFleetCheck(t *testing.T) {
	for _, change := range []func(*Fleet){
		func(f *Fleet) { f.Targets = 0 }, func(f *Fleet) { f.Series = -1 }, func(f *Fleet) { f.Name = "9x" },
		func(f *Fleet) { f.Name = "a b" }, func(f *Fleet) { f.Labels = -1 }, func(f *Fleet) { f.Targets = maxSeries },
	} {
		f := testFleet()
		change(&f)
		if f.Check() == nil {
			t.Errorf("%+v passes", f)
		}
	}
}

package values

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestTextIsTheSameNumber keeps what goes out as text and what goes out as bits one value.
func TestTextIsTheSameNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := ValueModel(rapid.IntRange(0, int(Const)).Draw(t, "model"))
		at := Instant{
			Seed: rapid.Uint64().Draw(t, "seed"), Tick: rapid.Uint64Range(0, 1<<40).Draw(t, "tick"), Fresh: rapid.Bool().Draw(t, "fresh"),
		}
		g := rapid.Uint64Range(0, 1<<40).Draw(t, "series")
		v, err := strconv.ParseFloat(string(m.AppendText(nil, &at, g)), 64)
		if err != nil || math.Float64bits(v) != m.Bits(&at, g) {
			t.Fatalf("text %s, bits of %v: %v", m.AppendText(nil, &at, g), math.Float64frombits(m.Bits(&at, g)), err)
		}
		at.Tick++
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
		seen[int(math.Float64frombits(Int100.Bits(&Instant{Seed: 1, Tick: g % 7}, g)))]++
	}
	for v, n := range seen {
		if n < 50 || n > 170 {
			t.Errorf("value %d comes %d times in 10000", v, n)
		}
	}
}

package series

import (
	"fmt"
	"math"
	"testing"
)

func TestNullIsNotAComputedNaN(t *testing.T) {
	if !IsNull(Null()) {
		t.Error("Null is not null")
	}
	inf := math.Inf(1)
	for _, v := range []float64{inf - inf, 0 * inf, math.NaN(), math.Sqrt(-1)} {
		if IsNull(v) {
			t.Errorf("%x is null", math.Float64bits(v))
		}
	}
}

// The wanted texts are those of Python 3.11.
func TestTexts(t *testing.T) {
	for _, c := range []struct {
		v                        float64
		general, shortest, whole string
	}{
		{5, "5", "5.0", "5"},
		{-0.5, "-0.5", "-0.5", "0"},
		{1e16, "1e+16", "1e+16", "10000000000000000"},
		{123456789, "1.23457e+08", "123456789.0", "123456789"},
		{0.00001, "1e-05", "1e-05", "0"},
		{0.0001, "0.0001", "0.0001", "0"},
		{100000, "100000", "100000.0", "100000"},
		{1.0 / 3, "0.333333", "0.3333333333333333", "0"},
		{math.Inf(-1), "-inf", "-inf", "-inf"},
		{2.999, "2.999", "2.999", "2"},
		{-7.5, "-7.5", "-7.5", "-7"},
	} {
		if g, s, w := General(c.v), Shortest(c.v), Whole(c.v); g != c.general || s != c.shortest || w != c.whole {
			t.Errorf("%v: %s %s %s", c.v, g, s, w)
		}
	}
}

func TestRound(t *testing.T) {
	for _, c := range []struct {
		v      float64
		places int
		want   float64
	}{{2.675, 2, 2.67}, {0.5, 0, 0}, {1.5, 0, 2}, {2.5, 0, 2}, {1234.5, -2, 1200}, {25, -1, 20}, {35, -1, 40}, {1e300, 5, 1e300}, {0.1234567, 6, 0.123457}} {
		if got := Round(c.v, c.places); got != c.want {
			t.Errorf("round(%v, %d) = %v, want %v", c.v, c.places, got, c.want)
		}
	}
}

func TestTags(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"a.b", "map[name:a.b]"},
		{"a;x=1;b=2", "map[b:2 name:a x:1]"},
		{`a{x="1",y="q\"z"}`, `map[name:a x:1 y:q"z]`},
		{"~~a", "map[name:a]"},
		{"a;x", ""}, {"a;=v", ""}, {";x=1", ""}, {"a;x=~1", ""}, {"a;x!=1", ""},
	} {
		tags, err := ParseTags(c.path)
		if (err != nil) != (c.want == "") || err == nil && fmt.Sprint(tags) != c.want {
			t.Errorf("%s: %v, %v", c.path, tags, err)
		}
	}
	if got := FormatTags("a", map[string]string{"name": "a", "b": "2", "a": "1"}); got != "a;a=1;b=2" {
		t.Error(got)
	}
}

func TestNormalizeAlignsMixedSteps(t *testing.T) {
	ten := &Series{Start: 40, End: 190, Step: 10, Consolidation: "sum"}
	for i := range 15 {
		ten.Values = append(ten.Values, float64(40+10*i))
	}
	sixty := &Series{Start: 60, End: 180, Step: 60, Consolidation: "average", Values: []float64{1, 2}}
	list, grid, err := Normalize(List{ten, sixty})
	if err != nil || grid != (Grid{60, 180, 60}) {
		t.Fatal(grid, err)
	}
	// The values at 40 and 50 lie before the first whole bucket; the last bucket is not full.
	if got := fmt.Sprint(list[0].Values, list[1].Values); got != "[510 870 180] [1 2]" {
		t.Error(got)
	}
	same, _, err := Normalize(List{ten, ten})
	if err != nil || same[0] != ten {
		t.Error("series of one step were copied", err)
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{5, 1, 4, Null(), 2, 3}
	for _, c := range []struct {
		n           float64
		interpolate bool
		want        float64
	}{{50, false, 3}, {1, false, 1}, {100, false, 5}, {90, false, 5}, {70, false, 5}, {70, true, 4.2}, {10, true, 1}} {
		if got, err := Percentile(values, c.n, c.interpolate); err != nil || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v %v: %v, %v", c.n, c.interpolate, got, err)
		}
	}
	if _, err := Percentile(values, 150, false); err == nil {
		t.Error("150 % is accepted")
	}
}

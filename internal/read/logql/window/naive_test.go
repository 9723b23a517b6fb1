package window

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/read/logql/syntax"
)

func free(int64) error { return nil }

// naive is the value of the samples of one window, which are sorted, as Loki's loops compute it; but sums are
// exact.
func naive(a Aggregation, in []Sample) float64 {
	v := make([]float64, len(in))
	for i := range in {
		v[i] = in[i].Value
	}
	n := float64(len(v))
	switch a.Op {
	case syntax.SumOverTime:
		return naiveSum(v, 1)
	case syntax.Rate:
		return naiveSum(v, 1) / time.Duration(a.Width).Seconds()
	case syntax.AvgOverTime:
		return naiveSum(v, n)
	case syntax.MinOverTime, syntax.MaxOverTime:
		out := v[0]
		for _, x := range v {
			if math.IsNaN(out) || a.Op == syntax.MinOverTime && x < out || a.Op == syntax.MaxOverTime && x > out {
				out = x
			}
		}
		return out
	case syntax.StdvarOverTime, syntax.StddevOverTime:
		var aux, count, mean float64
		for _, x := range v {
			count++
			d := x - mean
			mean += d / count
			aux += d * (x - mean)
		}
		if a.Op == syntax.StddevOverTime {
			return math.Sqrt(aux / count)
		}
		return aux / count
	case syntax.FirstOverTime:
		return v[0]
	case syntax.LastOverTime:
		return v[len(v)-1]
	case syntax.QuantileOverTime:
		slices.Sort(v)
		return quantileOf(a.Quantile, len(v), func(i int) float64 { return v[i] })
	case syntax.RateCounter:
		k := &counter{width: a.Width}
		var resets []int
		for i, s := range in {
			k.samples = append(k.samples, counterSample{Sample: s})
			if i > 0 && v[i] < v[i-1] {
				resets = append(resets, i)
			}
		}
		return k.rate(0, len(in), resets)
	}
	return n
}

func naiveSum(v []float64, n float64) float64 {
	sum := new(big.Float).SetPrec(4000)
	var plus, minus bool
	for _, x := range v {
		switch {
		case math.IsNaN(x):
			return x
		case math.IsInf(x, 0):
			plus, minus = plus || x > 0, minus || x < 0
		default:
			sum.Add(sum, new(big.Float).SetFloat64(x))
		}
	}
	switch {
	case plus && minus:
		return math.NaN()
	case plus:
		return math.Inf(1)
	case minus:
		return math.Inf(-1)
	}
	if n != 1 && sum.MantExp(nil) > 1000 {
		out, _ := sum.Quo(sum, new(big.Float).SetFloat64(n)).Float64()
		return out
	}
	out, _ := sum.Float64()
	return out / n
}

var ops = []syntax.RangeOp{
	syntax.CountOverTime, syntax.Rate, syntax.SumOverTime, syntax.AvgOverTime, syntax.MinOverTime, syntax.MaxOverTime,
	syntax.StdvarOverTime, syntax.StddevOverTime, syntax.FirstOverTime, syntax.LastOverTime, syntax.QuantileOverTime,
	syntax.RateCounter,
}

func near(a, b, within float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= within*max(math.Abs(a), math.Abs(b))
}

// TestAgainstNaive compares each aggregation, of samples that several workers have, with one that looks at
// all samples of each window.
func TestAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkNaive(t) })
}

func checkNaive(t *rapid.T) {
	a := Aggregation{
		Op: rapid.SampledFrom(ops).Draw(t, "op"), Unwrap: true, Width: rapid.Int64Range(1, 60).Draw(t, "width"),
		Quantile: rapid.SampledFrom([]float64{-1, 0, 0.5, 0.99, 1, 2, 1.0 / 3}).Draw(t, "quantile"),
	}
	n := rapid.IntRange(1, 200).Draw(t, "steps")
	step := rapid.Int64Range(1, 30).Draw(t, "step")
	start, offset := rapid.Int64Range(-50, 50).Draw(t, "start"), rapid.Int64Range(-40, 40).Draw(t, "offset")
	number := rapid.OneOf(rapid.Float64Range(-1e3, 1e3), rapid.Map(rapid.IntRange(-5, 20), func(i int) float64 { return float64(i) }))
	odd := rapid.SampledFrom([]float64{
		math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324, 0, math.Copysign(0, -1), 1e17, -1e17, 1e-300, 1e300,
	})
	if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
		number = rapid.OneOf(number, odd)
	}
	c := NewCells(start, step, n, a.Width, offset)
	workers := make([]Series, rapid.IntRange(1, 3).Draw(t, "workers"))
	cursors := make([]Cursor, len(workers))
	for i := range workers {
		workers[i], cursors[i] = a.New(c), c.NewCursor()
	}
	var all []Sample
	for i := range rapid.IntRange(0, 100).Draw(t, "samples") {
		s := Sample{
			Time:     rapid.Int64Range(start-offset-a.Width-5, start-offset+int64(n)*step+5).Draw(t, "time"),
			Position: uint64(i), Value: number.Draw(t, "value"),
		}
		all = append(all, s)
		w := rapid.IntRange(0, len(workers)-1).Draw(t, "worker")
		if cell, _ := cursors[w].Find(s.Time); cell >= 0 {
			if err := workers[w].Add(cell, &s, free); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, w := range workers[1:] {
		if err := workers[0].Merge(w, free); err != nil {
			t.Fatal(err)
		}
	}
	got := map[int]float64{}
	workers[0].Values(func(step int, v float64) { got[step] = v })
	slices.SortFunc(all, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Position, b.Position))
	})
	for i := range n {
		end := start + int64(i)*step - offset
		var in []Sample
		for _, s := range all {
			if s.Time > end-a.Width && s.Time <= end {
				in = append(in, s)
			}
		}
		v, ok := got[i]
		if ok != (len(in) > 0) {
			t.Fatalf("step %d: present %v, with %d samples", i, ok, len(in))
		}
		if !ok {
			continue
		}
		want, within := naive(a, in), 0.0
		switch a.Op {
		case syntax.StdvarOverTime, syntax.StddevOverTime:
			if math.IsNaN(want) || math.IsInf(want, 0) || want > 1e20 {
				continue
			}
			if math.Abs(want-v) < 1e-6 {
				continue
			}
			within = 1e-9
		case syntax.AvgOverTime:
			within = 1e-15
		}
		if !near(v, want, within) {
			t.Fatalf("%s: step %d: %v, should be %v: %s", a.Op, i, v, want, fmt.Sprint(in))
		}
	}
}

// TestCellsAtTheEdges of time: windows that reach beyond it have what there is of them.
func TestCellsAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		start, step, width, offset int64
		count                      int
		times                      map[int64]int // the first window of a time, or -1
	}{
		{math.MinInt64, 10, 100, 0, 3, map[int64]int{math.MinInt64: 0, math.MinInt64 + 1: 1, math.MinInt64 + 20: 2, math.MinInt64 + 21: -1}},
		{math.MaxInt64 - 20, 10, 15, 0, 3, map[int64]int{math.MaxInt64: 2, math.MaxInt64 - 20: 0, math.MaxInt64 - 35: -1}},
		{math.MaxInt64, 0, 10, -5, 1, map[int64]int{math.MaxInt64: 0, math.MaxInt64 - 4: 0, math.MaxInt64 - 5: -1}},
		{math.MinInt64, 0, 10, 1, 1, map[int64]int{math.MinInt64: -1, 0: -1}},
		{math.MaxInt64, 0, math.MaxInt64, math.MinInt64, 1, map[int64]int{math.MaxInt64: -1, 0: -1}},
		{0, 0, 5, 0, 1, map[int64]int{0: 0, -4: 0, -5: -1, 1: -1}},
		{0, 10, 3, 0, 3, map[int64]int{0: 0, 1: -1, 8: 1, 7: -1, 20: 2}},
	} {
		cells := NewCells(c.start, c.step, c.count, c.width, c.offset)
		for at, want := range c.times {
			cursor := cells.NewCursor()
			cell, _ := cursor.Find(at)
			got := -1
			if cell >= 0 {
				got = cells.FirstStep(cell)
			}
			if got != want {
				t.Errorf("%+v: time %d: window %d, should be %d", c, at, got, want)
			}
			if want >= 0 && !cells.Range().Contains(at) {
				t.Errorf("%+v: time %d is not in %v", c, at, cells.Range())
			}
		}
	}
}

// TestEnds of windows, with gaps between them or without.
func TestEnds(t *testing.T) {
	for _, width := range []int64{1, 3, 10, 25} {
		for count := 1; count < 12; count++ {
			cells := NewCells(100, 10, count, width, 5)
			for step := range count {
				if got, want := cells.End(step), int64(95+10*step); got != want {
					t.Errorf("%d windows of %d: window %d ends at %d, should be %d", count, width, step, got, want)
				}
			}
		}
	}
	cells := NewCells(math.MaxInt64-10, 10, 2, 15, -5)
	for step, want := range []int64{math.MaxInt64 - 5, math.MaxInt64} {
		if got := cells.End(step); got != want {
			t.Errorf("window %d at the end of time ends at %d, should be %d", step, got, want)
		}
	}
}

// TestSumIsExact whatever the order.
func TestSumIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.OneOf(rapid.Float64(), rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{
			math.MaxFloat64, -math.MaxFloat64, 1e308, -1e308, 0x1p950, -0x1p950, 1, -1, 5e-324, 1e16,
		})), 0, 60).Draw(t, "numbers")
		cut := rapid.IntRange(0, len(v)).Draw(t, "cut")
		var a, b exactSum
		for _, x := range v[:cut] {
			a.add(x)
		}
		for _, x := range v[cut:] {
			b.add(x)
		}
		b.merge(&a)
		if got, want := b.over(1), naiveSum(v, 1); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%v, should be %v", got, want)
		}
	})
}

// TestAddAllocatesNothing for a cell that has samples.
func TestAddAllocatesNothing(t *testing.T) {
	c := NewCells(0, 60, 100, 300, 0)
	for _, op := range ops {
		if op == syntax.QuantileOverTime || op == syntax.RateCounter {
			continue
		}
		s := Aggregation{Op: op, Unwrap: true, Width: 300}.New(c)
		sample := Sample{Time: 5, Value: 0.1}
		if n := testing.AllocsPerRun(100, func() {
			if err := s.Add(3, &sample, free); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", op, n)
		}
	}
}

func FuzzWindows(f *testing.F) {
	f.Add([]byte("some windows"))
	f.Fuzz(rapid.MakeFuzz(checkNaive))
}

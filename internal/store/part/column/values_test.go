package column

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

// seconds adds up durations in nanoseconds, several per value, as a histogram of durations does.
func seconds(n int) []uint64 {
	r := rand.New(rand.NewPCG(8, 8))
	sum := 0.0
	values := make([]uint64, n)
	for i := range values {
		for range 20 {
			sum += float64(r.IntN(50e6)) / 1e9
		}
		values[i] = math.Float64bits(sum)
	}
	return values
}

// TestSumsOfDecimals: such sums take at most half of what xor takes, and reading them does not allocate.
func TestSumsOfDecimals(t *testing.T) {
	values := seconds(480)
	values[479] = model.StaleNaN
	var c ValueCoder
	b := c.Append(nil, values)
	if xor := len(appendXor(nil, values)); b[0] != valuesNear|9<<3 || 100*len(b) > 65*xor {
		t.Fatalf("%s takes %d bytes, as xor %d", SegmentName(b), len(b), xor)
	}
	var d ValueDecoder
	var got []uint64
	read := func() {
		var err error
		if got, err = d.Append(got[:0], b, len(values)); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if !slices.Equal(got, values) {
		t.Fatal("other values came back")
	}
	alloctest.AtMost(t, 0, 5, read)
}

// TestStepsAllocateNothing: reading and writing columns of repeats does not allocate.
func TestStepsAllocateNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	var xs []int64
	for len(xs) < 480 {
		x := r.Int64N(1 << 30)
		for range 1 + r.IntN(5) {
			xs = append(xs, x)
		}
	}
	c, d := IntCoder{Dense: true}, IntDecoder{}
	var b []byte
	var got []int64
	run := func() {
		b = c.Append(b[:0], xs)
		s := Scan{Rest: b}
		got = d.Append(got[:0], &s, len(xs))
		if err := s.End("steps"); err != nil || got[479] != xs[479] {
			t.Fatal(err)
		}
	}
	run()
	if b[0] != intsSteps {
		t.Fatal(IntsName(b))
	}
	alloctest.AtMost(t, 0, 5, run)
}

// TestEvenTimes: evenly spaced times are the same read in one pass or in two. Times beyond the end of time
// are left to the pass that reports them.
func TestEvenTimes(t *testing.T) {
	if !checkEvenTimes(t, 1e18, 1e9, []int64{0, 15, 30, 45, 60, 75, 90, 105, 120}) {
		t.Error("evenly spaced times were not read in one pass")
	}
	rapid.Check(t, func(t *rapid.T) {
		origin, unit := rapid.Int64().Draw(t, "origin"), rapid.SampledFrom([]uint64{1, 1e6, 1e9, 1 << 62}).Draw(t, "unit")
		first, step := rapid.Int64Range(-5, 5).Draw(t, "first"), rapid.SampledFrom([]int64{1, 15, 60, -1, 1 << 40, math.MaxInt64 / 2}).Draw(t, "step")
		numbers := []int64{first}
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			numbers = append(numbers, numbers[len(numbers)-1]+step)
		}
		if rapid.IntRange(0, 4).Draw(t, "uneven") == 0 {
			numbers[len(numbers)-1]++
		}
		checkEvenTimes(t, origin, unit, numbers)
	})
}

// checkEvenTimes reads a column of numbers with EvenTimes, and returns whether it did so.
func checkEvenTimes(t interface{ Fatalf(string, ...any) }, origin int64, unit uint64, numbers []int64) bool {
	var c IntCoder
	column := c.Append(nil, numbers)
	var want []int64
	ascend := true
	for i, x := range numbers {
		want = append(want, origin+int64(uint64(x)*unit))
		ascend = ascend && (i == 0 || want[i] > want[i-1])
	}
	s := Scan{Rest: append(column, 1, 2)}
	got, even := EvenTimes([]int64{7}, &s, len(numbers), origin, unit)
	switch {
	case !even && (len(got) != 1 || len(s.Rest) != len(column)+2):
		t.Fatalf("%d of %d bytes were read, and %v", len(s.Rest), len(column), got)
	case even && (!ascend || len(s.Rest) != 2 || s.Bad || !slices.Equal(got[1:], want)):
		t.Fatalf("%v of %v, want %v, which ascend: %t", got, numbers, want, ascend)
	}
	return even
}

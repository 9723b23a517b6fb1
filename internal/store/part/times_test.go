package part

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

// jittered gives n times about 15 seconds apart, as a scraper does.
func jittered(n int) []int64 {
	r := rand.New(rand.NewPCG(7, 7))
	times := make([]int64, n)
	for i := range times {
		times[i] = 1700000000e9 + int64(i)*15e9 + r.Int64N(3)*1e6
	}
	return times
}

// TestSequencesAreShared: what began later or ended earlier than the longest has a part of its sequence.
func TestSequencesAreShared(t *testing.T) {
	times := jittered(480)
	var p samplePage
	p.reset()
	var spans [][2]int
	for _, s := range [][2]int{{100, 480}, {0, 480}, {0, 17}, {478, 480}, {0, 480}, {3, 9}, {50, 400}} {
		rows := model.Rows{Times: times[s[0]:s[1]], Values: make([]uint64, s[1]-s[0])}
		must(t, p.add(uint32(len(spans)), &rows, 0, rows.Len()))
		spans = append(spans, s)
	}
	var d sampleDir
	must(t, d.open(p.payload(nil)))
	// What neither begins nor ends with another is a sequence of its own.
	if len(d.seqRows) != 3 {
		t.Fatalf("sequences of %d times", d.seqRows)
	}
	for i, s := range spans {
		var got model.Rows
		must(t, d.appendRows(i, anyTime, &got))
		if !sameRows(&got, &model.Rows{Times: times[s[0]:s[1]], Values: make([]uint64, s[1]-s[0])}) {
			t.Fatalf("series %d: %v", i, got.Times)
		}
	}
}

// TestForgedSequences: a page must not make its reader decode more times than it has rows, nor look beyond a sequence.
func TestForgedSequences(t *testing.T) {
	column := func(dst []byte, x int64) []byte { return binary.AppendVarint(append(dst, intsConst), x) }
	page := func(rows, times, ref, place int64) []byte {
		b := []byte{byte(model.Samples), 0, 0, 1}
		b = column(b, rows)
		b = append(b, 1, 0, 1) // a sequence, origin, unit
		var sequence []byte
		if times > 1 {
			sequence = []byte{intsPacked | intsDelta, 0, 2, 0} // 0, 1, 2...
		}
		b = column(column(column(column(b, times), int64(len(sequence))), ref), place)
		b = append(b, sequence...)
		segment := column([]byte{valuesDecimal}, 1)
		return append(column(b, int64(len(segment))), segment...)
	}
	for _, c := range []struct {
		rows, times, ref, place int64
		ok                      bool
	}{
		{20, 20, 0, 0, true},
		{20, 21, 0, 0, false},
		{20, 1 << 40, 0, 0, false},
		{20, -1, 0, 0, false},
		{20, 19, 0, 0, false},
		{20, 20, 1, 0, false},
		{20, 20, -1, 0, false},
		{20, 20, 0, 1, false},
		{20, 20, 0, -1, false},
		{20, 20, 0, math.MinInt64, false},
	} {
		var d sampleDir
		err := d.open(page(c.rows, c.times, c.ref, c.place))
		if (err == nil) != c.ok || err != nil && !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			var rows model.Rows
			must(t, d.appendRows(0, anyTime, &rows))
		}
	}
}

// TestSequencesAreDecodedOnce: many series that have little of long sequences do not make their reader decode these for each.
func TestSequencesAreDecodedOnce(t *testing.T) {
	times := jittered(2 * 480)
	var p samplePage
	p.reset()
	var spans [][2]int
	for _, s := range [][2]int{{0, 480}, {480, 960}, {478, 480}, {958, 960}, {0, 2}, {480, 483}} {
		rows := model.Rows{Times: times[s[0]:s[1]], Values: make([]uint64, s[1]-s[0])}
		must(t, p.add(uint32(len(spans)), &rows, 0, rows.Len()))
		spans = append(spans, s)
	}
	var d sampleDir
	payload := p.payload(nil)
	must(t, d.open(bytes.Clone(payload)))
	read := func() {
		for _, i := range []int{2, 3, 4, 5, 0, 1} {
			var got model.Rows
			must(t, d.appendRows(i, anyTime, &got))
			if !slices.Equal(got.Times, times[spans[i][0]:spans[i][1]]) {
				t.Fatalf("series %d: %v", i, got.Times)
			}
		}
	}
	read()
	clear(d.seqBytes) // what is decoded from now on are no times
	read()
	must(t, d.open(payload))
	read()
}

// seconds sums up durations of nanoseconds, some for each value, as a histogram does that observes them.
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

// TestSumsOfDecimals holds them to half of what they take as xor, and reading them to no allocation.
func TestSumsOfDecimals(t *testing.T) {
	values := seconds(480)
	values[479] = model.StaleNaN
	var c valueCoder
	b := c.append(nil, values)
	if xor := len(appendXor(nil, values)); b[0] != valuesNear|9<<3 || 100*len(b) > 65*xor {
		t.Fatalf("%s takes %d bytes, as xor %d", segmentName(b), len(b), xor)
	}
	var d valueDecoder
	var got []uint64
	read := func() {
		var err error
		if got, err = d.append(got[:0], b, len(values)); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if !sameRows(&model.Rows{Times: make([]int64, 480), Values: got}, &model.Rows{Times: make([]int64, 480), Values: values}) {
		t.Fatal("other values came back")
	}
	alloctest.AtMost(t, 0, 5, read)
}

// TestStepsAllocateNothing: nor does reading and writing columns of runs.
func TestStepsAllocateNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	var xs []int64
	for len(xs) < 480 {
		x := r.Int64N(1 << 30)
		for range 1 + r.IntN(5) {
			xs = append(xs, x)
		}
	}
	c, d := intCoder{dense: true}, intDecoder{}
	var b []byte
	var got []int64
	run := func() {
		b = c.append(b[:0], xs)
		s := scan{b: b}
		got = d.append(got[:0], &s, len(xs))
		if err := s.end("steps"); err != nil || got[479] != xs[479] {
			t.Fatal(err)
		}
	}
	run()
	if b[0] != intsSteps {
		t.Fatal(intsName(b))
	}
	alloctest.AtMost(t, 0, 5, run)
}

// TestEvenTimes: times at one distance are read in one pass as in two, and those that would pass the end of time are left to who says so.
func TestEvenTimes(t *testing.T) {
	taken := false
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
		var c intCoder
		column := c.append(nil, numbers)
		var want []int64
		ascend := true
		for i, x := range numbers {
			want = append(want, origin+int64(uint64(x)*unit))
			ascend = ascend && (i == 0 || want[i] > want[i-1])
		}
		s := scan{b: append(column, 1, 2)}
		got, even := evenTimes([]int64{7}, &s, len(numbers), origin, unit)
		switch {
		case !even && (len(got) != 1 || len(s.b) != len(column)+2):
			t.Fatalf("%d of %d bytes were read, and %v", len(s.b), len(column), got)
		case even && (!ascend || len(s.b) != 2 || s.bad || !slices.Equal(got[1:], want)):
			t.Fatalf("%v of %v, want %v, which ascend: %t", got, numbers, want, ascend)
		}
		taken = taken || even
	})
	if !taken {
		t.Error("no times were even")
	}
}

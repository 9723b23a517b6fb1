package samples

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/parttest"
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
		parttest.Must(t, p.add(uint32(len(spans)), &rows, 0, rows.Len()))
		spans = append(spans, s)
	}
	var d sampleDir
	parttest.Must(t, d.decode(p.payload(nil)))
	// What neither begins nor ends with another is a sequence of its own.
	if len(d.seqRows) != 3 {
		t.Fatalf("sequences of %d times", d.seqRows)
	}
	for i, s := range spans {
		var got model.Rows
		parttest.Must(t, d.appendRows(i, model.Always(), &got))
		if !worldtest.SameRows(&got, &model.Rows{Times: times[s[0]:s[1]], Values: make([]uint64, s[1]-s[0])}) {
			t.Fatalf("series %d: %v", i, got.Times)
		}
	}
}

// TestForgedSequences: a page must not make its reader decode more times than it has rows, nor look beyond a
// sequence.
func TestForgedSequences(t *testing.T) {
	constant := func(dst []byte, x int64) []byte { return binary.AppendVarint(append(dst, column.IntsConst), x) }
	page := func(rows, times, ref, place int64) []byte {
		b := []byte{byte(model.Samples), 0, 0, 1}
		b = constant(b, rows)
		b = append(b, 1, 0, 1) // a sequence, origin, unit
		var sequence []byte
		if times > 1 {
			sequence = []byte{column.IntsPacked | column.IntsDelta, 0, 2, 0} // 0, 1, 2...
		}
		b = constant(constant(constant(constant(b, times), int64(len(sequence))), ref), place)
		b = append(b, sequence...)
		segment := constant([]byte{column.ValuesDecimal}, 1)
		return append(constant(b, int64(len(segment))), segment...)
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
		err := d.decode(page(c.rows, c.times, c.ref, c.place))
		if (err == nil) != c.ok || err != nil && !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			var rows model.Rows
			parttest.Must(t, d.appendRows(0, model.Always(), &rows))
		}
	}
}

// TestSequencesAreDecodedOnce: many series that have little of long sequences do not make their reader decode
// these for each.
func TestSequencesAreDecodedOnce(t *testing.T) {
	times := jittered(2 * 480)
	var p samplePage
	p.reset()
	var spans [][2]int
	for _, s := range [][2]int{{0, 480}, {480, 960}, {478, 480}, {958, 960}, {0, 2}, {480, 483}} {
		rows := model.Rows{Times: times[s[0]:s[1]], Values: make([]uint64, s[1]-s[0])}
		parttest.Must(t, p.add(uint32(len(spans)), &rows, 0, rows.Len()))
		spans = append(spans, s)
	}
	var d sampleDir
	payload := p.payload(nil)
	parttest.Must(t, d.decode(bytes.Clone(payload)))
	read := func() {
		for _, i := range []int{2, 3, 4, 5, 0, 1} {
			var got model.Rows
			parttest.Must(t, d.appendRows(i, model.Always(), &got))
			if !slices.Equal(got.Times, times[spans[i][0]:spans[i][1]]) {
				t.Fatalf("series %d: %v", i, got.Times)
			}
		}
	}
	read()
	clear(d.seqBytes) // what is decoded from now on is not times
	read()
	parttest.Must(t, d.decode(payload))
	read()
}

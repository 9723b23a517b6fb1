package model

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawn is a row as the tests below think of it.
type drawn struct {
	at, start int64
	kind      Kind
	value     string
}

func drawRow(t *rapid.T) drawn {
	d := drawn{at: rapid.Int64Range(-5, 5).Draw(t, "t"), start: rapid.Int64Range(0, 1).Draw(t, "start")}
	if d.kind = rapid.SampledFrom([]Kind{KindFloat, KindHistogram, KindExemplar}).Draw(t, "kind"); d.kind == KindHistogram {
		sum := rapid.SampledFrom([]uint64{StaleNaN, 1, 2}).Draw(t, "sum")
		d.value = string(AppendHistogram(nil, &Histogram{Sum: sum}))
	} else {
		d.value = rapid.SampledFrom([]string{"", "a", "bc"}).Draw(t, "value")
	}
	return d
}

// appendTo adds the row. A float's bits are made of the text, of which "" is the stale marker.
func (d drawn) appendTo(r *Rows) {
	if d.kind == KindFloat {
		r.Append(d.at, map[string]uint64{"": StaleNaN, "a": 1, "bc": 2}[d.value], d.start)
	} else {
		r.AppendBlob(d.at, d.kind, []byte(d.value), d.start)
	}
}

func (d drawn) stale() bool {
	return d.kind == KindFloat && d.value == "" || d.kind == KindHistogram && histogramIsStale([]byte(d.value))
}

func rowsAsDrawn(r *Rows) []drawn {
	out := []drawn{}
	for i := range r.Times {
		d := drawn{at: r.Times[i], start: r.Start(i), kind: r.Kind(i)}
		if d.kind == KindFloat {
			d.value = map[uint64]string{StaleNaN: "", 1: "a", 2: "bc"}[r.Values[i]]
		} else {
			d.value = string(r.Blob(i))
		}
		out = append(out, d)
	}
	return out
}

// TestKindsSurvive appends rows of all kinds in pieces and compares with the rules of both orders.
func TestKindsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(drawRow), 0, 100).Draw(t, "rows")
		var whole Rows
		for rest := all; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			var piece Rows
			for _, d := range rest[:n] {
				d.appendTo(&piece)
			}
			skip := rapid.IntRange(0, n).Draw(t, "cut")
			whole.AppendRows(&piece, 0, skip)
			whole.AppendRows(&piece, skip, n)
			rest = rest[n:]
		}
		if got := rowsAsDrawn(&whole); !slices.Equal(got, all) && len(all) > 0 {
			t.Fatalf("%v became %v", all, got)
		}
		var set Rows
		set.AppendRows(&whole, 0, whole.Len())
		whole.Normalize()
		if got, want := rowsAsDrawn(&whole), lastWins(all); !slices.Equal(got, want) {
			t.Fatalf("samples: %v, want %v", got, want)
		}
		set.NormalizeSet()
		if got, want := rowsAsDrawn(&set), eachOnce(all); !slices.Equal(got, want) {
			t.Fatalf("set: %v, want %v", got, want)
		}
	})
}

// TestNormalizeFrom: rows after others are ordered as if they were alone, and the others do not change.
func TestNormalizeFrom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before, all, alone Rows
		for range rapid.IntRange(0, 5).Draw(t, "before") {
			d := drawRow(t)
			d.appendTo(&before)
			d.appendTo(&all)
		}
		for range rapid.IntRange(0, 100).Draw(t, "behind") {
			d := drawRow(t)
			d.appendTo(&all)
			d.appendTo(&alone)
		}
		f := rapid.SampledFrom([]Family{Samples, Exemplars}).Draw(t, "family")
		all.NormalizeFrom(before.Len(), f)
		alone.NormalizeAs(f)
		if got, want := rowsAsDrawn(&all), append(rowsAsDrawn(&before), rowsAsDrawn(&alone)...); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func lastWins(all []drawn) []drawn {
	kept := map[int64]drawn{}
	for _, d := range all {
		if old, ok := kept[d.at]; !ok || !d.stale() || old.stale() {
			kept[d.at] = d
		}
	}
	out := []drawn{}
	for _, d := range kept {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b drawn) int { return int(a.at - b.at) })
	return out
}

func eachOnce(all []drawn) []drawn {
	out := []drawn{}
	seen := map[string]bool{}
	for _, d := range all {
		if id := fmt.Sprint(d.at, d.kind, d.value); !seen[id] {
			seen[id] = true
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b drawn) int { return int(a.at - b.at) })
	return out
}

// TestBatchFamilies: rows of a family find their series whether or not the others have rows, and after some
// were dropped.
func TestBatchFamilies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Batch
		n := rapid.IntRange(0, 12).Draw(t, "series")
		want := make(map[Family]int)
		for i := range n {
			for range rapid.IntRange(0, 2).Draw(t, "samples") {
				b.Samples.Append(int64(i), 0, 0)
			}
			for range rapid.IntRange(0, 2).Draw(t, "exemplars") {
				b.Exemplars.AppendBlob(int64(i), KindExemplar, []byte("12345678"), 0)
			}
			b.EndSeries(Key{Lo: uint64(i)})
		}
		check := func() map[Family]int {
			rows := make(map[Family]int)
			for i, k := range b.Keys {
				for _, f := range Families() {
					c := b.Columns(f)
					for j := c.Begin(i); j < c.End(i); j++ {
						if c.Times[j] != int64(k.Lo) {
							t.Fatalf("family %d: row %d of series %d has time %d", f, j, k.Lo, c.Times[j])
						}
						rows[f]++
					}
				}
			}
			for _, f := range Families() {
				if rows[f] != b.Columns(f).Len() {
					t.Fatalf("family %d: %d rows belong to series, of %d", f, rows[f], b.Columns(f).Len())
				}
			}
			return rows
		}
		check()
		b.KeepRows(func(f Family, series, row int) bool {
			if b.Columns(f).Times[row] != int64(b.Origins[series]) {
				t.Fatalf("family %d: row %d is asked about as of series %d", f, row, series)
			}
			keep := rapid.Bool().Draw(t, "keep")
			if keep {
				want[f]++
			}
			return keep
		})
		got := check()
		for _, f := range Families() {
			if got[f] != want[f] {
				t.Fatalf("family %d: %d rows left, want %d", f, got[f], want[f])
			}
		}
	})
}

// TestManyRowsOfOneTime: a set of which all rows have one time takes a time that grows with their number, not
// with its square: a million comparisons are nothing, their square would not end.
func TestManyRowsOfOneTime(t *testing.T) {
	var r Rows
	const n = 300_000
	for i := range n {
		r.AppendBlob(7, KindExemplar, fmt.Append(nil, i%(n/2)), 0)
	}
	r.NormalizeSet()
	if r.Len() != n/2 {
		t.Fatalf("%d rows are left of %d that each came twice", r.Len(), n/2)
	}
	for i := range r.Len() {
		if string(r.Blob(i)) != fmt.Sprint(i) {
			t.Fatalf("row %d is %s", i, r.Blob(i))
		}
	}
}

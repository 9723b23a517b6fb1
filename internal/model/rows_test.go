package model

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestNormalize compares with the rule itself: per time the last row stays, but a value beats a stale marker.
func TestNormalize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Rows
		type row struct {
			v     uint64
			start int64
		}
		want := make(map[int64]row)
		for range rapid.IntRange(0, 200).Draw(t, "rows") {
			at := rapid.Int64Range(-20, 20).Draw(t, "t")
			v := rapid.SampledFrom([]uint64{StaleNaN, 1, 2, 3}).Draw(t, "v")
			start := rapid.Int64Range(0, 2).Draw(t, "start")
			r.Append(at, v, start)
			if old, ok := want[at]; !ok || v != StaleNaN || old.v == StaleNaN {
				want[at] = row{v, start}
			}
		}
		r.Normalize()
		if r.Len() != len(want) || !slices.IsSorted(r.Times) {
			t.Fatalf("%d rows at %v, want %d", r.Len(), r.Times, len(want))
		}
		for i, at := range r.Times {
			if got := (row{r.Values[i], r.Start(i)}); got != want[at] {
				t.Fatalf("at %d: %v, want %v", at, got, want[at])
			}
		}
	})
}

func TestAppendRowsKeepsStarts(t *testing.T) {
	var with, without, r Rows
	with.Append(1, 1, 5)
	without.Append(2, 2, 0)
	for _, o := range []*Rows{&without, &with, &without} {
		r.AppendRows(o, 0, 1)
	}
	if !slices.Equal(r.Starts, []int64{0, 5, 0}) || !slices.Equal(r.Times, []int64{2, 1, 2}) {
		t.Errorf("starts %v of times %v", r.Starts, r.Times)
	}
}

func TestKeepRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Batch
		type row struct {
			series int
			at     int64
		}
		var all []row
		for i := range rapid.IntRange(0, 10).Draw(t, "series") {
			for range rapid.IntRange(0, 3).Draw(t, "rows") {
				at := int64(len(all))
				all = append(all, row{i, at})
				b.Samples.Append(at, uint64(i), 0)
			}
			b.EndSeries(Key{Hi: uint64(i)})
			if rapid.Bool().Draw(t, "labels") {
				b.Labels.Append(uint32(i), LabelsOf("i", string(rune('a'+i))))
			}
		}
		labelled := make(map[uint64]bool)
		for _, i := range b.Labels.Series {
			labelled[uint64(i)] = true
		}
		dropped := make(map[int64]bool)
		b.KeepRows(func(_ Family, series, at int) bool {
			if all[at].series != series {
				t.Fatalf("row %d is asked about as of series %d", at, series)
			}
			dropped[int64(at)] = rapid.Bool().Draw(t, "drop")
			return !dropped[int64(at)]
		})
		n, labels := 0, 0
		for i, k := range b.Keys {
			if b.Samples.End(i) == b.Samples.Begin(i) {
				t.Fatalf("series %d has no rows", i)
			}
			for j := b.Samples.Begin(i); j < b.Samples.End(i); j++ {
				if b.Samples.Values[j] != k.Hi || dropped[b.Samples.Times[j]] {
					t.Fatalf("row %d of series %v", j, k)
				}
				n++
			}
			if labelled[k.Hi] {
				if labels == b.Labels.Len() || b.Labels.Series[labels] != uint32(i) || string(b.Labels.At(labels).Get("i")) != string(rune('a'+int(k.Hi))) {
					t.Fatalf("series %d has lost its labels", i)
				}
				labels++
			}
		}
		kept := 0
		for _, d := range dropped {
			if !d {
				kept++
			}
		}
		if n != kept || labels != b.Labels.Len() || len(b.Samples.Times) != n {
			t.Fatalf("%d rows and %d label sets left, want %d rows", n, b.Labels.Len(), kept)
		}
	})
}

func TestLabelsCheck(t *testing.T) {
	good := LabelsOf("b", "2", "a", "1", "empty", "")
	if err := good.Check(); err != nil || good.Len() != 2 || good.String() != `{a="1", b="2"}` {
		t.Errorf("%s: %v", good, err)
	}
	a, b := LabelsOf("a", "1"), LabelsOf("b", "1")
	for name, bad := range map[string]Labels{
		"order":     slices.Concat(b, a),
		"twice":     slices.Concat(a, a),
		"truncated": good[:len(good)-1],
		"tag":       append(Labels{0x12}, good[1:]...),
	} {
		if bad.Check() == nil {
			t.Errorf("%s: %x is taken for canonical", name, []byte(bad))
		}
	}
}

func FuzzLabels(f *testing.F) {
	f.Add([]byte(LabelsOf("a", "1", "b", "2")))
	f.Add([]byte{0x0a, 0x80})
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		l := Labels(data)
		if l.Check() != nil {
			return
		}
		var b LabelsBuilder
		for n, v, rest, ok := l.Next(); ok; n, v, rest, ok = rest.Next() {
			b.Add(n, v)
		}
		if back, err := b.Append(nil); err != nil || len(back) > len(data) || l.Len() != b.Len() {
			t.Errorf("%x comes back as %x: %v", data, back, err)
		}
	})
}

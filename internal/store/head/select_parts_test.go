package head

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// TestPartsInAnyOrder: whatever the times of parts, overlapping or not, the rows of a series come in order,
// and of two rows with one time the one that arrived later.
func TestPartsInAnyOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 60 {
		r := newRig(t, nil)
		want := make(map[int64]uint64)
		for p := range 1 + rnd.IntN(6) {
			b := &model.Batch{Tenant: "a", Signal: model.Metrics}
			begin, n := rnd.Int64N(60), 1+rnd.Int64N(12)
			for at := begin; at < begin+n; at++ {
				b.Samples.Append(r.now+at, uint64(100*p)+uint64(at), 0)
				want[r.now+at] = uint64(100*p) + uint64(at)
			}
			b.EndSeries(series(0).Key(testSeed, model.Metrics))
			r.label(b, 0)
			r.apply(b)
			r.must(r.head.Flush(t.Context()))
		}
		cs, err := r.head.Source(nil).Select(t.Context(), everything("a"))
		r.must(err)
		c := cs[0]
		var rows model.Rows
		for c.Next(t.Context()) {
			r.must(c.AppendRows(t.Context(), &rows))
		}
		r.must(c.Err())
		r.must(c.Close())
		if !slices.Equal(rows.Times, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("times %v", rows.Times)
		}
		for i, at := range rows.Times {
			if rows.Values[i] != want[at] {
				t.Fatalf("at %d: %d, want %d", at-r.now, rows.Values[i], want[at])
			}
		}
	}
}

// TestSeriesOfSomeParts: each part has some of many series. Each series is returned with the rows of the
// parts that have it, after the rows that the caller already has.
func TestSeriesOfSomeParts(t *testing.T) {
	const n, parts = 2000, 4
	in := func(p, i int) bool { return i%(p+2) != 0 && i/200 != p }
	for _, unlabelled := range []bool{false, true} {
		r := newRig(t, nil)
		for p := range parts {
			b := &model.Batch{Tenant: "a", Signal: model.Metrics}
			var ids []int
			for i := range n {
				if in(p, i) {
					// Older parts may have newer rows.
					b.AddSample(series(i).Key(testSeed, model.Metrics), r.now+int64((p+i%3)%parts), uint64(p))
					ids = append(ids, i)
				}
			}
			fresh, err := r.head.Resolve(b, nil)
			r.must(err)
			for _, i := range fresh {
				b.Labels.Append(i, series(ids[i]))
			}
			r.apply(b)
			if p < parts-1 { // the last stays in buffers
				r.must(r.head.Flush(t.Context()))
			}
		}
		req := everything("a")
		req.Unlabelled = unlabelled
		cs, err := r.head.Source(nil).Select(t.Context(), req)
		r.must(err)
		seen, leftOut, rows := 0, 0, new(model.Rows)
		number := make(map[model.Key]int)
		for i := range n {
			number[series(i).Key(testSeed, model.Metrics)] = i
		}
		for cs[0].Next(t.Context()) {
			i, ok := number[cs[0].Key()]
			if !ok {
				t.Fatalf("series %v is none of these", cs[0].Key())
			}
			if l := cs[0].Labels(); unlabelled && len(l) == 0 {
				leftOut++ // those of a part; labels in memory cost nothing
			} else if string(l) != string(series(i)) {
				t.Fatalf("series %d has the labels %v", i, l)
			}
			var want model.Rows
			for p := range parts {
				if in(p, i) {
					want.Append(r.now+int64((p+i%3)%parts), uint64(p), 0)
				}
			}
			want.Normalize()
			begin := rows.Len()
			r.must(cs[0].AppendRows(t.Context(), rows))
			if !slices.Equal(rows.Times[begin:], want.Times) || !slices.Equal(rows.Values[begin:], want.Values) {
				t.Fatalf("series %d: %v, %v, want %v", i, rows.Times[begin:], rows.Values[begin:], want)
			}
			seen++
		}
		r.must(cs[0].Err())
		r.must(cs[0].Close())
		want := 0
		for i := range n {
			for p := range parts {
				if in(p, i) {
					want++
					break
				}
			}
		}
		if seen != want || unlabelled != (leftOut > want/2) {
			t.Errorf("%d series, %d of them without labels, want %d", seen, leftOut, want)
		}
	}
}

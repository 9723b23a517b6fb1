package head

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// TestInTime: of parts that come in any order of their times, overlapping or not, a series comes in order, and of two rows of one time
// the one that arrived later. Of parts that do not overlap the earlier is read first.
func TestInTime(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	inOrder := 0
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
		c := cs[0].(*cursor)
		apart := true
		for i := 1; i < len(c.parts); i++ {
			p, q := c.parts[i-1].part.reader.Meta().Range, c.parts[i].part.reader.Meta().Range
			if q.Max < p.Min {
				t.Fatalf("a part of %v is read before one of %v", p, q)
			}
			apart = apart && p.Max < q.Min
		}
		if apart && len(c.parts) > 2 {
			inOrder++
		}
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
	if inOrder == 0 {
		t.Error("parts never lay apart")
	}
}

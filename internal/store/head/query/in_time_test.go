package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/part"
)

// partOf writes and opens a part with one series that has a row at each of n times from begin on.
func partOf(t *testing.T, fs vfs.FS, number int, begin, n int64) *local.Part {
	t.Helper()
	file := fmt.Sprint(number)
	w, err := local.Create(fs, "", file, part.WriterOptions{Signal: model.Metrics, SeqLo: 1, SeqHi: 1})
	if err != nil {
		t.Fatal(err)
	}
	var rows model.SeriesRows
	for at := begin; at < begin+n; at++ {
		rows.Samples.Append(at, 0, 0)
	}
	if err := w.Series("a", model.Key{Hi: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Rows(&rows); err != nil {
		t.Fatal(err)
	}
	meta, size, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	p, err := local.Open(context.Background(), fs, "", local.NewInfo(file, local.Data, local.Young, meta, size), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Unpin)
	return p
}

// TestInTime: of parts that do not overlap the earlier one is read first, and parts that overlap stay in
// their order.
func TestInTime(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	req := &model.Request{Tenant: "a", Range: model.Always()}
	inOrder := 0
	for range 60 {
		fs, parts := vfs.NewMem(), []*local.Part(nil)
		for p := range 1 + rnd.IntN(6) {
			parts = append(parts, partOf(t, fs, p, rnd.Int64N(60), 1+rnd.Int64N(12)))
		}
		apart, sorted := true, inTime(parts, req)
		if len(sorted) != len(parts) {
			t.Fatalf("%d of %d parts", len(sorted), len(parts))
		}
		for i := 1; i < len(sorted); i++ {
			p, q := sorted[i-1].Reader.Meta().Range, sorted[i].Reader.Meta().Range
			if q.Max < p.Min {
				t.Fatalf("a part of %v is read before one of %v", p, q)
			}
			apart = apart && p.Max < q.Min
		}
		if apart && len(sorted) > 2 {
			inOrder++
		}
	}
	if inOrder == 0 {
		t.Error("parts never lay apart")
	}
}

package head

import (
	"context"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/store/head/query"
)

// TestLinger: rows that have been shipped stay readable for a while, unless the query has them from the
// bucket. Then their files go.
func TestLinger(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, func(o *Options) { o.Linger = time.Hour })
	series := func(s *query.Source) (n int) {
		t.Helper()
		found, err := s.Select(ctx, everything("a"))
		r.must(err)
		for _, c := range found {
			for c.Next(ctx) {
				n++
			}
			r.must(c.Err())
			r.must(c.Close())
		}
		return n
	}
	r.push("a", 0, 5, r.now, 1)
	r.must(r.head.Ship(ctx))
	r.push("a", 5, 7, r.now, 1)
	if n := series(r.head.Source(nil)); n != 7 || len(r.bucket.blocks) != 1 {
		t.Errorf("%d series in the head, expected 7; %d blocks", n, len(r.bucket.blocks))
	}
	if n := series(r.head.SourceAfter(r.head.Covered(), nil)); n != 2 {
		t.Errorf("%d series beyond what the bucket has, expected 2", n)
	}
	r.head.endLingering(time.Now())
	if n := series(r.head.Source(nil)); n != 7 {
		t.Errorf("%d series before the time is over, expected 7", n)
	}
	pinned := r.head.Pin(everything("a").Signal)
	r.head.endLingering(time.Now().Add(2 * time.Hour))
	if n := series(r.head.Source(nil)); n != 2 {
		t.Errorf("%d series once the time is over, expected 2", n)
	}
	if len(pinned.DataParts) != 1 {
		t.Fatalf("%d parts are pinned", len(pinned.DataParts))
	}
	file := pinned.DataParts[0].Info.File
	for _, p := range append(pinned.DataParts, pinned.LabelParts...) {
		p.Unpin()
	}
	if _, err := r.mem.Stat("/head/" + file); err == nil {
		t.Errorf("the file %s of a part that nothing reads is there", file)
	}
	r.expect("a", 0, 7, map[int64]float64{r.now: 1})
}

package ingest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/topics"
)

// TestAhead: a partition stops at rows whose labels are nowhere, and says so once. Once writers have sent the
// labels again, with later rows, it goes on with the rows before.
func TestAhead(t *testing.T) {
	r := newRig(t, 1)
	c := r.catalog()
	want := worldtest.Content{}
	begin := time.Now().Add(-time.Minute).UnixNano()
	push := func(n int64, labels bool) {
		b := sample("t", 0, 1, begin+n*1e9, float64(n))
		want.Push(b)
		r.log.append(0, b, labels)
	}
	push(0, false)
	push(1, false)
	var lives, told atomic.Int64
	w := Own(OwnerOptions{
		Of: func(p int32, _ int) Options {
			if lives.Add(1) == 4 { // the third has failed as the second
				push(2, true)
				push(3, false)
			}
			return r.options(c, p)
		},
		Unlabelled: func(partition int32, offset int64) {
			if partition != 0 || offset != 0 {
				t.Errorf("partition %d lacks labels at offset %d", partition, offset)
			}
			told.Add(1)
			if n := lives.Load(); n < 2 {
				t.Errorf("told after attempt %d, which has not looked in old blocks", n)
			}
		},
	})
	t.Cleanup(w.Stop)
	w.Hold(0)
	r.waitFor("the way on", func() bool { return w.Ready() == nil })
	w.Stop()
	if told.Load() != 1 {
		t.Errorf("told %d times", told.Load())
	}
	if v := r.catalog().Covered(topics.Node(0), 1); v.To != 4 {
		t.Errorf("the bucket covers %+v", v)
	}
	if d := want.Diff(r.content(r.catalog())); d != "" {
		t.Error(d)
	}
}

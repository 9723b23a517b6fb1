package head

import (
	"testing"
	"time"

	"github.com/shaledb/shale/internal/store/head/local"
)

// TestTrim: what another process has shipped leaves, and merges never keep a part from leaving. Once the
// other process has come to where the head was at the last Trim, nothing from before is left.
func TestTrim(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, nil)
	push := func(n int) {
		t.Helper()
		for range n { // late rows, whose parts are merged again and again
			r.push("a", 0, 3, r.now-int64(10*time.Hour)+int64(r.seq), 1)
			r.must(r.head.Flush(ctx))
			for more := true; more; {
				var err error
				more, err = r.head.Work(ctx)
				r.must(err)
			}
		}
	}
	least := func() (lo uint64, parts int) {
		for _, p := range r.head.snapshot() {
			if p.Info.Kind == local.Data {
				if parts++; parts == 1 || p.Info.SeqLo < lo {
					lo = p.Info.SeqLo
				}
			}
		}
		return lo, parts
	}
	push(100)
	r.must(r.head.Trim(ctx, 50))
	seam := r.seq
	if lo, _ := least(); lo == 0 || lo > 51 {
		t.Fatalf("the bucket has 50 batches, and the head those from %d on", lo)
	}
	push(100)
	if _, parts := least(); parts > 40 {
		t.Errorf("%d parts: nothing is merged", parts)
	}
	r.must(r.head.Trim(ctx, seam-1))
	if lo, _ := least(); lo > seam {
		t.Fatalf("a batch is gone that the bucket has not: the head has those from %d on", lo)
	}
	r.must(r.head.Trim(ctx, seam))
	if lo, _ := least(); lo != seam+1 {
		t.Errorf("the bucket has %d batches, and the head those from %d on", seam, lo)
	}
}

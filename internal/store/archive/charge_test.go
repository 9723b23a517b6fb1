package archive

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

// TestCharges: a cursor charges what it holds, however it ends, and gives it back when it is closed.
func TestCharges(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		w, a := newWorld(t)
		blocks := w.Overlapping(model.Always(), model.Metrics, "a")
		held := int64(0)
		for i := range blocks {
			r, err := a.openBlock(ctx, &blocks[i], request("a", model.Always()), newLanes())
			if err != nil {
				t.Fatal(err)
			}
			r.close()
			if n := r.Meta().Tenant("a"); n != nil && n.Samples > 0 {
				held += cursorBytes + r.FooterBytes() + 4*int64(n.Series)
			}
		}
		pool := &model.QueryPool{MaxBytes: 1 << 40}
		req := request("a", model.Always())
		req.Quota.Pool = pool
		cs, err := a.Select(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		if pool.Used() < held || pool.Used() > held+int64(len(cs))*1024 {
			t.Fatalf("%d bytes are charged for %d cursors that hold %d", pool.Used(), len(cs), held)
		}
		for _, c := range cs {
			if err := errors.Join(c.Close(), c.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if pool.Used() != 0 {
			t.Fatalf("%d bytes are held after the end", pool.Used())
		}
		if held == 0 {
			t.Skip("the world is empty")
		}

		// Less than it takes is refused, whichever block it is that does not fit, and nothing stays charged.
		pool.MaxBytes = rapid.Int64Range(0, held-1).Draw(t, "room")
		if _, err := a.Select(ctx, req); !errors.Is(err, model.ErrLimit) && !errors.Is(err, model.ErrTransient) {
			t.Fatalf("%d of %d bytes: %v", pool.MaxBytes, held, err)
		}
		if pool.Used() != 0 {
			t.Fatalf("%d bytes are held after a refusal", pool.Used())
		}
		pool.MaxBytes = rapid.Int64Range(0, cursorBytes).Draw(t, "room for labels")
		if err := a.LabelNames(ctx, req, func([]byte) error { return nil }); !errors.Is(err, model.ErrLimit) && !errors.Is(err, model.ErrTransient) || pool.Used() != 0 {
			t.Fatalf("label names in %d bytes: %v, %d held", pool.MaxBytes, err, pool.Used())
		}

		// Nor does an error of the bucket leave anything charged.
		pool.MaxBytes = 1 << 40
		w.failBy(func(string, int64) error { return model.ErrCorrupt })
		a = New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
		if _, err := a.Select(ctx, req); !errors.Is(err, model.ErrCorrupt) || pool.Used() != 0 {
			t.Fatalf("a bucket that is gone: %v, %d held", err, pool.Used())
		}
	})
}

package compact

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/alloctest"
)

// TestAllocations holds a merge to less than an allocation for six series that it reads: what it needs, it
// needs once, or for a page.
func TestAllocations(t *testing.T) {
	alloctest.Counts(t)
	w := newWorld(t, vfs.NewMem())
	w.now = dayZero
	const series, windows = 2000, 6
	for range windows {
		w.shipMany(t, w.now, map[string]int{"a": series / 2, "b": series / 2})
		w.now += int64(2 * time.Hour)
	}
	w.now = dayZero + 25*int64(time.Hour)
	comp := w.compactor(t, w.c, nil)
	if err := comp.refresh(ctx); err != nil {
		t.Fatal(err)
	}
	j, _ := comp.next(w.c.Live(), nil)
	if j == nil || len(j.inputs) != windows {
		t.Fatalf("%+v", j)
	}
	alloctest.AtMost(t, series, 1, func() {
		m := comp.newMerge(ctx, j, nil)
		if err := m.merge(); err != nil {
			t.Fatal(err)
		}
		for _, done := range m.uploads {
			done()
		}
	})
}

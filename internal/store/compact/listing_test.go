package compact

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
)

// hastyList is a bucket whose listings are not snapshots: a change happens during one of them, which shows a
// part of it.
type hastyList struct {
	bucket.Bucket
	lists  int
	before map[int]func() (hidden string)
}

func (b *hastyList) List(ctx context.Context, prefix string, fn func(string, int64) error) error {
	hidden := "nothing"
	if strings.HasPrefix(prefix, "catalog/") {
		if b.lists++; b.before[b.lists] != nil {
			hidden = b.before[b.lists]()
		}
	}
	return b.Bucket.List(ctx, prefix, func(name string, size int64) error {
		if strings.Contains(name, hidden) {
			return nil
		}
		return fn(name, size)
	})
}

// TestListingIsNoSnapshot lets a listing show a block and not the one that was committed before it, which
// overwrites an older one.
func TestListingIsNoSnapshot(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = 20_000*int64(day) + int64(time.Hour)
	ship := func(series int, v float64) catalog.Block {
		s := w.shipment()
		s.addFloat("a", labelsOf(series), 20_000*int64(day), math.Float64bits(v))
		return s.ship(t)
	}
	ship(1, 1)
	// Two listings open the catalogue and look first; the next sees what was shipped last and not what came
	// before it.
	hasty := &hastyList{Bucket: w.bucket, before: map[int]func() string{3: func() string {
		w.now -= 2 * int64(day) // they were written in time, and uploaded late
		overwrites := ship(1, 2)
		ship(2, 3)
		w.now += 2 * int64(day)
		return overwrites.ID
	}}}
	theirs, err := catalog.Open(ctx, hasty, catalog.Options{Now: func() int64 { return w.now }})
	if err != nil {
		t.Fatal(err)
	}
	w.now += 2 * int64(day)
	comp := w.compactor(t, theirs, nil)
	for range 5 {
		if _, err := comp.RunOnce(ctx); err != nil {
			t.Fatal(err)
		}
		w.check(t, w.open(t))
		w.now += int64(day)
	}
	if n := len(w.open(t).Live()); n != 1 {
		t.Errorf("%d blocks are left\n%s", n, list(w.open(t)))
	}
}

// TestDeletionsAreKnownInOrder lets a listing show a deletion and not the one before it.
func TestDeletionsAreKnownInOrder(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = 20_000 * int64(day)
	s := w.shipment()
	s.addFloat("a", labelsOf(1), w.now, 1)
	s.addFloat("b", labelsOf(1), w.now, 1)
	s.ship(t)
	hasty := &hastyList{Bucket: w.bucket, before: map[int]func() string{3: func() string {
		for _, tenant := range []string{"a", "b"} {
			w.remove(t, catalog.Deletion{Deletion: deletion.Deletion{
				Signal: model.Metrics, Tenant: tenant, Range: model.TimeRange{Min: 0, Max: math.MaxInt64}, Matchers: []catalog.Matcher{{}},
			}})
		}
		return "delete-0000000000000001"
	}}}
	theirs, err := catalog.Open(ctx, hasty, catalog.Options{Now: func() int64 { return w.now }})
	if err != nil {
		t.Fatal(err)
	}
	w.now += 2 * int64(day)
	if _, err := w.compactor(t, theirs, nil).RunOnce(ctx); err != nil {
		t.Fatal(err)
	}
	w.check(t, w.open(t))
	if n := len(w.open(t).Live()); n != 0 {
		t.Errorf("%d blocks are left\n%s", n, list(w.open(t)))
	}
}

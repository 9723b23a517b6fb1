package ship

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/part"
	"github.com/shaledb/shale/internal/store/part/file"
)

// rig is a bucket, and a file system with the files of blocks.
type rig struct {
	t  *testing.T
	fs vfs.FS
	b  *fault.Bucket
}

func newRig(t *testing.T) *rig {
	t.Helper()
	fs := vfs.NewMem()
	b, err := bucketfs.New(fs, "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, fs, fault.New(b)}
}

func (r *rig) catalog() *catalog.Catalog {
	r.t.Helper()
	c, err := catalog.Open(r.t.Context(), r.b, catalog.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// shipper returns a shipper of the journal p1/1 that goes on where the catalogue is.
func (r *rig) shipper(c *catalog.Catalog, life string, stale func(error)) *Shipper {
	s := New(Options{FS: r.fs, Bucket: r.b, Catalog: c, InBucket: life != "", Life: life, Stale: stale})
	s.Resume(c.Progress("p1", 1))
	return s
}

// of returns a ship of a block with the rows of some records.
func (r *rig) of(from, to uint64, rest bool) *head.Ship {
	r.t.Helper()
	f, err := r.fs.Create("/block", vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte("rows"))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	m := part.Meta{Signal: model.Metrics, Node: "p1", Epoch: 1, SeqLo: from, SeqHi: to, Range: model.TimeRange{Min: int64(from), Max: int64(to)}, Tenants: []file.Tenant{{Name: "t"}}}
	return &head.Ship{Node: "p1", Epoch: 1, Blocks: []head.Block{{Meta: m, File: "/block", Size: 4}}, Covered: to, Flushed: 7, Rest: rest}
}

// forget removes the record of a ship, as a bucket that was put back does.
func (r *rig) forget(number string) {
	r.t.Helper()
	name := catalog.RecordPrefix + "ship-" + number + ".json"
	for _, n := range []string{name, catalog.CopyName(name)} {
		if err := r.b.Delete(context.Background(), n); err != nil && !errors.Is(err, bucket.ErrNotFound) {
			r.t.Fatal(err)
		}
	}
}

// TestRestFences: of two lives, the one that has shipped a part first goes on, though it has covered nothing.
// The other one ships no more, and is told so once.
func TestRestFences(t *testing.T) {
	r := newRig(t)
	c := r.catalog()
	told := 0
	slow, fast := r.shipper(c, "slow", func(error) { told++ }), r.shipper(c, "fast", nil)
	if err := fast.Ship(t.Context(), r.of(1, 9, true)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := slow.Ship(t.Context(), r.of(1, 5, true)); !errors.Is(err, catalog.ErrStale) {
			t.Fatal(err)
		}
	}
	if err := fast.Ship(t.Context(), r.of(10, 12, false)); err != nil || fast.Covered() != 12 {
		t.Fatal(fast.Covered(), err)
	}
	if told != 1 || slow.Covered() != 0 {
		t.Errorf("told %d times; the stale life counts %d as covered, which the other one wrote", told, slow.Covered())
	}
	if v := c.Covered("p1", 1); v.To != 12 || v.Appended != 0 {
		t.Errorf("covered is %+v; when the batches were appended is not known", v)
	}
}

// TestStaleStays: a life whose ship was lost from the bucket neither goes on from the ship before nor goes on
// once the ship is back.
func TestStaleStays(t *testing.T) {
	r := newRig(t)
	s := r.shipper(r.catalog(), "one", nil)
	for i := range uint64(2) {
		if err := s.Ship(t.Context(), r.of(1+5*i, 5+5*i, false)); err != nil {
			t.Fatal(err)
		}
	}
	r.forget("0000000000000002")
	s.o.Catalog = r.catalog()
	for range 2 {
		if err := s.Ship(t.Context(), r.of(11, 15, false)); !errors.Is(err, catalog.ErrStale) || s.Covered() != 10 {
			t.Fatal(s.Covered(), err)
		}
	}
}

// TestAcceptedLoss: the journal of a folder has one holder, which goes on after the loss of a ship.
func TestAcceptedLoss(t *testing.T) {
	r := newRig(t)
	s := r.shipper(r.catalog(), "", nil)
	for i := range uint64(2) {
		if err := s.Ship(t.Context(), r.of(1+5*i, 5+5*i, true)); err != nil {
			t.Fatal(err)
		}
	}
	r.forget("0000000000000002")
	s.o.Catalog = r.catalog()
	if err := s.Ship(t.Context(), r.of(11, 15, false)); !errors.Is(err, catalog.ErrStale) {
		t.Fatal(err)
	}
	if err := s.Ship(t.Context(), r.of(11, 15, false)); err != nil || s.Covered() != 15 {
		t.Fatal(s.Covered(), err)
	}
	if v := s.o.Catalog.Covered("p1", 1); v.From != 6 || v.Appended != 7 {
		t.Errorf("covered is %+v", v)
	}
}

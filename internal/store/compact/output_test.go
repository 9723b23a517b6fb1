package compact

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/part"
)

// shipMany ships a number of series of each tenant, with some rows that compress badly.
func (w *world) shipMany(t fataler, at int64, series map[string]int) {
	t.Helper()
	s := w.shipment()
	for tenant, n := range series {
		for i := range n {
			for k := range int64(8) {
				s.addFloat(tenant, labelsOf(i), at+k*int64(time.Minute), uint64(i)*0x9e3779b97f4a7c15+uint64(k)*uint64(at))
			}
		}
	}
	s.ship(t)
}

// TestBigTenants gives tenants that take a share of a block blocks of their own, cut by key, and lets the
// others share.
func TestBigTenants(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = dayZero
	series := map[string]int{"big": 600, "large": 200}
	for i := range 30 {
		series[fmt.Sprintf("small-%02d", i)] = 6
	}
	for range 3 {
		w.shipMany(t, w.now, series)
		w.now += int64(2 * time.Hour)
	}
	w.now = dayZero + 25*int64(time.Hour)
	const most = 40 << 10
	comp := w.compactor(t, w.c, func(o *Options) { o.MaxBlockBytes = most; o.maxSeries = 500 })
	run := func(merges int) {
		t.Helper()
		if res, err := comp.RunOnce(ctx); err != nil || res.Merges != merges {
			t.Fatalf("%d merges, should be %d: %v", res.Merges, merges, err)
		}
		w.check(t, w.c)
	}
	run(1)
	blocks := slices.Clone(w.c.Live())
	seen := make(map[string]int)
	for i := range blocks {
		b := &blocks[i]
		for _, tenant := range b.Tenants {
			seen[tenant]++
		}
		if b.Bytes > most+most/4 || b.Series > 500 {
			t.Errorf("block of %d bytes, %d series", b.Bytes, b.Series)
		}
		if big := slices.Contains(b.Tenants, "big") || slices.Contains(b.Tenants, "large"); big != (len(b.Tenants) == 1) {
			t.Errorf("block of %v", b.Tenants)
		}
		for k := range i {
			if b.MayShareSeries(&blocks[k]) {
				t.Errorf("blocks of %v and %v overlap", b.Tenants, blocks[k].Tenants)
			}
		}
		r := w.reader(t, b)
		if win := r.Meta().Windows; win.Start != dayZero || win.Count != 12 {
			t.Errorf("masks of %+v", win)
		}
	}
	for tenant, n := range seen {
		if (n > 1) != (tenant == "big" || tenant == "large") {
			t.Errorf("tenant %s is in %d blocks", tenant, n)
		}
	}
	if len(seen) != 32 || seen["big"] < 3 {
		t.Errorf("%v", seen)
	}
	if n := len(chains(blocks)); n > 3 {
		t.Errorf("%d blocks make %d chains", len(blocks), n)
	}
	// Late rows of one tenant leave the blocks of the others alone, and there is nothing to do after that.
	w.shipMany(t, dayZero+int64(time.Hour), map[string]int{"big": 40})
	w.now += int64(day)
	run(1)
	w.now += 3 * int64(day)
	run(1)
	run(0)
	kept := 0
	for _, b := range blocks {
		if w.c.Has(b.ID) {
			if kept++; slices.Contains(b.Tenants, "big") {
				t.Errorf("a block of %v was left out", b.Tenants)
			}
		}
	}
	if kept != len(blocks)-seen["big"] {
		t.Errorf("%d of %d blocks were left alone, %d had to be written anew", kept, len(blocks), seen["big"])
	}
}

func (w *world) reader(t fataler, b *catalog.Block) *part.Reader {
	t.Helper()
	data, err := w.bucket.Get(ctx, catalog.ObjectName(b.ID))
	if err != nil {
		t.Fatal(err)
	}
	r, err := part.Open(ctx, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSameBytes merges the same blocks twice: a compactor that repeats what another has done writes the same
// objects.
func TestSameBytes(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = dayZero
	for range 3 {
		w.shipMany(t, w.now, map[string]int{"a": 20, "b": 5})
		w.now += int64(2 * time.Hour)
	}
	w.now += int64(day)
	var made [2][]catalog.Block
	for i := range made {
		comp := w.compactor(t, w.c, func(o *Options) { o.MaxBlockBytes = 4 << 10 })
		if err := comp.refresh(ctx); err != nil {
			t.Fatal(err)
		}
		j, _ := comp.next(w.c.Live(), nil)
		m := comp.newMerge(ctx, j, nil)
		if err := m.merge(); err != nil {
			t.Fatal(err)
		}
		for _, done := range m.uploads {
			done()
		}
		made[i] = m.blocks
		w.now += int64(time.Hour)
	}
	for i, b := range made[0] {
		if b.ID != made[1][i].ID {
			t.Errorf("block %d is %s and %s", i, b.ID, made[1][i].ID)
		}
	}
	if len(made[0]) < 2 || len(made[0]) != len(made[1]) {
		t.Errorf("%d and %d blocks", len(made[0]), len(made[1]))
	}
}

// TestAllDeleted removes blocks whose rows are all deleted.
func TestAllDeleted(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = dayZero
	w.shipMany(t, w.now, map[string]int{"a": 5})
	w.remove(t, catalog.Deletion{Deletion: deletion.Deletion{Signal: model.Metrics, Tenant: "a", Matchers: []catalog.Matcher{{}}, Range: model.TimeRange{Min: 0, Max: math.MaxInt64}}})
	comp := w.compactor(t, w.c, nil)
	// The day is not over.
	if res, err := comp.RunOnce(ctx); err != nil || res.Merges != 1 || len(w.c.Live()) != 0 {
		t.Fatalf("%+v, %v\n%s", res, err, list(w.c))
	}
	w.shipMany(t, w.now, map[string]int{"a": 5}) // arrives after the grace
	w.check(t, w.c)
	if res, err := comp.RunOnce(ctx); err != nil || res.Merges != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	// No series satisfies this one: the block is checked once and stays as it is.
	w.remove(t, catalog.Deletion{Deletion: deletion.Deletion{Signal: model.Metrics, Tenant: "a", Matchers: []catalog.Matcher{{Name: "i", Value: "77"}}, Range: model.TimeRange{Min: 0, Max: math.MaxInt64}}})
	if res, err := comp.RunOnce(ctx); err != nil || res.Merges != 0 || len(comp.clean) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	w.check(t, w.open(t))
}

// TestDeletedFromSmallBlocks: small blocks that wait for the end of their day are rewritten together. Those
// without deleted rows stay as they are.
func TestDeletedFromSmallBlocks(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = dayZero
	for range 40 {
		w.shipMany(t, w.now, map[string]int{"a": 5})
		w.now += int64(20 * time.Minute)
	}
	for range 3 {
		w.shipMany(t, w.now, map[string]int{"b": 5})
		w.now += int64(20 * time.Minute)
	}
	gone := deletion.Deletion{Signal: model.Metrics, Tenant: "a", Matchers: []catalog.Matcher{{Name: "i", Value: "2"}}, Range: model.TimeRange{Min: 0, Max: dayZero + int64(10*time.Hour)}}
	w.remove(t, catalog.Deletion{Deletion: gone})
	comp := w.compactor(t, w.c, nil)
	if res, err := comp.RunOnce(ctx); err != nil || res.Merges != 1 || len(w.c.Live()) < 13 || len(w.c.Live()) > 15 {
		t.Fatalf("%+v, %v\n%s", res, err, list(w.c))
	}
	w.check(t, w.c)
	if res, err := comp.RunOnce(ctx); err != nil || res.Merges != 0 {
		t.Fatalf("%+v, %v\n%s", res, err, list(w.c))
	}
	w.check(t, w.open(t))
}

// TestDeletionNextToOneThatWaits: a deletion that may still be cancelled, and matches no series of a block,
// does not keep a later one of another tenant from it, nor has the block written again without that.
func TestDeletionNextToOneThatWaits(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = dayZero
	w.shipMany(t, w.now, map[string]int{"a": 5, "b": 5})
	w.now += int64(2 * time.Hour)
	of := func(tenant, i string, notBefore int64) catalog.Deletion {
		return catalog.Deletion{Deletion: deletion.Deletion{
			Signal: model.Metrics, Tenant: tenant, Matchers: []catalog.Matcher{{Name: "i", Value: i}}, Range: model.TimeRange{Min: 0, Max: dayZero + int64(time.Hour)}, NotBefore: notBefore,
		}}
	}
	w.remove(t, of("a", "99", w.now+int64(day)))
	w.remove(t, of("b", "2", 0))
	comp := w.compactor(t, w.c, nil)
	merges := 0
	for range 3 {
		res, err := comp.RunOnce(ctx)
		if err != nil {
			t.Fatal(err)
		}
		merges += res.Merges
	}
	if left := w.c.Requests("b")[0].Left; merges != 1 || left != 0 {
		t.Errorf("%d merges, and %d blocks have deleted rows\n%s", merges, left, list(w.c))
	}
	w.check(t, w.open(t))
}

// TestDamagedBlock merges the rest, reports the block, and retries later.
func TestDamagedBlock(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = dayZero
	for i := range 4 {
		w.shipMany(t, w.now, map[string]int{fmt.Sprint("t", i): 5})
		w.now += int64(2 * time.Hour)
	}
	w.now += int64(day)
	name := catalog.ObjectName(w.c.Live()[1].ID)
	data, err := w.bucket.Get(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { b[30] ^= 1; return b },
		func(b []byte) []byte { b[len(b)-30] ^= 1; return b },
		func(b []byte) []byte { return b[:len(b)-1] },
	} {
		broken := damage(bytes.Clone(data))
		if err := w.bucket.Put(ctx, name, bytes.NewReader(broken), int64(len(broken))); err != nil {
			t.Fatal(err)
		}
		comp := w.compactor(t, w.c, nil)
		res, err := comp.RunOnce(ctx)
		if err == nil || len(comp.damaged) != 1 {
			t.Fatalf("%+v, %v, damaged: %v", res, err, comp.damaged)
		}
		if _, err = comp.RunOnce(ctx); err != nil || len(w.c.Live()) != 2 {
			t.Fatalf("%v\n%s", err, list(w.c))
		}
	}
	if err := w.bucket.Put(ctx, name, bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
	comp := w.compactor(t, w.c, nil)
	if _, err := comp.RunOnce(ctx); err != nil {
		t.Fatal(err)
	}
	w.check(t, w.open(t))
}

// shipLogs ships four blocks of lines of one day, with small streams and one whose units are copied as they
// are, and ends the day.
func (w *world) shipLogs(t *testing.T) {
	t.Helper()
	r := rand.NewChaCha8([32]byte{})
	random := make([]byte, 150)
	for range 4 {
		s := w.shipment()
		s.signal = model.Logs
		for k := range 1000 {
			i, text := k%3, fmt.Appendf(nil, "took %d", k)
			if k%2 > 0 {
				_, _ = r.Read(random) // never fails
				i, text = 3, fmt.Appendf(nil, "%x", random)
			}
			s.add("a", labelsOf(i), worldtest.LineRow(w.now+int64(k), &model.Line{Text: text}))
		}
		s.ship(t)
		w.now += int64(2 * time.Hour)
	}
	w.now += int64(day)
}

// TestDamagedLines: a block with a damaged page of lines is left out, and the rest is merged.
func TestDamagedLines(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = dayZero
	w.shipLogs(t)
	bad := w.c.Live()[1].ID
	name := catalog.ObjectName(bad)
	data, err := w.bucket.Get(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	var comp *Compactor
	for at := 100; at < len(data); at += len(data) / 100 {
		broken := bytes.Clone(data)
		broken[at] ^= 1
		if err := w.bucket.Put(ctx, name, bytes.NewReader(broken), int64(len(broken))); err != nil {
			t.Fatal(err)
		}
		comp = w.compactor(t, w.c, nil)
		_, err := comp.RunOnce(ctx)
		if _, blamed := comp.damaged[bad]; err == nil || !blamed || len(comp.damaged) != 1 {
			t.Fatalf("byte %d of %d: %v, damaged: %v", at, len(data), err, comp.damaged)
		}
	}
	if _, err = comp.RunOnce(ctx); err != nil || len(w.c.Live()) != 2 {
		t.Errorf("%v\n%s", err, list(w.c))
	}
}

// TestNoRoom merges nothing without room, and leaves no file when the disk fills up during a merge.
func TestNoRoom(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = dayZero
	w.shipMany(t, w.now, map[string]int{"a": 50})
	w.now += 2 * int64(day)
	full := &model.LimitError{Limit: "disk", Text: "the disk is full"}
	asked := int64(0)
	comp := w.compactor(t, w.c, func(o *Options) { o.Room = func(n int64) (func(), error) { asked = n; return func() {}, full } })
	if _, err := comp.RunOnce(ctx); !errors.Is(err, full) || !errors.Is(err, model.ErrTransient) || asked != w.c.Live()[0].Bytes {
		t.Fatalf("%v, %d bytes asked for", err, asked)
	}
	w.fs = &fullFS{w.fs}
	if _, err := w.compactor(t, w.c, nil).RunOnce(ctx); !errors.Is(err, errFull) || !errors.Is(err, model.ErrTransient) {
		t.Fatal(err)
	}
	if left, _ := w.fs.List("compact"); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
	w.fs = w.fs.(*fullFS).FS
	if _, err := w.compactor(t, w.c, nil).RunOnce(ctx); err != nil {
		t.Fatal(err)
	}
	w.check(t, w.open(t))
}

var errFull = errors.New("no space left on device")

// fullFS takes no bytes.
type fullFS struct{ vfs.FS }

func (f *fullFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return &fullFile{file}, err
}

type fullFile struct{ vfs.File }

func (*fullFile) Write([]byte) (int, error) { return 0, errFull }

// TestClose ends a compactor that waits for its bucket.
func TestClose(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = dayZero
	w.shipMany(t, w.now, map[string]int{"a": 5})
	w.now += 2 * int64(day)
	entered := make(chan struct{})
	comp := w.compactor(t, w.c, func(o *Options) {
		o.Room = func(int64) (func(), error) { close(entered); return func() {}, nil }
		o.Interval = time.Hour
	})
	w.bucket.Add(fault.Rule{Kind: fault.Slow, Op: fault.GetRange, Delay: time.Hour})
	comp.Start()
	<-entered
	comp.Close()
	if len(w.c.Live()) != 1 || w.c.Live()[0].Level != catalog.Shipped {
		t.Errorf("%s", list(w.c))
	}
	// One that was never started closes too.
	w.compactor(t, w.c, nil).Close()
}

func TestOptions(t *testing.T) {
	for what, change := range map[string]func(*Options){
		"interval": func(o *Options) { o.Interval = -1 },
		"grace":    func(o *Options) { o.Grace = 48 * time.Hour },
		"bytes":    func(o *Options) { o.MaxBlockBytes = 1 },
		"share":    func(o *Options) { o.BigTenantShare = 2 },
		"rate":     func(o *Options) { o.BytesPerSecond = -1 },
		"inputs":   func(o *Options) { o.MaxInputs = 1 },
		"upload":   func(o *Options) { o.Garbage.UploadGrace = time.Hour },
	} {
		o := Options{FS: vfs.NewMem(), Dir: "x"}
		change(&o)
		if _, err := New(o); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

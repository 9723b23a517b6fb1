package archive

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/part"
)

const seed model.KeySeed = 5

// world is a catalogue and a bucket in memory, and what they hold.
type world struct {
	blocks    []catalog.Block
	objects   map[string][]byte
	deletions catalog.Deletions
	// fail is asked before each read, also by prefetches that outlive their query.
	fail atomic.Pointer[func(name string, off int64) error]
	// written is what each block holds, by tenant and labels.
	written []map[string]*model.SeriesRows
}

func (w *world) WithRollups(r model.TimeRange, s model.Signal, tenant string) (blocks, rollups []catalog.Block, deletions catalog.Deletions) {
	return w.Overlapping(r, s, tenant), nil, nil
}

func (w *world) Overlapping(r model.TimeRange, s model.Signal, tenant string) []catalog.Block {
	return slices.DeleteFunc(slices.Clone(w.blocks), func(b catalog.Block) bool {
		return !b.Range.Overlaps(r) || b.Signal != s || !b.HasTenant(tenant)
	})
}

// failBy makes reads ask fail; nil: no read fails.
func (w *world) failBy(fail func(name string, off int64) error) {
	if fail == nil {
		w.fail.Store(nil)
	} else {
		w.fail.Store(&fail)
	}
}

func (w *world) Missing(model.TimeRange, model.Signal, string) error { return nil }

func (w *world) Deletions(b *catalog.Block, tenant string) catalog.Deletions {
	return w.deletions.Applying(b, tenant)
}

func (w *world) GetRange(_ context.Context, name string, off, n int64) ([]byte, error) {
	if fail := w.fail.Load(); fail != nil {
		if err := (*fail)(name, off); err != nil {
			return nil, err
		}
	}
	o := w.objects[name]
	if off < 0 || off+n > int64(len(o)) {
		return nil, fmt.Errorf("%w: %s has no bytes [%d, %d)", model.ErrInvalid, name, off, off+n)
	}
	return slices.Clone(o[off : off+n]), nil
}

// mapCache keeps everything.
type mapCache struct{ pages *sync.Map }

func newCache() mapCache { return mapCache{new(sync.Map)} }

func (c mapCache) Get(ctx context.Context, k cache.Key, fetch func(context.Context) ([]byte, error)) ([]byte, bool, error) {
	if p, ok := c.pages.Load(k); ok {
		return p.([]byte), true, nil
	}
	p, err := fetch(ctx)
	if err == nil {
		c.pages.Store(k, p)
	}
	return p, false, err
}

func (c mapCache) Peek(k cache.Key) ([]byte, bool) {
	p, ok := c.pages.Load(k)
	if !ok {
		return nil, false
	}
	return p.([]byte), true
}

func (c mapCache) Has(k cache.Key) bool {
	_, ok := c.pages.Load(k)
	return ok
}

func (c mapCache) Close() error { return nil }

func labelsOf(i int) model.Labels {
	return model.LabelsOf("__name__", fmt.Sprint("m", i%3), "i", fmt.Sprint(i))
}

// add makes a block of some series of some tenants. Blocks come in the order of their numbers.
func (w *world) add(t *rapid.T) {
	n := len(w.blocks)
	var buf bytes.Buffer
	o := part.WriterOptions{Seed: seed, Signal: model.Metrics, SeqLo: 1, SeqHi: uint64(100 - n), Labels: true, Level: part.Dense}
	if rapid.Bool().Draw(t, "windows") {
		o.Windows = part.Windows{Length: 10, Count: 6}
	}
	pw := part.NewWriter(&buf, o)
	b := catalog.Block{ID: fmt.Sprint("b", n), Signal: model.Metrics}
	written := make(map[string]*model.SeriesRows)
	for _, tenant := range []string{"a", "b"} {
		byKey := make(map[model.Key]model.Labels)
		for range rapid.IntRange(0, 10).Draw(t, "series") {
			l := labelsOf(rapid.IntRange(0, 20).Draw(t, "i"))
			byKey[l.Key(seed, model.Metrics)] = l
		}
		for _, k := range slices.SortedFunc(maps.Keys(byKey), model.Key.Compare) {
			rows := drawRows(t, n)
			written[tenant+string(byKey[k])] = rows
			if err := errors.Join(pw.Series(tenant, k, byKey[k]), pw.Rows(rows)); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, size, err := pw.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if m.Series == 0 {
		return
	}
	b.Range, b.SeqLo, b.SeqHi, b.Bytes, b.Series, b.Samples = m.Range, m.SeqLo, m.SeqHi, size, m.Series, m.Samples
	b.OrderLo, b.OrderHi = uint64(n+1), uint64(n+1)
	for _, tenant := range m.Tenants {
		b.Tenants = append(b.Tenants, tenant.Name)
	}
	b.TenantCount = len(b.Tenants)
	w.blocks = append(w.blocks, b)
	w.written = append(w.written, written)
	w.objects[catalog.ObjectName(b.ID)] = buf.Bytes()
}

// drawRows draws rows of a series: at least one, of any kind.
func drawRows(t *rapid.T, block int) *model.SeriesRows {
	r := new(model.SeriesRows)
	at := rapid.Int64Range(0, 50).Draw(t, "first")
	for i := range rapid.IntRange(1, 6).Draw(t, "rows") {
		v := math.Float64bits(float64(block)*1000 + float64(at))
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			h := model.Histogram{Sum: v, Count: uint64(i)}
			r.Samples.AppendBlob(at, model.KindHistogram, model.AppendHistogram(nil, &h), 0)
		case 1:
			e := model.Exemplar{Value: v, Labels: model.LabelsOf("trace_id", fmt.Sprint(i))}
			r.Exemplars.AppendBlob(at, model.KindExemplar, model.AppendExemplar(nil, &e), 0)
		default:
			r.Samples.Append(at, v, 0)
		}
		at += rapid.Int64Range(1, 9).Draw(t, "step")
	}
	return r
}

func newWorld(t *rapid.T) (*world, *Archive) {
	w := &world{objects: make(map[string][]byte)}
	for range rapid.IntRange(1, 4).Draw(t, "blocks") {
		w.add(t)
	}
	a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
	a.reach = drawReach(t)
	return w, a
}

// drawReach makes small blocks be read like large ones: with several requests, which also cover unneeded
// pages.
func drawReach(t *rapid.T) reach {
	return reach{
		tail:  rapid.SampledFrom([]int64{0, 300, 1 << 20}).Draw(t, "tail"),
		whole: rapid.SampledFrom([]int64{0, 1 << 20}).Draw(t, "whole"),
		span:  rapid.SampledFrom([]int64{1, 200, 1 << 20}).Draw(t, "span"),
		gap:   rapid.SampledFrom([]int64{0, 50, 1 << 20}).Draw(t, "gap"),
	}
}

// drawDeletions deletes rows of all blocks that there are so far.
func (w *world) drawDeletions(t *rapid.T, signal model.Signal) {
	var all []catalog.Deletion
	for range rapid.IntRange(0, 2).Draw(t, "deletions") {
		from := rapid.Int64Range(-5, 60).Draw(t, "deleted from")
		all = append(all, catalog.Deletion{Deletion: deletion.Deletion{
			Signal: signal, Tenant: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "deleted of"),
			Matchers: []catalog.Matcher{{Name: "i", Op: model.MatchRegexp, Value: rapid.SampledFrom([]string{".*", "1.*", "3|5|7"}).Draw(t, "deleted")}},
			Range:    model.TimeRange{Min: from, Max: from + rapid.Int64Range(0, 100).Draw(t, "deleted span")},
		}})
	}
	w.delete(t, all...)
}

// delete commits deletions.
func (w *world) delete(t interface{ Fatal(...any) }, all ...catalog.Deletion) {
	b, err := fs.New(vfs.NewMem(), "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	c, err := catalog.Open(ctx, b, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if _, err := c.Delete(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	_, w.deletions = c.Snapshot()
}

// expect is what a request selects, by labels: the rows as text.
func (w *world) expect(req *model.Request) map[string][]string {
	all := make(map[string]*model.Rows)
	for i := range w.blocks {
		for id, rows := range w.written[i] {
			l, mine := strings.CutPrefix(id, req.Tenant)
			if !mine || slices.ContainsFunc(req.Matchers, func(m model.Matcher) bool { return !m.Match(string(model.Labels(l).Get(m.Name))) }) {
				continue
			}
			if all[l] == nil {
				all[l] = new(model.Rows)
			}
			deleted := w.deletions.Applying(&w.blocks[i], req.Tenant).Cuts(model.Labels(l)).Ranges()
			from := rows.Family(req.Family)
			for j, at := range from.Times {
				if req.Range.Contains(at) && !slices.ContainsFunc(deleted, func(r model.TimeRange) bool { return r.Contains(at) }) {
					all[l].AppendRows(from, j, j+1)
				}
			}
		}
	}
	return texts(all, req.Family)
}

func texts(all map[string]*model.Rows, f model.Family) map[string][]string {
	out := make(map[string][]string)
	for l, rows := range all {
		rows.NormalizeAs(f)
		for i, at := range rows.Times {
			v := fmt.Sprintf("%x", rows.Values[i])
			if rows.Kind(i) != model.KindFloat {
				v = fmt.Sprintf("%x", rows.Blob(i))
			}
			out[l] = append(out[l], fmt.Sprintf("%d: %d %s", at, rows.Kind(i), v))
		}
	}
	return out
}

func request(tenant string, r model.TimeRange, ms ...model.Matcher) *model.Request {
	return &model.Request{Tenant: tenant, Signal: model.Metrics, Range: r, Matchers: ms, Quota: new(model.Quota), Cost: new(model.Cost)}
}

func equal(name, value string) model.Matcher {
	return model.Matcher{Name: name, Value: value, Match: func(v string) bool { return v == value }}
}

// read returns everything that the request selects, later blocks over earlier ones: by labels, or by key if
// these are not wanted.
func read(a *Archive, req *model.Request) (map[string][]string, error) {
	ctx := context.Background()
	got := make(map[string]*model.Rows)
	cs, err := a.Select(ctx, req)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(cs, func(x, y model.Cursor) int { return cmp.Compare(x.Order(), y.Order()) })
	for _, c := range cs {
		for c.Next(ctx) {
			l := string(c.Labels())
			if req.Unlabelled {
				l = c.Key().String()
			}
			if got[l] == nil {
				got[l] = new(model.Rows)
			}
			if err := c.AppendRows(ctx, got[l]); err != nil {
				return nil, errors.Join(err, c.Close())
			}
		}
		if err := errors.Join(c.Err(), c.Close()); err != nil {
			return nil, err
		}
	}
	return texts(got, req.Family), nil
}

// TestSelect asks for rows of all families, some of them deleted, and compares with what was written.
func TestSelect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, a := newWorld(t)
		w.drawDeletions(t, model.Metrics)
		for range 3 {
			from := rapid.Int64Range(0, 60).Draw(t, "from")
			req := request(rapid.SampledFrom([]string{"a", "b", "none"}).Draw(t, "tenant"),
				model.TimeRange{Min: from, Max: from + rapid.Int64Range(0, 60).Draw(t, "span")},
				equal("__name__", fmt.Sprint("m", rapid.IntRange(0, 2).Draw(t, "name"))))
			req.Family = rapid.SampledFrom([]model.Family{model.Samples, model.Exemplars}).Draw(t, "family")
			req.Unlabelled = rapid.Bool().Draw(t, "unlabelled")
			got, err := read(a, req)
			if err != nil {
				t.Fatal(err)
			}
			want := w.expect(req)
			if req.Unlabelled {
				byKey := make(map[string][]string)
				for l, rows := range want {
					byKey[model.Labels(l).Key(seed, model.Metrics).String()] = rows
				}
				want = byKey
			}
			if !maps.EqualFunc(got, want, slices.Equal[[]string]) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	})
}

// A bucket that fails for a while is asked again; one that goes on failing, or gives wrong bytes, fails the
// query. It never gets a part of the answer.
func TestFailingBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _ := newWorld(t)
		all := request("a", model.Always())
		if len(w.Overlapping(all.Range, model.Metrics, "a")) == 0 {
			t.Skip("the world is empty")
		}
		// Every place fails once, and fails the query.
		var tried sync.Map
		w.failBy(func(name string, off int64) error {
			if _, again := tried.LoadOrStore(fmt.Sprint(name, " ", off), true); !again {
				return fmt.Errorf("%w: busy", model.ErrTransient)
			}
			return nil
		})
		fresh := func() *Archive {
			a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
			a.reach = drawReach(t)
			return a
		}
		got, err := read(fresh(), all)
		for errors.Is(err, model.ErrTransient) {
			got, err = read(fresh(), all)
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := w.expect(all); !maps.EqualFunc(got, want, slices.Equal[[]string]) {
			t.Fatalf("got %v, want %v", got, want)
		}
		gone := fmt.Errorf("%w: gone", model.ErrCorrupt)
		w.failBy(func(string, int64) error { return gone })
		if _, err := read(fresh(), all); !errors.Is(err, gone) {
			t.Fatalf("a bucket that is gone: %v", err)
		}
		w.failBy(nil)
		b := rapid.SampledFrom(w.Overlapping(all.Range, model.Metrics, "a")).Draw(t, "block")
		object := slices.Clone(w.objects[catalog.ObjectName(b.ID)])
		w = &world{blocks: w.blocks, objects: maps.Clone(w.objects), deletions: w.deletions, written: w.written}
		w.objects[catalog.ObjectName(b.ID)] = object
		object[rapid.IntRange(8, len(object)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if damaged, err := read(fresh(), all); err == nil && !maps.EqualFunc(damaged, got, slices.Equal[[]string]) {
			t.Fatalf("damage gives another answer: %v, want %v", damaged, got)
		}
	})
}

// TestLaterVersion: a block of a later version is an error of the server, not of the request.
func TestLaterVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, a := newWorld(t)
		if len(w.Overlapping(model.Always(), model.Metrics, "a")) == 0 {
			t.Skip("no block")
		}
		for _, object := range w.objects {
			tail := object[len(object)-20:] // length, version, checksum, magic
			tail[4] = 200                   // not one more, which may be the version of parts with optional sections
			binary.LittleEndian.PutUint32(tail[8:], crc32.Checksum(tail[:8], crc32.MakeTable(crc32.Castagnoli)))
		}
		_, err := read(a, request("a", model.Always()))
		if !errors.Is(err, model.ErrCorrupt) || errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "this Shale reads versions") {
			t.Fatal(err)
		}
	})
}

func TestForeignSeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _ := newWorld(t)
		a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed + 1, Gap: 512 << 10})
		_, err := read(a, request("a", model.Always()))
		if len(w.Overlapping(model.Always(), model.Metrics, "a")) > 0 && !errors.Is(err, model.ErrCorrupt) {
			t.Fatalf("a block of another installation: %v", err)
		}
	})
}

// TestLabelLists: labels are those of the series that a block in the range has, but for those that are
// deleted from all that the request wants of it.
func TestLabelLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, a := newWorld(t)
		w.drawDeletions(t, model.Metrics)
		ctx := context.Background()
		req := request("a", model.Always(), equal("__name__", "m1"))
		pool := &model.QueryPool{MaxBytes: 1 << 30}
		req.Quota.Pool = pool
		want := make(map[string]bool)
		for i := range w.blocks {
			b := &w.blocks[i]
			for id, rows := range w.written[i] {
				l, mine := strings.CutPrefix(id, "a")
				cuts := w.deletions.Applying(b, "a").Cuts(model.Labels(l))
				left := len(cuts) == 0
				for _, f := range model.PointFamilies() {
					for _, at := range rows.Family(f).Times {
						left = left || !cuts.Cover(model.TimeRange{Min: at, Max: at})
					}
				}
				if mine && string(model.Labels(l).Get("__name__")) == "m1" && left {
					want[string(model.Labels(l).Get("i"))] = true
				}
			}
		}
		got := make(map[string]bool)
		held := int64(0)
		if err := a.LabelValues(ctx, req, "i", func(v []byte) error {
			got[string(v)] = true
			held = max(held, pool.Used())
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, want) {
			t.Fatalf("values %v, want %v", got, want)
		}
		if len(got) > 0 && held < openBytes || pool.Used() != 0 {
			t.Fatalf("%d bytes are charged while labels are listed, %d afterwards", held, pool.Used())
		}
		names := make(map[string]bool)
		if err := a.LabelNames(ctx, req, func(n []byte) error { names[string(n)] = true; return nil }); err != nil {
			t.Fatal(err)
		}
		if (len(names) == 2) != (len(want) > 0) {
			t.Fatalf("names %v of %d series", names, len(want))
		}
	})
}

package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

const seed model.KeySeed = 5

// world is a catalogue and a bucket in memory, and what they hold.
type world struct {
	blocks  []catalog.Block
	objects map[string][]byte
	// fail is asked before each read.
	fail func(name string, off int64) error
	want map[string]map[int64]uint64 // by tenant and labels
}

func (w *world) Overlapping(r model.TimeRange, s model.Signal, tenant string) []catalog.Block {
	return slices.DeleteFunc(slices.Clone(w.blocks), func(b catalog.Block) bool {
		return !b.Range.Overlaps(r) || b.Signal != s || !b.HasTenant(tenant)
	})
}

func (w *world) GetRange(_ context.Context, name string, off, n int64) ([]byte, error) {
	if w.fail != nil {
		if err := w.fail(name, off); err != nil {
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
type mapCache map[string][]byte

func (c mapCache) Page(ctx context.Context, object string, off int64, fetch func(context.Context) ([]byte, error)) ([]byte, bool, error) {
	k := fmt.Sprint(object, off)
	if p, ok := c[k]; ok {
		return p, true, nil
	}
	p, err := fetch(ctx)
	if err == nil {
		c[k] = p
	}
	return p, false, err
}

func labelsOf(i int) model.Labels {
	return model.LabelsOf("__name__", fmt.Sprint("m", i%3), "i", fmt.Sprint(i))
}

// add makes a block of some series of some tenants.
func (w *world) add(t *rapid.T) {
	n := len(w.blocks)
	var buf bytes.Buffer
	pw := part.NewWriter(&buf, part.WriterOptions{Seed: seed, Signal: model.Metrics, SeqLo: uint64(n + 1), SeqHi: uint64(n + 1), Labels: true, Level: part.Dense})
	b := catalog.Block{ID: fmt.Sprint("b", n), Signal: model.Metrics}
	for _, tenant := range []string{"a", "b"} {
		byKey := make(map[model.Key]model.Labels)
		for range rapid.IntRange(0, 10).Draw(t, "series") {
			l := labelsOf(rapid.IntRange(0, 20).Draw(t, "i"))
			byKey[l.Key(seed, model.Metrics)] = l
		}
		for _, k := range slices.SortedFunc(maps.Keys(byKey), model.Key.Compare) {
			var rows model.Rows
			id := tenant + string(byKey[k])
			if w.want[id] == nil {
				w.want[id] = make(map[int64]uint64)
			}
			at := rapid.Int64Range(0, 50).Draw(t, "first")
			for range rapid.IntRange(1, 5).Draw(t, "rows") {
				v := math.Float64bits(float64(n)*1000 + float64(at))
				rows.Append(at, v, 0)
				w.want[id][at] = v // blocks are added in the order of their sequence numbers
				at += rapid.Int64Range(1, 9).Draw(t, "step")
			}
			if err := errors.Join(pw.Series(tenant, k, byKey[k]), pw.Rows(&model.SeriesRows{Samples: rows})); err != nil {
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
	for _, tenant := range m.Tenants {
		b.Tenants = append(b.Tenants, tenant.Name)
	}
	b.TenantCount = len(b.Tenants)
	w.blocks = append(w.blocks, b)
	w.objects[catalog.ObjectName(b.ID)] = buf.Bytes()
}

func newWorld(t *rapid.T) (*world, *Archive) {
	w := &world{objects: make(map[string][]byte), want: make(map[string]map[int64]uint64)}
	for range rapid.IntRange(1, 4).Draw(t, "blocks") {
		w.add(t)
	}
	return w, New(Options{Catalog: w, Bucket: w, Pages: make(mapCache), Seed: seed})
}

func request(tenant string, r model.TimeRange, ms ...model.Matcher) *model.Request {
	return &model.Request{Tenant: tenant, Signal: model.Metrics, Range: r, Matchers: ms, Quota: new(model.Quota), Cost: new(model.Cost)}
}

func equal(name, value string) model.Matcher {
	return model.Matcher{Name: name, Value: value, Match: func(v string) bool { return v == value }}
}

// read returns everything that the request selects, later blocks over earlier ones.
func read(a *Archive, req *model.Request) (map[string]map[int64]uint64, error) {
	ctx := context.Background()
	got := make(map[string]map[int64]uint64)
	cs, err := a.Select(ctx, req)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(cs, func(x, y model.Cursor) int { return int(x.Order()) - int(y.Order()) })
	for _, c := range cs {
		for c.Next(ctx) {
			var rows model.Rows
			if err := c.AppendRows(ctx, &rows); err != nil {
				return nil, err
			}
			id := req.Tenant + string(c.Labels())
			if got[id] == nil && rows.Len() > 0 {
				got[id] = make(map[int64]uint64)
			}
			for i, at := range rows.Times {
				got[id][at] = rows.Values[i]
			}
		}
		if err := errors.Join(c.Err(), c.Close()); err != nil {
			return nil, err
		}
	}
	return got, nil
}

func TestSelect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, a := newWorld(t)
		for range 3 {
			tenant := rapid.SampledFrom([]string{"a", "b", "none"}).Draw(t, "tenant")
			from := rapid.Int64Range(0, 60).Draw(t, "from")
			r := model.TimeRange{Min: from, Max: from + rapid.Int64Range(0, 60).Draw(t, "span")}
			name := fmt.Sprint("m", rapid.IntRange(0, 2).Draw(t, "name"))
			want := make(map[string]map[int64]uint64)
			for id, rows := range w.want {
				l, mine := strings.CutPrefix(id, tenant)
				if !mine || string(model.Labels(l).Get("__name__")) != name {
					continue
				}
				for at, v := range rows {
					if r.Contains(at) {
						if want[id] == nil {
							want[id] = make(map[int64]uint64)
						}
						want[id][at] = v
					}
				}
			}
			req := request(tenant, r, equal("__name__", name))
			got, err := read(a, req)
			if err != nil {
				t.Fatal(err)
			}
			if !maps.EqualFunc(got, want, maps.Equal[map[int64]uint64]) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	})
}

// A bucket that fails for a while is asked again; one that goes on failing, or gives wrong bytes, fails the query. It
// never gets a part of the answer.
func TestFailingBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _ := newWorld(t)
		all := request("a", model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64})
		if len(w.Overlapping(all.Range, model.Metrics, "a")) == 0 {
			t.Skip("the world is empty")
		}
		fails := 0
		w.fail = func(string, int64) error {
			if fails++; fails%2 == 1 {
				return fmt.Errorf("%w: busy", model.ErrTransient)
			}
			return nil
		}
		fresh := func() *Archive {
			a := New(Options{Catalog: w, Bucket: w, Pages: make(mapCache), Seed: seed})
			a.firstPause = 0
			return a
		}
		got, err := read(fresh(), all)
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for _, r := range got {
			rows += len(r)
		}
		want := 0
		for id, r := range w.want {
			if strings.HasPrefix(id, "a") {
				want += len(r)
			}
		}
		if rows != want {
			t.Fatalf("%d rows, want %d", rows, want)
		}
		gone := fmt.Errorf("%w: gone", model.ErrCorrupt)
		w.fail = func(string, int64) error { return gone }
		if _, err := read(fresh(), all); !errors.Is(err, gone) {
			t.Fatalf("a bucket that is gone: %v", err)
		}
		w.fail = nil
		b := rapid.SampledFrom(w.Overlapping(all.Range, model.Metrics, "a")).Draw(t, "block")
		object := w.objects[catalog.ObjectName(b.ID)]
		object[rapid.IntRange(8, len(object)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if damaged, err := read(fresh(), all); err == nil && !maps.EqualFunc(damaged, got, maps.Equal[map[int64]uint64]) {
			t.Fatalf("damage gives another answer: %v, want %v", damaged, got)
		}
	})
}

func TestForeignSeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _ := newWorld(t)
		a := New(Options{Catalog: w, Bucket: w, Pages: make(mapCache), Seed: seed + 1})
		_, err := read(a, request("a", model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}))
		if len(w.Overlapping(model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}, model.Metrics, "a")) > 0 && !errors.Is(err, model.ErrCorrupt) {
			t.Fatalf("a block of another installation: %v", err)
		}
	})
}

func TestLabelLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, a := newWorld(t)
		ctx := context.Background()
		req := request("a", model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}, equal("__name__", "m1"))
		want := make(map[string]bool)
		for id := range w.want {
			if l, mine := strings.CutPrefix(id, "a"); mine && string(model.Labels(l).Get("__name__")) == "m1" {
				want[string(model.Labels(l).Get("i"))] = true
			}
		}
		got := make(map[string]bool)
		if err := a.LabelValues(ctx, req, "i", func(v []byte) error { got[string(v)] = true; return nil }); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, want) {
			t.Fatalf("values %v, want %v", got, want)
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

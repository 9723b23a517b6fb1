package head

import (
	"context"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

// TestNear: among the entries that are near are all that the matchers select.
func TestNear(t *testing.T) {
	values := []string{"", "up", "down", "a.b.c", "a.b.d", "x"}
	rapid.Check(t, func(t *rapid.T) {
		seed := model.KeySeed(rapid.Uint64().Draw(t, "seed"))
		signal := rapid.SampledFrom([]model.Signal{model.Metrics, model.Metrics, model.Logs}).Draw(t, "signal")
		names := []string{"__name__", "job", "instance", "z", "service_name"}
		var entries []labelEntry
		for range rapid.IntRange(0, 60).Draw(t, "series") {
			var pairs []string
			for _, n := range names {
				pairs = append(pairs, n, rapid.SampledFrom(values).Draw(t, n))
			}
			l := model.LabelsOf(pairs...)
			entries = append(entries, labelEntry{key: l.Key(seed, signal), text: string(l)})
		}
		slices.SortFunc(entries, func(a, b labelEntry) int { return a.key.Compare(b.key) })
		var ms []model.Matcher
		for _, n := range names {
			want := rapid.SampledFrom(values).Draw(t, "wanted "+n)
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0, 1:
				ms = append(ms, model.Matcher{Name: n, Value: want, Match: func(v string) bool { return v == want }})
			case 2:
				ms = append(ms, model.Matcher{Name: n, Op: model.MatchNotEqual, Value: want, Match: func(v string) bool { return v != want }})
			}
		}
		refused := func(e labelEntry) bool {
			if a, b := satisfies(e.labels(), ms), matches(e.labels(), ms); a != b {
				t.Fatalf("%s: %v, should be %v", e.labels(), a, b)
			}
			return !satisfies(e.labels(), ms)
		}
		got := slices.DeleteFunc(slices.Clone(near(entries, seed, signal, ms)), refused)
		want := slices.DeleteFunc(slices.Clone(entries), refused)
		if len(got) != len(want) {
			t.Fatalf("%d series, should be %d, of %+v", len(got), len(want), ms)
		}
	})
}

// cacheOf keeps all pages.
type cacheOf struct{ pages sync.Map }

type cachedAt struct {
	object string
	off    int64
}

func (c *cacheOf) Page(ctx context.Context, object string, off int64, fetch func(context.Context) ([]byte, error)) ([]byte, bool, error) {
	if p, ok := c.Kept(object, off); ok {
		return p, true, nil
	}
	p, err := fetch(ctx)
	if err == nil {
		c.pages.Store(cachedAt{object, off}, p)
	}
	return p, false, err
}

func (c *cacheOf) Kept(object string, off int64) ([]byte, bool) {
	p, ok := c.pages.Load(cachedAt{object, off})
	if !ok {
		return nil, false
	}
	return p.([]byte), true
}

func (c *cacheOf) Has(object string, off int64) bool {
	_, ok := c.Kept(object, off)
	return ok
}

// TestCachedPages: a query that asks again reads no page of a part, and says so.
func TestCachedPages(t *testing.T) {
	r := newRig(t, nil)
	r.push("a", 0, 500, r.now, 1)
	r.must(r.head.Flush(context.Background()))
	src, ctx := r.head.Source(&cacheOf{}), context.Background()
	var read [2]int64
	for i := range read {
		req := everything("a")
		cs, err := src.Select(ctx, req)
		r.must(err)
		n := 0
		for cs[0].Next(ctx) {
			n++
		}
		r.must(cs[0].Err())
		r.must(cs[0].Close())
		if n != 500 {
			t.Errorf("%d series", n)
		}
		if read[i] = req.Cost.PagesDisk.Load(); i == 1 && (read[1] != 0 || req.Cost.PagesRAM.Load() < read[0]) {
			t.Errorf("%d pages of the disk and then %d, %d of the cache", read[0], read[1], req.Cost.PagesRAM.Load())
		}
	}
	if read[0] == 0 {
		t.Error("no page was read")
	}
	values := 0
	req := everything("a")
	r.must(src.LabelValues(ctx, req, "i", func([]byte) error { values++; return nil }))
	if values != 500 {
		t.Errorf("%d values", values)
	}
}

// matches reports whether a label set satisfies all matchers.
func matches(l model.Labels, ms []model.Matcher) bool {
	for i := range ms {
		if !ms[i].Match(string(l.Get(ms[i].Name))) {
			return false
		}
	}
	return true
}

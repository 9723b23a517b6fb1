package archive

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// secondQuery is a secondary tier that keeps what a second query wants. lie, if set, may change what it
// returns. A tier that is shared does not know what it has before it is asked.
type secondQuery struct {
	mu      sync.Mutex
	offered map[cache.Key]offered
	kept    map[cache.Key][]byte
	lie     func(value []byte) []byte
	shared  bool
	most    int // values of new blocks; 0: any number
}

type offered struct {
	query uint64
	value []byte
}

func newSecondQuery() *secondQuery {
	return &secondQuery{offered: make(map[cache.Key]offered), kept: make(map[cache.Key][]byte)}
}

func (s *secondQuery) Get(_ context.Context, k cache.Key, by cache.Asker) (f cache.Found) {
	s.Use(k, by)
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.kept[k]
	if ok && s.lie != nil {
		value = s.lie(slices.Clone(value))
	}
	if f.Value = value; ok {
		if f.From = cache.Disk; s.shared {
			f.From = cache.Shared
		}
	}
	return f
}

func (s *secondQuery) GetMany(ctx context.Context, keys []cache.Key, by cache.Asker, found []cache.Found) {
	for i, k := range keys {
		found[i] = s.Get(ctx, k, by)
	}
}

func (s *secondQuery) Has(k cache.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[k] != nil && !s.shared
}

func (s *secondQuery) Offer(k cache.Key, by cache.Asker, value []byte) {
	s.Use(k, by)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[k] == nil {
		s.offered[k] = offered{by.Query, value}
	}
}

func (s *secondQuery) Use(k cache.Key, by cache.Asker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.offered[k]; ok && o.query != by.Query {
		s.kept[k] = o.value
		delete(s.offered, k)
	}
}

func (s *secondQuery) Fresh(_ context.Context, k cache.Key, value []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && len(s.kept) >= s.most {
		return false
	}
	s.kept[k] = value
	return true
}

func (s *secondQuery) Close() error { return nil }

// TestFresh: a block whose pages were given to the tier is queried without a request to the bucket, and one
// of which the tier took a part with fewer of them.
func TestFresh(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	w.addMany(t, 4010, 1)
	b := &w.blocks[0]
	object := w.objects[catalog.ObjectName(b.ID)]
	requests := func(most int) int64 {
		s := newSecondQuery()
		s.most = most
		a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Secondary: s, Seed: seed})
		a.reach.whole = 0 // so that pages count
		if most >= 0 {
			if err := a.Fresh(context.Background(), b, bytes.NewReader(object)); err != nil {
				t.Fatal(err)
			}
		}
		req := request("a", model.Always(), equal("__name__", "m"))
		if n := walk(t, a, req); n != 4010 {
			t.Errorf("%d series", n)
		}
		return req.Cost.BucketRequests.Load()
	}
	none, some, all := requests(-1), requests(3), requests(0)
	if all != 0 || some == 0 || some >= none {
		t.Errorf("%d requests without pages in the tier, %d with some of them, %d with all", none, some, all)
	}
	a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Secondary: newSecondQuery(), Seed: seed})
	if err := a.Fresh(context.Background(), b, bytes.NewReader(object[:len(object)/2])); err == nil {
		t.Error("a file that is cut gives no error")
	}
}

// TestSecondary: a page that a second query finds in memory is in the secondary tier. A new process answers
// the query from that tier alone.
func TestSecondary(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared %t", shared), func(t *testing.T) { testSecondary(t, shared) })
	}
}

func testSecondary(t *testing.T, shared bool) {
	w := &world{objects: make(map[string][]byte)}
	w.addMany(t, 4000, 1, 2, 3, 4, 5, 6, 7, 8)
	w.addMany(t, 10, 9)
	s := newSecondQuery()
	start := func() *Archive {
		return New(Options{Catalog: w, Bucket: w, Pages: newCache(), Secondary: s, Seed: seed})
	}
	query := func(a *Archive) *model.Cost {
		req := request("a", model.Always(), equal("__name__", "m"))
		if n := walk(t, a, req); n != 4010 {
			t.Errorf("%d series", n)
		}
		return req.Cost
	}
	a := start()
	first := query(a)
	if query(start()); len(s.kept) == 0 {
		t.Error("nothing is kept that two queries read from the bucket")
	}
	s = newSecondQuery()
	s.shared = shared
	a = start()
	query(a)
	if len(s.kept) != 0 {
		t.Errorf("%d values are kept after one query", len(s.kept))
	}
	query(a)
	restarted := query(start())
	if n := restarted.BucketRequests.Load(); n != 0 {
		t.Errorf("%d requests to the bucket after a restart", n)
	}
	// Index pages of a block whose end was read come with it.
	disk, other := restarted.PagesDisk.Load(), restarted.PagesShared.Load()
	if shared {
		disk, other = other, disk
	}
	if other != 0 {
		t.Errorf("%d pages count as those of another tier", other)
	}
	if bucket := first.PagesBucket.Load(); disk == 0 || disk > bucket || restarted.PagesBucket.Load() > bucket-disk {
		t.Errorf("%d pages from the tier, %d from the bucket before", disk, bucket)
	}
}

// TestReusedName: a block never gets a page of another one that had its name before.
func TestReusedName(t *testing.T) {
	s := newSecondQuery()
	for _, v := range []int64{1, 2} {
		w := &world{objects: make(map[string][]byte)}
		w.addMany(t, 100, v)
		w.blocks[0].Created = v
		for range 3 {
			a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Secondary: s, Seed: seed})
			got, err := read(a, request("a", model.Always(), equal("__name__", "m")))
			if err != nil || len(got) != 100 {
				t.Fatal(len(got), err)
			}
			for l, rows := range got {
				if want := fmt.Sprintf("%d: ", v); len(rows) != 1 || !strings.HasPrefix(rows[0], want) {
					t.Fatalf("%s: got %q, expected a row at %s", l, rows, want)
				}
			}
		}
	}
}

// TestLyingTier: whatever the secondary tier returns, results are right.
func TestLyingTier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _ := newWorld(t)
		s := newSecondQuery()
		s.shared = rapid.Bool().Draw(t, "shared")
		reach := drawReach(t)
		req := func() *model.Request {
			return request("a", model.Always(), equal("__name__", "m1"))
		}
		for range 2 {
			a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Secondary: s, Seed: seed})
			a.reach = reach
			for range 2 {
				if _, err := read(a, req()); err != nil {
					t.Fatal(err)
				}
			}
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "lies"), 1))
		s.lie = func(value []byte) []byte {
			switch r.IntN(5) {
			case 4:
				return nil
			case 0:
				return value[:r.IntN(len(value))]
			case 1:
				value[r.IntN(len(value))] ^= 1 << r.IntN(8)
			case 2:
				return append(value, value...)
			}
			return value
		}
		a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Secondary: s, Seed: seed})
		a.reach = reach
		got, err := read(a, req())
		if err != nil {
			t.Fatal(err)
		}
		if want := w.expect(req()); !maps.EqualFunc(got, want, slices.Equal[[]string]) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

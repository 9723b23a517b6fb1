package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/part"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nameOf is the value of a label of the i-th series, in no order.
func nameOf(i int) string { return fmt.Sprintf("%x", uint64(i)*0x9e3779b97f4a7c15) }

// addMany makes a block of n series with rows at the given times, the values of which do not compress.
func (w *world) addMany(t testing.TB, n int, times ...int64) {
	x := uint64(1)
	w.addSeries(t, n, func(int) *model.SeriesRows {
		rows := new(model.SeriesRows)
		for _, at := range times {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			rows.Samples.Append(at, x>>2, 0)
		}
		return rows
	})
}

// addSeries makes a block of n series with the rows that are returned for each.
func (w *world) addSeries(t testing.TB, n int, rowsOf func(i int) *model.SeriesRows) {
	var buf bytes.Buffer
	pw := part.NewWriter(&buf, part.WriterOptions{Seed: seed, Signal: model.Metrics, SeqLo: 1, SeqHi: 2, Labels: true, Level: part.Dense})
	type keyed struct {
		k model.Key
		l model.Labels
	}
	series := make([]keyed, n)
	for i := range series {
		l := model.LabelsOf("__name__", "m", "i", nameOf(i))
		series[i] = keyed{l.Key(seed, model.Metrics), l}
	}
	slices.SortFunc(series, func(a, b keyed) int { return a.k.Compare(b.k) })
	for i, s := range series {
		if err := pw.Series("a", s.k, s.l); err != nil {
			t.Fatal(err)
		}
		if err := pw.Rows(rowsOf(i)); err != nil {
			t.Fatal(err)
		}
	}
	m, size, err := pw.Finish()
	if err != nil {
		t.Fatal(err)
	}
	at := uint64(len(w.blocks) + 1)
	b := catalog.Block{ID: fmt.Sprint("b", at), Signal: model.Metrics, Range: m.Range, Bytes: size, Tenants: []string{"a"}, TenantCount: 1, OrderLo: at, OrderHi: at}
	w.blocks = append(w.blocks, b)
	w.objects[catalog.ObjectName(b.ID)] = buf.Bytes()
}

// far counts the requests that are under way at one time.
type far struct {
	*world
	now, most atomic.Int32
}

func (f *far) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	f.most.Store(max(f.most.Load(), f.now.Add(1)))
	defer f.now.Add(-1)
	time.Sleep(2 * time.Millisecond)
	return f.world.GetRange(ctx, name, off, n)
}

// TestRequests: what lies together is read together. The figures are those that docs/read-path.md gives, so
// that a page fetched by itself is noticed.
func TestRequests(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	var times []int64
	for i := range int64(40) {
		times = append(times, i)
	}
	const blocks, series = 20, 4000
	w.addMany(t, series, times...)
	for i := range uint64(blocks - 1) {
		b := w.blocks[0]
		b.ID, b.OrderLo, b.OrderHi = fmt.Sprint("copy", i), i+2, i+2
		w.objects[catalog.ObjectName(b.ID)] = w.objects[catalog.ObjectName(w.blocks[0].ID)]
		w.blocks = append(w.blocks, b)
	}
	size := w.blocks[0].Bytes
	for name, c := range map[string]struct {
		matchers []model.Matcher
		series   int64
		perBlock int64 // requests
	}{
		// The end, a page of postings, and keys, labels and rows of one series, which are less than the gap
		// apart or not.
		"none": {[]model.Matcher{equal("__name__", "m"), equal("i", "none")}, 0, 2},
		"one":  {[]model.Matcher{equal("__name__", "m"), equal("i", nameOf(7))}, 1, 4},
		"all":  {[]model.Matcher{equal("__name__", "m")}, series, 4 + size>>20},
	} {
		b := &far{world: w}
		a := New(Options{Catalog: w, Bucket: b, Pages: newCache(), Seed: seed, Gap: 512 << 10})
		req := request("a", model.Always(), c.matchers...)
		if n := walk(t, a, req); n != blocks*c.series {
			t.Errorf("%s: %d series", name, n)
		}
		if n := req.Cost.BucketRequests.Load(); n > blocks*c.perBlock {
			t.Errorf("%s: %d requests for %d blocks of %d bytes, should be at most %d each", name, n, blocks, size, c.perBlock)
		}
		if n := int64(b.most.Load()); n < 2 || n > openAtOnce+parallelReads {
			t.Errorf("%s: %d requests at one time", name, n)
		}
		t.Logf("%s: %d requests, %d pages, %d bytes, %d at one time", name, req.Cost.BucketRequests.Load(), req.Cost.PagesBucket.Load(), req.Cost.BytesBucket.Load(), b.most.Load())
		// What is cached is not asked for again.
		again := request("a", model.Always(), c.matchers...)
		if walk(t, a, again); again.Cost.BucketRequests.Load() != 0 {
			t.Errorf("%s: asked again: %d requests", name, again.Cost.BucketRequests.Load())
		}
	}
}

// TestUnlabelled: labels that are not wanted are not read, unless they tell what has been deleted.
func TestUnlabelled(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	const series = 4000
	w.addMany(t, series, 1, 2)
	// Pages, not bytes: what lies between two pages that are wanted comes with them.
	pagesOf := func(unlabelled bool) int64 {
		a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
		req := request("a", model.Always(), equal("__name__", "m"))
		req.Unlabelled = unlabelled
		if n := walk(t, a, req); n != series {
			t.Fatalf("%d series", n)
		}
		return req.Cost.PagesBucket.Load()
	}
	labelled := pagesOf(false)
	if got := pagesOf(true); got >= labelled {
		t.Errorf("%d pages without labels, %d with", got, labelled)
	}
	w.delete(t, catalog.Deletion{Deletion: deletion.Deletion{Signal: model.Metrics, Tenant: "a", Matchers: []catalog.Matcher{{Name: "i", Value: "none"}}, Range: model.Always()}})
	if got := pagesOf(true); got != labelled {
		t.Errorf("%d pages although labels tell what has been deleted, %d with labels", got, labelled)
	}
}

// walk reads all cursors to their ends, and returns how many series they have.
func walk(t *testing.T, a *Archive, req *model.Request) (n int64) {
	ctx := context.Background()
	cs, err := a.Select(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	var rows model.Rows
	for _, c := range cs {
		for c.Next(ctx) {
			n++
			rows.Reset()
			if err := c.AppendRows(ctx, &rows); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(c.Err(), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// TestAheadIsCharged: prefetched pages are charged, a query without room for them reads page by page, and a
// cursor that is closed early leaves nothing charged.
func TestAheadIsCharged(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	w.addMany(t, 20_000, 1, 2, 3)
	ctx := context.Background()
	room := int64(0)
	for range 2 {
		a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
		pool := &model.QueryPool{MaxBytes: 1 << 40}
		req := request("a", model.Always())
		req.Quota.Pool, req.Quota.MaxBytes = pool, room
		cs, err := a.Select(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		if room == 0 {
			room = pool.Used() - 1
			if room < cursorBytes+100_000 {
				t.Fatalf("%d bytes are charged while %d are read ahead", pool.Used(), w.blocks[0].Bytes)
			}
		}
		n := 0
		for cs[0].Next(ctx) {
			if n++; n == 10 && req.Quota.MaxBytes == 0 {
				break
			}
		}
		if err := cs[0].Err(); err != nil {
			t.Fatal(err)
		}
		if err := cs[0].Close(); err != nil || pool.Used() != 0 {
			t.Fatalf("%v, %d bytes stay charged", err, pool.Used())
		}
		if req.Quota.MaxBytes > 0 && n != 20_000 {
			t.Fatalf("%d series", n)
		}
	}
}

// TestAheadLeavesRoom: what is read ahead does not make a query fail that has room for what it needs.
func TestAheadLeavesRoom(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	w.addMany(t, 20_000, 1, 2, 3)
	const blocks = 30
	for i := range uint64(blocks - 1) {
		b := w.blocks[0]
		b.ID, b.OrderLo, b.OrderHi = fmt.Sprint("copy", i), i+2, i+2
		w.objects[catalog.ObjectName(b.ID)] = w.objects[catalog.ObjectName(w.blocks[0].ID)]
		w.blocks = append(w.blocks, b)
	}
	for _, perBlock := range []int64{cursorBytes + 400<<10, 3 * cursorBytes} {
		a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
		pool := &model.QueryPool{MaxBytes: 1 << 40}
		req := request("a", model.Always())
		req.Quota.Pool, req.Quota.MaxBytes = pool, blocks*perBlock
		if n := walk(t, a, req); n != blocks*20_000 || pool.Used() != 0 {
			t.Errorf("%d bytes a block: %d series, %d bytes stay charged", perBlock, n, pool.Used())
		}
	}
}

// TestAheadOfTheSamePage: a page that is wanted twice, and is longer than a request should be, is read once.
func TestAheadOfTheSamePage(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	w.addMany(t, 10, 1)
	a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
	a.reach.span = 1
	req := request("a", model.Always())
	p := a.pagesOf(&w.blocks[0], "a", req.Cost)
	h := newAhead(context.Background(), p, newLanes(), req.Quota)
	defer h.close()
	at := part.Addr{Off: 8, Len: 100}
	h.plan([]part.Addr{at, at})
	if len(h.spans) != 1 || h.held != 100 || h.spans[0].left != 1 {
		t.Fatalf("%d requests, %d bytes", len(h.spans), h.held)
	}
	if b, err := h.take(context.Background(), at); err != nil || len(b.Value) != 100 || h.held != 0 {
		t.Fatalf("%d bytes, %v; %d are held", len(b.Value), err, h.held)
	}
	// Another plan may come before the reader has put the page into the cache.
	if h.plan([]part.Addr{at}); len(h.spans) != 1 || h.held != 0 {
		t.Errorf("%d requests after a second plan, %d bytes", len(h.spans), h.held)
	}
}

// short gives a byte less than it is asked for.
type short struct{ *world }

func (s short) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	return s.world.GetRange(ctx, name, off, n-1)
}

// TestShortReads: less than was asked for is an error, be it the end of a block or what is read ahead.
func TestShortReads(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	w.addMany(t, 10, 1)
	a := New(Options{Catalog: w, Bucket: short{w}, Pages: newCache(), Seed: seed})
	req := request("a", model.Always())
	if _, err := a.Select(context.Background(), req); !errors.Is(err, model.ErrCorrupt) {
		t.Error(err)
	}
	p := a.pagesOf(&w.blocks[0], "a", req.Cost)
	h := newAhead(context.Background(), p, newLanes(), req.Quota)
	defer h.close()
	at := part.Addr{Off: 8, Len: 100}
	h.plan([]part.Addr{at})
	if _, err := h.take(context.Background(), at); !errors.Is(err, model.ErrCorrupt) {
		t.Error(err)
	}
}

// nears notes what reads say of the bytes near them.
type nears struct {
	*world
	mu   sync.Mutex
	said [][2]int64
}

func (n *nears) GetRange(ctx context.Context, name string, off, count int64) ([]byte, error) {
	from, to := model.NearOf(ctx)
	n.mu.Lock()
	n.said = append(n.said, [2]int64{from, to})
	n.mu.Unlock()
	return n.world.GetRange(ctx, name, off, count)
}

// TestNearWithoutRoom: a query that has no room for a span reads its pages one by one, each time, and names
// the same runs of the span, in whichever order it reads them.
func TestNearWithoutRoom(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	w.addMany(t, 10, 1)
	w.objects[catalog.ObjectName(w.blocks[0].ID)] = make([]byte, 4<<20)
	const page = 300 << 10 // three of them are within nearBytes
	var pages []part.Addr
	for i := range int64(7) {
		pages = append(pages, part.Addr{Off: i * page, Len: page})
	}
	for _, backward := range []bool{false, true} {
		n := &nears{world: w}
		a := New(Options{Catalog: w, Bucket: n, Pages: newCache(), Seed: seed, Gap: 512 << 10})
		req := request("a", model.Always())
		req.Quota.MaxBytes = 1 << 20
		p := a.pagesOf(&w.blocks[0], "a", req.Cost)
		p.ahead = newAhead(context.Background(), p, newLanes(), req.Quota)
		p.Fetch(context.Background(), pages)
		order := slices.Clone(pages)
		if backward {
			slices.Reverse(order)
		}
		for _, at := range slices.Concat(order, order[:1]) {
			if _, err := p.open(context.Background(), at, func(stored []byte) ([]byte, error) { return stored, nil }); err != nil {
				t.Fatal(err)
			}
		}
		p.ahead.close()
		want := [][2]int64{{0, 3 * page}, {0, 3 * page}, {0, 3 * page}, {3 * page, 6 * page}, {3 * page, 6 * page}, {3 * page, 6 * page}, {6 * page, 7 * page}}
		if backward {
			slices.Reverse(want)
		}
		if want = append(want, want[0]); !slices.Equal(n.said, want) {
			t.Errorf("backward %t: the bucket is told %v, expected %v", backward, n.said, want)
		}
	}
}

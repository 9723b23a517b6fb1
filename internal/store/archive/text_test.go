package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	reading "github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// line is a row of text.
type line struct {
	at   int64
	text string
	meta string
}

// textOf makes rows of lines.
func textOf(lines []line) *model.TextRows {
	r := &model.TextRows{}
	for _, l := range lines {
		r.Times = append(r.Times, l.at)
		r.Bytes = append(r.Bytes, l.text...)
		r.Ends = append(r.Ends, uint32(len(r.Bytes)))
		of := uint32(0)
		if l.meta != "" {
			set := model.LabelsOf("id", l.meta)
			at := slices.IndexFunc(r.Metadata, func(m model.Labels) bool { return bytes.Equal(m, set) })
			if at < 0 {
				at = len(r.Metadata)
				r.Metadata = append(r.Metadata, set)
			}
			of = uint32(at) + 1
		}
		r.MetadataOf = append(r.MetadataOf, of)
	}
	return r
}

// addText makes a block of lines, by labels, of the tenant a.
func (w *world) addText(t fataler, series map[string][]line) {
	var buf bytes.Buffer
	pw := part.NewWriter(&buf, part.WriterOptions{Seed: seed, Signal: model.Logs, SeqLo: 1, SeqHi: 2, Labels: true, Level: part.Dense})
	byKey := make(map[model.Key]model.Labels)
	for l := range series {
		byKey[model.Labels(l).Key(seed, model.Logs)] = model.Labels(l)
	}
	for _, k := range slices.SortedFunc(maps.Keys(byKey), model.Key.Compare) {
		l := byKey[k]
		texts := []part.Text{part.TextOfRows(textOf(series[string(l)]))}
		if err := errors.Join(pw.Series("a", k, l), pw.Text(context.Background(), texts, model.Always())); err != nil {
			t.Fatal(err)
		}
	}
	m, size, err := pw.Finish()
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(len(w.blocks) + 1)
	b := catalog.Block{
		ID: fmt.Sprint("b", n), Signal: model.Logs, Range: m.Range, Bytes: size, Tenants: []string{"a"}, TenantCount: 1, OrderLo: n, OrderHi: n,
	}
	w.blocks = append(w.blocks, b)
	w.objects[catalog.ObjectName(b.ID)] = buf.Bytes()
}

type fataler interface {
	Fatal(args ...any)
}

// collectText reads all lines of a request, by labels, over a cache that keeps nothing unless there is one.
func collectText(a *Archive, req *model.Request) (map[string][]line, error) {
	ctx := context.Background()
	set, err := reading.New(reading.Options{Sources: []reading.Source{a}}).SelectText(ctx, req)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	got := make(map[string][]line)
	for set.Next(ctx) {
		chunks, err := set.Chunks(ctx, nil)
		if err != nil {
			return nil, err
		}
		var pages []model.TextPage
		for _, c := range chunks {
			pages = append(pages, c.Page)
		}
		reading.PrefetchText(ctx, pages, model.WantLines|model.WantMetadata)
		for _, c := range chunks {
			var rows model.TextRows
			if err := c.Page.ReadText(ctx, c.Index, model.WantLengths, &rows); err != nil {
				return nil, err
			}
			if n := rows.Len(); n != c.Rows || n == 0 || rows.Times[0] != c.Min || rows.Times[n-1] != c.Max {
				return nil, fmt.Errorf("a chunk of %d rows in %v has those of %v", c.Rows, c.TimeRange, rows.Times)
			}
			if n := int64(rows.Ends[len(rows.Ends)-1] - rows.Begin); c.Bytes != n {
				return nil, fmt.Errorf("a chunk of %d bytes has lines of %d bytes", c.Bytes, n)
			}
		}
		lines, err := readtest.Lines(ctx, chunks, req.Range)
		if err != nil {
			return nil, err
		}
		l := string(set.Labels())
		for _, x := range lines {
			got[l] = append(got[l], line{x.Time, x.Text, string(x.Metadata.Get("id"))})
		}
	}
	return got, set.Err()
}

func textRequest(r model.TimeRange, ms ...model.Matcher) *model.Request {
	req := request("a", r, ms...)
	req.Signal = model.Logs
	return req
}

// TestSelectText writes random lines into blocks that overlap, deletes some, and compares what is read with a
// list.
func TestSelectText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{objects: make(map[string][]byte)}
		var written []map[string][]line
		for range rapid.IntRange(1, 4).Draw(t, "blocks") {
			series := make(map[string][]line)
			for range rapid.IntRange(1, 6).Draw(t, "series") {
				l := string(labelsOf(rapid.IntRange(0, 9).Draw(t, "i")))
				for range rapid.IntRange(1, 8).Draw(t, "lines") {
					x := line{rapid.Int64Range(0, 50).Draw(t, "at"), rapid.SampledFrom([]string{"", "a", "needle", "\xff"}).Draw(t, "text"), rapid.SampledFrom([]string{"", "", "x"}).Draw(t, "meta")}
					if rapid.IntRange(0, 15).Draw(t, "long") == 0 {
						x.text = strings.Repeat(x.text+fmt.Sprint(x.at), 60_000)
					}
					if !slices.Contains(series[l], x) {
						series[l] = append(series[l], x)
					}
				}
				slices.SortStableFunc(series[l], func(a, b line) int { return cmp.Compare(a.at, b.at) })
			}
			w.addText(t, series)
			written = append(written, series)
		}
		w.drawDeletions(t, model.Logs)
		a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
		a.reach = drawReach(t)
		rg := model.Always()
		if rapid.Bool().Draw(t, "bounded") {
			rg.Min = rapid.Int64Range(0, 50).Draw(t, "min")
			rg.Max = rg.Min + rapid.Int64Range(0, 30).Draw(t, "width")
		}
		want := make(map[string][]line)
		for i, series := range written {
			for l, lines := range series {
				gone := w.Deletions(&w.blocks[i], "a").Cuts(model.Labels(l)).Ranges()
				for _, x := range lines {
					deleted := slices.ContainsFunc(gone, func(r model.TimeRange) bool { return r.Contains(x.at) })
					if rg.Contains(x.at) && !deleted && !slices.Contains(want[l], x) {
						want[l] = append(want[l], x)
					}
				}
				slices.SortStableFunc(want[l], func(a, b line) int { return cmp.Compare(a.at, b.at) })
			}
		}
		maps.DeleteFunc(want, func(_ string, lines []line) bool { return len(lines) == 0 })
		got, err := collectText(a, textRequest(rg))
		if err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(got, func(_ string, lines []line) bool { return len(lines) == 0 })
		if !maps.EqualFunc(got, want, slices.Equal[[]line]) {
			t.Fatalf("got %.2000s, want %.2000s", fmt.Sprintf("%v", got), fmt.Sprintf("%v", want))
		}
	})
}

// manyLines is a block of n series with so many lines each, which are alike but for a number.
func manyLines(n, lines int) map[string][]line {
	series := make(map[string][]line)
	for i := range n {
		l := string(model.LabelsOf("service_name", "shop", "i", nameOf(i)))
		for k := range lines {
			series[l] = append(series[l], line{at: int64(k), text: fmt.Sprintf("level=info msg=%q id=%s", "request completed", nameOf(i*lines+k))})
		}
	}
	return series
}

// TestTextFailures: whatever read fails, the query does, with an error that names the block; none gives fewer
// lines.
func TestTextFailures(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	w.addText(t, manyLines(5, 3000))
	want, err := collectText(New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10}), textRequest(model.Always()))
	if err != nil || len(want) != 5 {
		t.Fatal(len(want), err)
	}
	places := make(map[int64]bool)
	var mu sync.Mutex
	w.failBy(func(_ string, off int64) error {
		mu.Lock()
		defer mu.Unlock()
		places[off] = true
		return nil
	})
	small := func() *Archive {
		a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
		a.reach = reach{span: 1}
		return a
	}
	if _, err := collectText(small(), textRequest(model.Always())); err != nil || len(places) < 10 {
		t.Fatal(len(places), err)
	}
	for _, at := range slices.Sorted(maps.Keys(places)) {
		w.failBy(func(_ string, off int64) error {
			if off == at {
				return fmt.Errorf("%w: damaged", model.ErrCorrupt)
			}
			return nil
		})
		pool := &model.QueryPool{MaxBytes: 1 << 30}
		req := textRequest(model.Always())
		req.Quota.Pool = pool
		if _, err := collectText(small(), req); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), "block b1") {
			t.Errorf("a read at %d that fails: %v", at, err)
		}
	}
}

// TestTextCharges: what pages and cursors hold is charged, refused where there is no room, and given back.
func TestTextCharges(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	w.addText(t, manyLines(3, 20_000))
	ctx := context.Background()
	a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
	pool := &model.QueryPool{MaxBytes: 1 << 30}
	req := textRequest(model.Always())
	req.Quota.Pool = pool
	cs, err := a.SelectText(ctx, req)
	if err != nil || len(cs) != 1 {
		t.Fatal(err)
	}
	open := pool.Used()
	var held []model.TextChunk
	for cs[0].Next(ctx) {
		if held, err = cs[0].Chunks(ctx, held); err != nil {
			t.Fatal(err)
		}
	}
	var lines int64
	for _, c := range held {
		var rows model.TextRows
		if err := c.Page.ReadText(ctx, c.Index, model.WantLines, &rows); err != nil {
			t.Fatal(err)
		}
		lines += c.Bytes
	}
	if got := pool.Used() - open; got < lines {
		t.Errorf("%d bytes are charged for %d bytes of lines", got, lines)
	}
	if req.Cost.TextPages.Load() == 0 {
		t.Error("the cost says that there were no pages")
	}
	for _, c := range held {
		c.Page.Release()
	}
	if got := pool.Used(); got > open {
		t.Errorf("%d bytes are charged after the pages were released, %d before", got, open)
	}
	pool.MaxBytes = pool.Used() + 100
	for _, c := range held {
		var rows model.TextRows
		if err := c.Page.ReadText(ctx, c.Index, model.WantLines, &rows); !errors.Is(err, model.ErrTransient) {
			t.Fatalf("a page without room: %v", err)
		}
	}
	if err := cs[0].Close(); err != nil || pool.Used() != 0 {
		t.Errorf("%d bytes are held at the end: %v", pool.Used(), err)
	}
}

// TestTextRequests: pages of text that are announced are read together, those whose filter says so not at
// all.
func TestTextRequests(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	w.addText(t, manyLines(4, 40_000))
	size := w.blocks[0].Bytes
	a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
	req := textRequest(model.Always())
	if got, err := collectText(a, req); err != nil || len(got) != 4 {
		t.Fatal(len(got), err)
	}
	// The end, postings, keys and labels, and of each series its lines, by the megabyte.
	if n := req.Cost.BucketRequests.Load(); n > 6+4+size>>20 {
		t.Errorf("%d requests for a block of %d bytes", n, size)
	}
	t.Logf("%d requests, %d pages, %d bytes of %d", req.Cost.BucketRequests.Load(), req.Cost.PagesBucket.Load(), req.Cost.BytesBucket.Load(), size)
	// Concurrent readers of all pages of a cursor.
	ctx := context.Background()
	cs, err := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10}).SelectText(ctx, textRequest(model.Always()))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for cs[0].Next(ctx) {
		chunks, err := cs[0].Chunks(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chunks {
			wg.Go(func() {
				var rows model.TextRows
				if err := c.Page.ReadText(ctx, c.Index, model.WantLines|model.WantMetadata, &rows); err != nil || rows.Len() != c.Rows {
					t.Errorf("%d rows of %d: %v", rows.Len(), c.Rows, err)
				}
				c.Page.Release()
			})
		}
	}
	wg.Wait()
	if err := errors.Join(cs[0].Err(), cs[0].Close()); err != nil {
		t.Error(err)
	}
}

// TestTextBackwards: pages that are announced from the last to the first are read ahead in that order.
func TestTextBackwards(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	w.addText(t, manyLines(1, 200_000))
	a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
	a.reach = reach{span: 1}
	ctx := context.Background()
	cs, err := a.SelectText(ctx, textRequest(model.Always()))
	if err != nil || !cs[0].Next(ctx) {
		t.Fatal(err)
	}
	chunks, err := cs[0].Chunks(ctx, nil)
	if err != nil || len(chunks) < 2*spansAhead {
		t.Fatal(len(chunks), err)
	}
	var pages []model.TextPage
	for _, c := range slices.Backward(chunks) {
		pages = append(pages, c.Page)
	}
	var mu sync.Mutex
	var offs []int64
	w.failBy(func(_ string, off int64) error {
		mu.Lock()
		defer mu.Unlock()
		offs = append(offs, off)
		return nil
	})
	reading.PrefetchText(ctx, pages, model.WantLines)
	for begun := 0; begun < spansAhead; {
		time.Sleep(time.Millisecond)
		mu.Lock()
		begun = len(offs)
		mu.Unlock()
	}
	if err := cs[0].Close(); err != nil { // waits for what has begun
		t.Fatal(err)
	}
	if slices.Min(offs) < w.blocks[0].Bytes/4 {
		t.Errorf("of %d bytes those at %v were read ahead", w.blocks[0].Bytes, offs)
	}
}

// TestTextEnds: the newest lines of a chunk come as they do of all of it, from the bucket, from an end that
// is cached and long enough, and from a page that is; and what they take is charged once.
func TestTextEnds(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	w.addText(t, manyLines(3, 20_000))
	ctx := context.Background()
	a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
	for round, newest := range []int{10, 10, 5, 20, 7} {
		pool := &model.QueryPool{MaxBytes: 1 << 30}
		req := textRequest(model.Always())
		req.Quota.Pool = pool
		cs, err := a.SelectText(ctx, req)
		if err != nil || len(cs) != 1 {
			t.Fatal(err)
		}
		before := req.Cost.BucketRequests.Load()
		var want, got []string
		for cs[0].Next(ctx) {
			chunks, err := cs[0].Chunks(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			last := &chunks[len(chunks)-1]
			var end, all model.TextRows
			held := pool.Used()
			from, err := reading.ReadTextEnd(ctx, last, model.WantLines|model.WantNewest, func(times []int64) int { return len(times) - newest }, &end)
			if err != nil || from != last.Rows-newest || end.Len() != last.Rows {
				t.Fatalf("the newest %d of %d: from %d on, %v", newest, last.Rows, from, err)
			}
			if held, bytes := pool.Used()-held, int64(len(end.Bytes)); held < bytes || held > bytes+60*int64(last.Rows) {
				t.Errorf("%d bytes are charged for %d of %d bytes of lines", held, bytes, last.Bytes)
			}
			for i := from; i < end.Len(); i++ {
				got = append(got, fmt.Sprintf("%d %s", end.Times[i], end.Line(i)))
			}
			last.Page.Release()
			if err := other(t, w, cs[0].Key(), &all); err != nil {
				t.Fatal(err)
			}
			for i := all.Len() - newest; i < all.Len(); i++ {
				want = append(want, fmt.Sprintf("%d %s", all.Times[i], all.Line(i)))
			}
		}
		// Ends are cached, and so are whole pages of which a query wanted more than the end.
		if n := req.Cost.BucketRequests.Load() - before; (n > 0) != (round == 0 || newest == 20) {
			t.Errorf("round %d: %d requests for the newest %d", round, n, newest)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the newest %d are %q, should be %q", newest, got, want)
		}
		if err := errors.Join(cs[0].Err(), cs[0].Close()); err != nil || pool.Used() != 0 {
			t.Errorf("%d bytes are held at the end: %v", pool.Used(), err)
		}
	}
}

// other reads all of the last chunk of a series in another archive over the same blocks.
func other(t *testing.T, w *world, k model.Key, dst *model.TextRows) error {
	t.Helper()
	ctx := context.Background()
	cs, err := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10}).SelectText(ctx, textRequest(model.Always()))
	if err != nil {
		return err
	}
	for cs[0].Next(ctx) {
		chunks, err := cs[0].Chunks(ctx, nil)
		if err != nil {
			return err
		}
		if last := chunks[len(chunks)-1]; cs[0].Key() == k {
			if err := last.Page.ReadText(ctx, last.Index, model.WantLines, dst); err != nil {
				return err
			}
		}
	}
	return errors.Join(cs[0].Err(), cs[0].Close())
}

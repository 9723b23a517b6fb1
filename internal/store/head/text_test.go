package head

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/head/local"
)

// linesOf makes a batch of lines, perSeries for each of the series from..to, at times that go on by a
// microsecond.
func (r *rig) linesOf(tenant string, from, to, perSeries int, at int64, line func(n, i int) model.Line) *model.Batch {
	b := &model.Batch{Tenant: tenant, Signal: model.Logs}
	for n := from; n < to; n++ {
		for i := range perSeries {
			l := line(n, i)
			b.Text.AppendBlob(at+int64(i)*1000, model.KindText, model.AppendLine(nil, &l), 0)
		}
		b.EndSeries(series(n).Key(testSeed, model.Logs))
	}
	return b
}

func plainLine(n, i int) model.Line {
	return model.Line{Text: fmt.Appendf(nil, "level=info stream=%d msg=\"request %d completed\"", n, i)}
}

func (r *rig) pushLines(tenant string, from, to, perSeries int, at int64, line func(n, i int) model.Line) {
	r.t.Helper()
	b := r.linesOf(tenant, from, to, perSeries, at, line)
	r.label(b, from)
	r.apply(b)
}

// readLines returns what the head has of a tenant's lines.
func (r *rig) readLines(req *model.Request) worldtest.Content {
	r.t.Helper()
	got := worldtest.Content{}
	cs, err := r.head.Source(nil).SelectText(context.Background(), req)
	r.must(err)
	for _, c := range cs {
		r.must(addText(req.Tenant, c, got))
	}
	return got
}

func logsOf(tenant string) *model.Request {
	req := everything(tenant)
	req.Signal = model.Logs
	return req
}

// TestManyYoungPartsOfLines: a backlog of young parts is sorted a few at a time, oldest first.
func TestManyYoungPartsOfLines(t *testing.T) {
	r := newRig(t, nil)
	const flushes = 2*mostYoungText + 3
	for n := range flushes {
		r.pushLines("a", 0, 3, 2, r.now+int64(n)*int64(time.Second), plainLine)
		r.must(r.head.Flush(context.Background()))
	}
	_, err := r.head.Work(context.Background())
	r.must(err)
	if n := len(r.head.group(model.Logs, local.Data, local.Young)); n != flushes-mostYoungText {
		t.Errorf("%d young parts are left of %d", n, flushes)
	}
	for _, lines := range r.readLines(logsOf("a")) {
		if len(lines) != 2*flushes {
			t.Errorf("%d lines", len(lines))
		}
	}
	r.must(r.head.Ship(context.Background()))
	if n := len(r.head.snapshot()); n != len(r.head.group(model.Logs, local.Labels, local.Young)) {
		t.Errorf("%d parts are left after everything was shipped", n)
	}
}

// TestLinesDoNotStayYoung: when nothing more comes, what has come is sorted all the same.
func TestLinesDoNotStayYoung(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	r.pushLines("a", 0, 3, 2, r.now, plainLine)
	r.push("a", 0, 3, r.now, 1)
	r.must(r.head.Flush(ctx))
	for _, c := range []struct {
		passes time.Duration
		sorted bool
	}{{0, false}, {youngTextAge, true}} {
		r.now += int64(c.passes)
		if sorted, err := r.head.Work(ctx); err != nil || sorted != c.sorted {
			t.Errorf("after %s: sorted %t: %v", c.passes, sorted, err)
		}
	}
	if n, m := len(r.head.group(model.Logs, local.Data, local.Young)), len(r.head.group(model.Metrics, local.Data, local.Young)); n != 0 || m != 1 {
		t.Errorf("%d young parts of lines and %d of samples", n, m)
	}
}

// TestLinesAreCharged: lines of buffers are charged when they are read, once, and given back.
func TestLinesAreCharged(t *testing.T) {
	r := newRig(t, nil)
	r.pushLines("a", 0, 5, 1000, r.now, plainLine)
	ctx := context.Background()
	pool := &model.QueryPool{MaxBytes: 1 << 30}
	req := logsOf("a")
	req.Quota.Pool = pool
	cs, err := r.head.Source(nil).SelectText(ctx, req)
	r.must(err)
	var chunks []model.TextChunk
	for cs[0].Next(ctx) {
		chunks, err = cs[0].Chunks(ctx, chunks)
		r.must(err)
	}
	before, lines := pool.Used(), int64(0)
	for range 2 {
		lines = 0
		for _, c := range chunks {
			var rows model.TextRows
			r.must(c.Page.ReadText(ctx, c.Index, model.WantLines, &rows))
			lines += c.Bytes
		}
	}
	if held := pool.Used() - before; held < lines || held > 2*lines {
		t.Errorf("%d bytes are charged for %d bytes of lines", held, lines)
	}
	if req.Cost.TextPages.Load() == 0 || req.Cost.HeadBuffers.Load() != 1 {
		t.Errorf("the cost says %d pages of %d buffers", req.Cost.TextPages.Load(), req.Cost.HeadBuffers.Load())
	}
	for _, c := range chunks {
		c.Page.Release()
	}
	if pool.Used() != before {
		t.Errorf("%d bytes are held after the release, %d before", pool.Used(), before)
	}
	r.must(cs[0].Close())
	if pool.Used() != 0 {
		t.Errorf("%d bytes are held at the end", pool.Used())
	}
}

// TestEndsOfLines: of a local part the newest lines of a chunk come as they do of all of it: from the file,
// from an end that is cached and long enough, and from a page that is.
func TestEndsOfLines(t *testing.T) {
	r := newRig(t, nil)
	r.pushLines("a", 0, 1, 3000, r.now, plainLine)
	r.must(r.head.Flush(context.Background()))
	ctx, src := context.Background(), r.head.Source(&cacheOf{})
	for _, newest := range []int{10, 10, 5, 20, 7} {
		cs, err := src.SelectText(ctx, logsOf("a"))
		r.must(err)
		for cs[0].Next(ctx) {
			chunks, err := cs[0].Chunks(ctx, nil)
			r.must(err)
			var all, end model.TextRows
			last := chunks[len(chunks)-1]
			page := last.Page.(interface {
				ReadTextEnd(context.Context, int, model.TextWant, func([]int64) int, *model.TextRows) (int, error)
			})
			from, err := page.ReadTextEnd(ctx, last.Index, model.WantLines|model.WantNewest, func(times []int64) int { return len(times) - newest }, &end)
			r.must(err)
			others, err := r.head.Source(nil).SelectText(ctx, logsOf("a"))
			r.must(err)
			for others[0].Next(ctx) {
				same, err := others[0].Chunks(ctx, nil)
				r.must(err)
				r.must(same[len(same)-1].Page.ReadText(ctx, last.Index, model.WantLines, &all))
			}
			r.must(others[0].Close())
			if from != last.Rows-newest || !slices.Equal(end.Times, all.Times) {
				t.Fatalf("the newest %d of %d: from %d on", newest, last.Rows, from)
			}
			for i := from; i < all.Len(); i++ {
				if string(end.Line(i)) != string(all.Line(i)) {
					t.Fatalf("line %d is %q, should be %q", i, end.Line(i), all.Line(i))
				}
			}
		}
		r.must(cs[0].Close())
	}
}

// TestLinesOfOneTime: a sender may give all lines one time. They are a chunk, and each is there once.
func TestLinesOfOneTime(t *testing.T) {
	r := newRig(t, nil)
	b := &model.Batch{Tenant: "a", Signal: model.Logs}
	const n = 20_000
	for i := range n {
		b.Text.AppendBlob(r.now, model.KindText, model.AppendLine(nil, &model.Line{Text: fmt.Append(nil, i%(n/2))}), 0)
	}
	b.EndSeries(series(1).Key(testSeed, model.Logs))
	r.label(b, 1)
	r.apply(b)
	for _, move := range []func(context.Context) error{func(context.Context) error { return nil }, r.head.Flush} {
		r.must(move(context.Background()))
		cs, err := r.head.Source(nil).SelectText(context.Background(), logsOf("a"))
		r.must(err)
		seen := make(map[string]bool)
		for cs[0].Next(context.Background()) {
			chunks, err := cs[0].Chunks(context.Background(), nil)
			r.must(err)
			for _, c := range chunks {
				var rows model.TextRows
				r.must(c.Page.ReadText(context.Background(), c.Index, model.WantLines, &rows))
				for i := range rows.Times {
					if want := fmt.Sprint(len(seen)); string(rows.Line(i)) != want || seen[want] {
						t.Fatalf("line %s is %s", want, rows.Line(i))
					}
					seen[string(rows.Line(i))] = true
				}
			}
		}
		r.must(cs[0].Close())
		if len(seen) != n/2 {
			t.Fatalf("%d lines", len(seen))
		}
	}
}

// TestLongLines: lines as long as a value may be come back from everywhere.
func TestLongLines(t *testing.T) {
	r := newRig(t, nil)
	long := func(n, i int) model.Line {
		return model.Line{Text: []byte(strings.Repeat(fmt.Sprint(n, i, "\x00\xff "), 100_000)), Metadata: model.LabelsOf("n", fmt.Sprint(i))}
	}
	r.pushLines("a", 0, 3, 4, r.now, long)
	for _, move := range []func(context.Context) error{func(context.Context) error { return nil }, r.head.Flush, func(ctx context.Context) error { return r.head.sortYoung(ctx, model.Logs) }} {
		r.must(move(context.Background()))
		got := r.readLines(logsOf("a"))
		if len(got) != 3 {
			t.Fatalf("%d series", len(got))
		}
		for n := range 3 {
			lines := got[worldtest.ID{Tenant: "a", Signal: model.Logs, Labels: string(series(n)), Family: model.Text}]
			for i := range 4 {
				want := long(n, i)
				if len(lines) != 4 || lines[i].Blob != string(model.AppendLine(nil, &want)) {
					t.Fatalf("line %d of series %d is another", i, n)
				}
			}
		}
	}
}

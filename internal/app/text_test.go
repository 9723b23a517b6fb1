package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/store/archive"
	"github.com/shaledb/shale/internal/store/head/query"
)

// pushLines pushes lines of one stream with one timestamp.
func (s *setup) pushLines(tenant string, l model.Labels, at int64, lines ...string) error {
	b := s.Path().Batch(tenant, model.Logs)
	defer s.Path().Recycle(b)
	b.Source = oneSeries(l)
	for _, line := range lines {
		b.Text.AppendBlob(at, model.KindText, model.AppendLine(nil, &model.Line{Text: []byte(line)}), 0)
	}
	b.EndSeries(l.Key(s.Path().Seed(), model.Logs))
	res, err := s.Path().Push(context.Background(), b)
	if err == nil && len(res.Rejected) > 0 {
		err = fmt.Errorf("rejected: %v", res.Rejected)
	}
	return err
}

// readLines returns all lines of a tenant, in the order of keys and times.
func (s *setup) readLines(t *testing.T, tenant string) string {
	t.Helper()
	var out []string
	req := &model.Request{Tenant: tenant, Signal: model.Logs, Range: everything}
	err := eachLine(s.Engine, req, func(_ model.Labels, l readtest.Line) { out = append(out, l.Text) })
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

// eachLine visits the lines of a request, series by series.
func eachLine(e *Engine, req *model.Request, visit func(l model.Labels, line readtest.Line)) error {
	ctx := context.Background()
	set, err := e.Querier().SelectText(ctx, req)
	if err != nil {
		return err
	}
	defer set.Close()
	for set.Next(ctx) {
		chunks, err := set.Chunks(ctx, nil)
		if err != nil {
			return err
		}
		var pages []model.TextPage
		for _, c := range chunks {
			pages = append(pages, c.Page)
		}
		read.PrefetchText(ctx, pages, model.WantLines|model.WantMetadata)
		kept := chunks[:0]
		for _, c := range chunks {
			skip, err := c.Page.Skip(ctx)
			if err != nil {
				return err
			}
			if !skip {
				kept = append(kept, c)
			}
		}
		lines, err := readtest.Lines(ctx, kept, set.Range())
		if err != nil {
			return err
		}
		for _, l := range lines {
			visit(set.Labels(), l)
		}
	}
	return set.Err()
}

var everything = model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}

var app = model.LabelsOf("app", "shop", "service_name", "shop")

// Lines with the same timestamp keep their order of arrival, and equal lines appear once, wherever the lines
// are stored, and also after a restart.
func TestLinesWhereverTheyLie(t *testing.T) {
	s := newSetup(t, nil)
	want := ""
	for i, move := range []func() error{
		func() error { return nil }, s.Flush, s.Ship, func() error { return s.Compact(context.Background()) }, func() error { return nil },
	} {
		must(t, s.pushLines("a", app, s.now, "first", fmt.Sprint("line", i), "first"))
		must(t, move())
		if want += fmt.Sprint(" line", i); i == 0 {
			want = "first line0"
		}
		if got := s.readLines(t, "a"); got != want {
			t.Errorf("after %d: %q, want %q", i, got, want)
		}
	}
	must(t, s.Close())
	var err error
	s.Engine, err = OpenEngine(context.Background(), s.o)
	must(t, err)
	if got := s.readLines(t, "a"); got != want {
		t.Errorf("after a restart: %q, want %q", got, want)
	}
	must(t, s.Close())
}

// TestLinesMeanwhile pushes lines, some of them twice, and queries them while all background work runs.
// Acknowledged lines are there, in order, and once.
func TestLinesMeanwhile(t *testing.T) {
	s := newSetup(t, func(o *EngineOptions) {
		o.Idle, o.MemoryBytes, o.FlushEvery, o.Windows.Window = false, 16<<20, 10*time.Millisecond, 5*time.Minute
		o.Write.MaxFuture = time.Hour
	})
	const pushers, pushes, perPush = 3, 150, 20
	var acked [pushers]atomic.Int64
	var wg sync.WaitGroup
	for p := range pushers {
		wg.Go(func() {
			l := model.LabelsOf("service_name", fmt.Sprint(p))
			filler := strings.Repeat(fmt.Sprint("filler of ", p, " "), 100)
			for n := range pushes {
				var lines []string
				for i := range perPush {
					lines = append(lines, fmt.Sprint(n*perPush+i, " ", filler))
				}
				// Each batch has one timestamp, and they advance, so that windows close.
				at := s.now + int64(n)*int64(10*time.Second)
				for range 1 + n%3/2 {
					if err := s.pushLines("a", l, at, lines...); err != nil {
						t.Error(err)
						return
					}
				}
				acked[p].Store(int64(n+1) * perPush)
			}
		})
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				if err := inOrder(s, &acked); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	wg.Wait()
	must(t, s.Ship())
	must(t, s.Compact(context.Background()))
	close(stop)
	readers.Wait()
	must(t, inOrder(s, &acked))
	must(t, s.Close())
	checkFolder(t, s.mem)
}

// inOrder queries all lines: each stream has the numbers from 0 on, at least as many as were acknowledged
// before.
func inOrder(s *setup, acked *[3]atomic.Int64) error {
	var least [3]int64
	for p := range acked {
		least[p] = acked[p].Load()
	}
	got := make(map[string][]int64)
	req := &model.Request{Tenant: "a", Signal: model.Logs, Range: everything, Quota: new(model.Quota), Cost: new(model.Cost)}
	var wrong error
	err := eachLine(s.Engine, req, func(l model.Labels, line readtest.Line) {
		var n int64
		if _, err := fmt.Sscan(line.Text, &n); err != nil {
			wrong = err
		}
		p := string(l.Get("service_name"))
		got[p] = append(got[p], n)
	})
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	for p, n := range least {
		numbers := got[fmt.Sprint(p)]
		for i, x := range numbers {
			if x != int64(i) {
				return fmt.Errorf("stream %d: line %d is number %d", p, i, x)
			}
		}
		if int64(len(numbers)) < n {
			return fmt.Errorf("stream %d: %d lines, and %d were acknowledged", p, len(numbers), n)
		}
	}
	return nil
}

// Sources of lines.
var (
	_ read.TextSource = (*query.Source)(nil)
	_ read.TextSource = (*archive.Archive)(nil)
)

// Labels of streams are found wherever the streams are stored, and do not mix with those of metrics.
func TestLabelsOfStreams(t *testing.T) {
	s := newSetup(t, nil)
	must(t, s.push("a", up, s.now, 1))
	ctx := context.Background()
	for i, move := range []func() error{func() error { return nil }, s.Flush, s.Ship} {
		must(t, s.pushLines("a", model.LabelsOf("app", fmt.Sprint("app", i)), s.now, "line"))
		must(t, move())
		req := &model.Request{Tenant: "a", Signal: model.Logs, Range: everything}
		names, _, err := s.Querier().LabelNames(ctx, req, 0)
		must(t, err)
		values, _, err := s.Querier().LabelValues(ctx, req, "app", 0)
		must(t, err)
		if got := fmt.Sprint(names, values); got != fmt.Sprint([]string{"app"}, []string{"app0", "app1", "app2"}[:i+1]) {
			t.Errorf("after %d: %s", i, got)
		}
		set, err := s.Querier().Select(ctx, req)
		must(t, err)
		streams := 0
		for set.Next(ctx) {
			streams++
		}
		must(t, errors.Join(set.Err(), set.Close()))
		if streams != i+1 {
			t.Errorf("after %d: %d streams", i, streams)
		}
	}
	must(t, s.Close())
}

// Expired lines are not returned, and their blocks are deleted.
func TestRetentionOfLines(t *testing.T) {
	s := newSetup(t, func(o *EngineOptions) { o.Retention = keeping(24 * time.Hour) })
	must(t, s.pushLines("a", app, s.now, "old"))
	must(t, s.Ship())
	if b := s.catalog.Live()[0]; b.Lines != 1 || b.LineBytes != uint64(len("old")) {
		t.Errorf("a block of %d lines of %d bytes", b.Lines, b.LineBytes)
	}
	s.now += int64(23 * time.Hour)
	must(t, s.pushLines("a", app, s.now, "new"))
	if got := s.readLines(t, "a"); got != "old new" {
		t.Errorf("before it is time: %q", got)
	}
	s.now += int64(2 * time.Hour)
	must(t, s.Ship())
	if got := s.readLines(t, "a"); got != "new" {
		t.Errorf("after it is time: %q", got)
	}
	must(t, s.catalog.Expire(context.Background(), olderThan(s.now-int64(24*time.Hour)), time.Minute))
	if n := len(s.catalog.Live()); n != 1 {
		t.Errorf("%d blocks are left", n)
	}
	must(t, s.Close())
}

package read_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/readtest"
)

func textRequest(r model.TimeRange) *model.Request {
	req := request(r)
	req.Signal = model.Logs
	return req
}

func drawLines(t *rapid.T) (lines []readtest.Line) {
	for range rapid.IntRange(0, 25).Draw(t, "lines") {
		l := readtest.Line{
			Time: rapid.Int64Range(0, 12).Draw(t, "time"),
			Text: rapid.SampledFrom([]string{"", "a", "b", "needle", "\x00\xff"}).Draw(t, "text"),
		}
		if rapid.IntRange(0, 3).Draw(t, "has metadata") == 0 {
			l.Metadata = model.LabelsOf("m", rapid.SampledFrom([]string{"x", "y"}).Draw(t, "metadata"))
		}
		lines = append(lines, l)
	}
	return lines
}

// linesOf returns the lines of the current series.
func linesOf(t require, set *read.TextSet) []readtest.Line {
	ctx := context.Background()
	chunks, err := set.Chunks(ctx, nil)
	if err != nil {
		t.Fatalf("chunks: %v", err)
	}
	for i := 1; i < len(chunks); i++ {
		if chunks[i].Min < chunks[i-1].Min {
			t.Fatalf("chunk %d begins before the one before it", i)
		}
	}
	got, err := readtest.Lines(ctx, chunks, set.Range())
	if err != nil {
		t.Fatalf("lines: %v", err)
	}
	return got
}

// TestSelectText compares the merge of random sources with a list sorted by the rule of Chunks.
func TestSelectText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		orders := rapid.Permutation([]uint64{1, 2, 3, 4}).Draw(t, "orders")
		if rapid.IntRange(0, 3).Draw(t, "one order") == 0 {
			// Blocks of two merges of the same input may share an order; the source that is asked first comes first.
			orders = []uint64{7, 7, 7, 7}
		}
		arrived := map[int]map[uint64][]readtest.Line{}
		srcs := make([]read.Source, 4)
		for s := range srcs {
			m := readtest.NewMemory(orders[s])
			m.SetTextPage(rapid.IntRange(1, 6).Draw(t, "chunk"), rapid.IntRange(1, 3).Draw(t, "page"))
			srcs[s] = m
			for i := range 3 {
				lines := drawLines(t)
				m.AddText(tenant, keyFor(i), labelsFor(i), lines...)
				if arrived[i] == nil {
					arrived[i] = map[uint64][]readtest.Line{}
				}
				arrived[i][orders[s]] = append(arrived[i][orders[s]], lines...)
			}
		}
		rg := model.Always()
		if rapid.Bool().Draw(t, "bounded") {
			rg.Min = rapid.Int64Range(-2, 12).Draw(t, "min")
			rg.Max = rg.Min + rapid.Int64Range(0, 8).Draw(t, "width")
		}
		set, err := read.New(read.Options{Sources: srcs}).SelectText(context.Background(), textRequest(rg))
		if err != nil {
			t.Fatalf("select: %v", err)
		}
		defer set.Close()
		got := map[string][]readtest.Line{}
		for set.Next(context.Background()) {
			if lines := linesOf(t, set); len(lines) > 0 {
				got[set.Labels().String()] = lines
			}
		}
		if set.Err() != nil {
			t.Fatalf("set: %v", set.Err())
		}
		want := map[string][]readtest.Line{}
		for i, by := range arrived {
			if lines := expected(by, rg); len(lines) > 0 {
				want[labelsFor(i).String()] = lines
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%v: -want +got\n%s", rg, d)
		}
	})
}

// expected applies the rule of Chunks: sorted by (time, order, arrival), and the first of equal rows.
func expected(by map[uint64][]readtest.Line, rg model.TimeRange) (want []readtest.Line) {
	var all []readtest.Line
	for order := range uint64(8) {
		all = append(all, by[order]...)
	}
	slices.SortStableFunc(all, func(a, b readtest.Line) int { return int(a.Time - b.Time) })
	seen := map[string]bool{}
	for _, l := range all {
		if id := fmt.Sprintf("%d %q %q", l.Time, l.Text, l.Metadata); rg.Contains(l.Time) && !seen[id] {
			seen[id] = true
			want = append(want, l)
		}
	}
	return want
}

func TestTextErrors(t *testing.T) {
	bad := fmt.Errorf("%w: away", model.ErrTransient)
	for _, f := range []readtest.Failure{{Select: bad}, {Next: bad}, {Rows: bad}, {Text: bad}} {
		m, other := readtest.NewMemory(1), readtest.NewMemory(2)
		for i := range 3 {
			for _, s := range []*readtest.Memory{m, other} {
				s.AddText(tenant, keyFor(i), labelsFor(i), readtest.Line{Time: 1, Text: "a"})
			}
		}
		m.Fail(f)
		err := func() error {
			ctx := context.Background()
			set, err := read.New(read.Options{Sources: []read.Source{other, m}}).SelectText(ctx, textRequest(model.Always()))
			if err != nil {
				return err
			}
			defer set.Close()
			for set.Next(ctx) {
				chunks, err := set.Chunks(ctx, nil)
				if err != nil {
					return err
				}
				if _, err := readtest.Lines(ctx, chunks, model.Always()); err != nil {
					return err
				}
			}
			return set.Err()
		}()
		if !errors.Is(err, model.ErrTransient) {
			t.Errorf("%+v: %v", f, err)
		}
		if m.Open() != 0 || other.Open() != 0 {
			t.Errorf("%+v: cursors stay open", f)
		}
	}
}

// Lines older than the retention are hidden, as are series that have no others.
func TestTextRetention(t *testing.T) {
	m := readtest.NewMemory(1)
	m.SetTextPage(10, 1)
	m.AddText(tenant, keyFor(1), labelsFor(1), readtest.Line{Time: 10, Text: "old"})
	m.AddText(tenant, keyFor(2), labelsFor(2), readtest.Line{Time: 10, Text: "old"}, readtest.Line{Time: 90, Text: "new"})
	q := read.New(read.Options{Sources: []read.Source{m}, Horizon: keeping(50), Now: func() int64 { return 100 }})
	set, err := q.SelectText(context.Background(), textRequest(model.Always()))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for set.Next(context.Background()) {
		if set.Key() != keyFor(2) {
			t.Errorf("series %s is shown", set.Labels())
		}
		got := linesOf(t, set)
		if len(got) != 1 || got[0].Text != "new" {
			t.Errorf("%v", got)
		}
	}
}

func TestPrefetchText(t *testing.T) {
	m := readtest.NewMemory(1)
	m.SetTextPage(1, 1)
	for i := range int64(5) {
		m.AddText(tenant, keyFor(1), labelsFor(1), readtest.Line{Time: i, Text: fmt.Sprint(i)})
	}
	set, err := read.New(read.Options{Sources: []read.Source{m}}).SelectText(context.Background(), textRequest(model.Always()))
	if err != nil || !set.Next(context.Background()) {
		t.Fatal(err)
	}
	defer set.Close()
	chunks, err := set.Chunks(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var pages []model.TextPage
	for _, c := range chunks {
		pages = append(pages, c.Page)
	}
	n := int64(len(pages))
	read.PrefetchText(context.Background(), pages, model.WantLines)
	if got := m.TextReads().Fetched.Load(); got != n {
		t.Errorf("%d pages were told of, of %d", got, n)
	}
}

// grouping is a source that notes whether it may count streams together.
type grouping struct {
	*readtest.Memory
	asked []bool
}

func (g *grouping) SelectText(ctx context.Context, req *model.Request) ([]model.TextCursor, error) {
	g.asked = append(g.asked, req.Cells.Grouped)
	return g.Memory.SelectText(ctx, req)
}

// TestGrouped: only the last source may count streams together, and only if no other one has any.
func TestGrouped(t *testing.T) {
	first, last := &grouping{Memory: readtest.NewMemory(1)}, &grouping{Memory: readtest.NewMemory(2)}
	labels := func(pod string) model.Labels {
		var b model.LabelsBuilder
		b.Add([]byte("pod"), []byte(pod))
		l, err := b.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	last.AddText("t", model.Key{Lo: 1}, labels("1"), readtest.Line{Time: 5, Text: "a"})
	q := read.New(read.Options{Sources: []read.Source{first, last}})
	count := func() (series int) {
		set, err := q.SelectText(context.Background(), &model.Request{
			Tenant: "t", Signal: model.Logs, Range: model.TimeRange{Min: 0, Max: 10}, Cells: &model.TextCells{Grouped: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		for set.Next(context.Background()) {
			series++
		}
		if set.Err() != nil {
			t.Fatal(set.Err())
		}
		return series
	}
	if n := count(); n != 1 || first.asked[0] || !last.asked[0] {
		t.Errorf("%d series; grouped %v and %v", n, first.asked, last.asked)
	}
	first.AddText("t", model.Key{Lo: 2}, labels("2"), readtest.Line{Time: 6, Text: "b"})
	if n := count(); n != 2 || first.asked[1] || last.asked[1] {
		t.Errorf("%d series; grouped %v and %v", n, first.asked, last.asked)
	}
	first.AddText("t", model.Key{Lo: 1}, labels("1"), readtest.Line{Time: 5, Text: "a"})
	if n := count(); n != 2 {
		t.Errorf("%d series", n)
	}
}

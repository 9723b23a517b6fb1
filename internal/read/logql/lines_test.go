package logql

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/selection"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/readtest"
)

// contains is a RowFilter.
type contains string

func (c contains) Select(dst []int32, rows *model.TextRows, from, to int) []int32 {
	for i := from; i < to; i++ {
		if bytes.Contains(rows.Line(i), []byte(c)) {
			dst = append(dst, int32(i))
		}
	}
	return dst
}

// upper is a LineStages: it drops lines with a b, writes the others in capitals, takes the metadata away of
// those with a c, and adds a label that says which stream it is.
type upper struct {
	stream model.Labels
	line   []byte
	parsed model.Labels
}

func (contains) Bind(context.Context) {}

func (*upper) Bind(context.Context, func(int64) error) {}

func (u *upper) SetStream(l model.Labels) { u.stream = slices.Clone(l) }

func (u *upper) Process(_ int64, text []byte, metadata model.Labels, out *line.Result) (bool, error) {
	if bytes.ContainsRune(text, 'b') {
		return false, nil
	}
	u.line = append(u.line[:0], bytes.ToUpper(text)...)
	u.parsed = model.LabelsOf("parsed", string(u.stream.Get("s")))
	*out = line.Result{Line: u.line, Stream: u.stream, Metadata: metadata, Parsed: u.parsed}
	if bytes.ContainsRune(text, 'c') {
		out.Metadata = nil
	}
	return true, nil
}

// asIs is a LineStages that does nothing.
type asIs struct{ stream model.Labels }

func (*asIs) Bind(context.Context, func(int64) error) {}

func (a *asIs) SetStream(l model.Labels) { a.stream = l }

func (a *asIs) Process(_ int64, text []byte, metadata model.Labels, out *line.Result) (bool, error) {
	*out = line.Result{Line: text, Stream: a.stream, Metadata: metadata}
	return true, nil
}

// world is lines in several sources, and what a naive reader makes of them.
type world struct{ *readtest.World }

const oneTenant = "t"

func drawWorld(t *rapid.T) *world {
	w := readtest.NewWorld(streamsOf(rapid.IntRange(1, 4).Draw(t, "streams"))...)
	span := rapid.SampledFrom([]int64{5, 60, int64(time.Hour), 100 * int64(time.Hour)}).Draw(t, "span")
	steps := rapid.SampledFrom([]int64{5, 50, 1000}).Draw(t, "steps")
	w.Fill(t, oneTenant, 4, 60, func(t *rapid.T) readtest.Line {
		x := readtest.Line{
			Time: rapid.Int64Range(0, steps).Draw(t, "at") * max(span/steps, 1),
			Text: rapid.StringMatching("[abcd]{0,3}").Draw(t, "line"),
		}
		if rapid.IntRange(0, 3).Draw(t, "has metadata") == 0 {
			x.Metadata = model.LabelsOf("m", rapid.StringMatching("[xy]").Draw(t, "metadata"))
		}
		return x
	})
	return &world{w}
}

// streamsOf returns the labels of streams of one app.
func streamsOf(n int) (all []model.Labels) {
	for i := range n {
		all = append(all, model.LabelsOf("s", fmt.Sprint(i), "app", "x"))
	}
	return all
}

func (w *world) engine() *Engine {
	var sources []read.Source
	for _, s := range w.Sources {
		sources = append(sources, s)
	}
	return New(Options{Read: read.New(read.Options{Sources: sources}), Workers: 3})
}

// naive answers a query by looking at all.
func (w *world) naive(q *Query, p *selection.Program) []string {
	type row struct {
		time int64
		text string
	}
	var rows []row
	for _, l := range w.Streams {
		st := p.Stages()
		st.SetStream(l)
		for _, x := range w.Lines[string(l)] {
			if x.Time < q.Start || x.Time >= q.End {
				continue
			}
			if p.Filter != nil && !strings.Contains(x.Text, string(p.Filter().(contains))) {
				continue
			}
			var out line.Result
			if ok, _ := st.Process(x.Time, []byte(x.Text), x.Metadata, &out); !ok {
				continue
			}
			rows = append(rows, row{x.Time, shown(x.Time, out.Line, out.Stream, out.Metadata, out.Parsed)})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.time, b.time) })
	if q.Direction == Backward {
		slices.Reverse(rows)
	}
	var out []string
	last, some := int64(0), false
	for _, r := range rows {
		if q.Limit > 0 && len(out) == q.Limit {
			break
		}
		gap := r.time - last
		if q.Direction == Backward {
			gap = -gap
		}
		if some && gap < q.Interval {
			continue
		}
		out = append(out, r.text)
		last, some = r.time, true
	}
	return out
}

func shown(at int64, line []byte, stream, metadata, parsed model.Labels) string {
	return fmt.Sprintf("%d %s %s %s %q", at, stream, metadata, parsed, line)
}

func drawQuery(t *rapid.T, w *world) (*Query, *selection.Program) {
	var times []int64
	for _, lines := range w.Lines {
		for _, l := range lines {
			times = append(times, l.Time)
		}
	}
	slices.Sort(times)
	q := &Query{
		Tenants: []string{oneTenant},
		Start:   math.MinInt64, End: math.MaxInt64,
		Limit:     rapid.SampledFrom([]int{0, 1, 2, 5, 20, 100}).Draw(t, "limit"),
		Direction: Direction(rapid.IntRange(0, 1).Draw(t, "direction")),
		Quota:     &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 40}},
		Cost:      &model.Cost{},
	}
	if len(times) > 0 && rapid.Bool().Draw(t, "bounded") {
		q.Start = rapid.SampledFrom(times).Draw(t, "start")
		q.End = rapid.SampledFrom(times).Draw(t, "end") + rapid.Int64Range(0, 1).Draw(t, "beyond")
	}
	if rapid.IntRange(0, 3).Draw(t, "thinned") == 0 {
		q.Interval = rapid.Int64Range(1, 100).Draw(t, "interval")
	}
	p := &selection.Program{KeepsAll: true, Stages: func() selection.LineStages { return new(asIs) }}
	if rapid.Bool().Draw(t, "filter") {
		needle := rapid.SampledFrom([]string{"a", "ab", "", "zz"}).Draw(t, "needle")
		p.KeepsAll = false
		p.Filter = func() selection.RowFilter { return contains(needle) }
		p.TextFilter = &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: needle}}}}}
	}
	if rapid.IntRange(0, 2).Draw(t, "stages") == 0 {
		p.KeepsAll = false
		p.Stages = func() selection.LineStages { return new(upper) }
		if rapid.Bool().Draw(t, "probe") {
			p.Probe = p.Stages
		}
	}
	return q, p
}

// TestLines compares with a naive reader: which lines, in which order, with what labels. Nothing stays open
// or charged.
func TestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		e := w.engine()
		for range 3 {
			q, p := drawQuery(t, w)
			q.Prepared = &Prepared{log: &syntax.LogQuery{}, program: p}
			x := e.execution(q)
			x.MergeBytes = rapid.SampledFrom([]int64{1, 20, x.MergeBytes}).Draw(t, "bytes to merge")
			x.IdleBytes = rapid.SampledFrom([]int64{x.IdleBytes, 1, 300}).Draw(t, "bytes of idle pages")
			x.PortionBytes = rapid.SampledFrom([]int64{1, 1000, x.PortionBytes}).Draw(t, "bytes of a portion")
			x.Now = rapid.SampledFrom([]int64{math.MinInt64, -int64(time.Hour), 0, math.MaxInt64 - int64(time.Hour)}).Draw(t, "now")
			entries, err := entries(context.Background(), x, q, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			held := int64(0)
			for i := range entries {
				f := &entries[i]
				got = append(got, shown(f.time, f.line(), f.stream(), f.metadata(), f.parsed()))
				held += int64(len(f.bytes)) + foundBytes
			}
			if want := w.naive(q, p); !slices.Equal(got, want) {
				t.Fatalf("%+v:\n got %q\nwant %q", q, got, want)
			}
			for _, s := range w.Sources {
				if s.Open() != 0 {
					t.Fatal("a cursor is open")
				}
			}
			if used := q.Quota.Charged().Bytes(); used != held {
				t.Fatalf("%d bytes are charged for %d of entries", used, held)
			}
		}
	})
}

package selection

import (
	"context"
	"math"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// stillPage gives the same rows for each chunk.
type stillPage struct{ rows model.TextRows }

func (p *stillPage) Skip(context.Context) (bool, error) { return false, nil }
func (p *stillPage) Release()                           {}

func (p *stillPage) ReadText(_ context.Context, _ int, want model.TextWant, dst *model.TextRows) error {
	dst.Reset()
	dst.Times = append(dst.Times, p.rows.Times...)
	if want&model.WantLines != 0 {
		dst.Bytes, dst.Begin = p.rows.Bytes, p.rows.Begin
		dst.Ends = append(dst.Ends, p.rows.Ends...)
	}
	return nil
}

// someSink wants all lines and keeps none.
type someSink struct{ limit int }

func (s *someSink) Bound() int64      { return math.MinInt64 }
func (s *someSink) Full() bool        { return false }
func (s *someSink) Limit() int        { return s.limit }
func (s *someSink) Offer(*Line) error { return nil }

// TestScanAllocatesNothing for lines that do not pass, whether chunks overlap or not.
func TestScanAllocatesNothing(t *testing.T) {
	const chunks, rows = 200, 50
	p := &stillPage{}
	for i := range rows {
		p.rows.Times = append(p.rows.Times, int64(i))
		p.rows.Bytes = append(p.rows.Bytes, `{"level":"info","n":7}`...)
		p.rows.Ends = append(p.rows.Ends, uint32(len(p.rows.Bytes)))
	}
	query, err := syntax.ParseLog(`{a="b"} |= "level" | json | n > 8`)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := Compile(query.Stages)
	if err != nil {
		t.Fatal(err)
	}
	for _, overlap := range []bool{false, true} {
		x := New(Plan{Direction: Backward, Program: prog, Quota: &model.Quota{}, Cost: &model.Cost{}})
		x.sink = &someSink{limit: 10}
		l := newLayout(defaultMergeBytes)
		for s := range int32(chunks) {
			x.streams = append(x.streams, stream{labels: model.LabelsOf("a", "b")})
			c := model.TextChunk{TimeRange: model.TimeRange{Max: rows - 1}, Rows: rows, Bytes: int64(len(p.rows.Bytes)), Page: p}
			cs := []model.TextChunk{c}
			if overlap {
				c.Order = 1
				cs = append(cs, c)
			}
			l.addStream(s, cs, model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64})
		}
		l.order(Backward)
		s := &scanner{x: x, l: l, pages: &pages{all: l.pages, max: 1 << 30}, filter: prog.Filter(), stages: prog.Stages(), probe: prog.Probe()}
		// Idle pages are listed again each time.
		alloctest.AtMost(t, 20, 5, func() {
			for i := range l.tasks {
				l.pages[0].wanted = 1 << 20
				s.pages.fifo = s.pages.fifo[:0]
				if err := s.task(context.Background(), &l.tasks[i]); err != nil {
					t.Fatal(err)
				}
			}
		})
		if n := x.stats.lines.Load(); n == 0 || x.stats.kept.Load() != 0 {
			t.Error(n, x.stats.kept.Load())
		}
	}
}

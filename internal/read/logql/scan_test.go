package logql

import (
	"context"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
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

// TestScanAllocatesNothing for lines that do not pass, whether chunks overlap or not.
func TestScanAllocatesNothing(t *testing.T) {
	const chunks, rows = 200, 50
	p := &stillPage{}
	for i := range rows {
		p.rows.Times = append(p.rows.Times, int64(i))
		p.rows.Bytes = append(p.rows.Bytes, `{"level":"info","n":7}`...)
		p.rows.Ends = append(p.rows.Ends, uint32(len(p.rows.Bytes)))
	}
	query := prepared(`{a="b"} |= "level" | json | n > 8`)
	prog := query.program
	for _, overlap := range []bool{false, true} {
		x := New(Options{}).execution(&Query{Prepared: query, Limit: 10})
		x.top = newTop(Backward, 10, x.quota)
		l := newLayout(defaultMergeBytes)
		for s := range int32(chunks) {
			x.streams = append(x.streams, stream{labels: model.LabelsOf("a", "b")})
			c := model.TextChunk{TimeRange: model.TimeRange{Max: rows - 1}, Rows: rows, Bytes: int64(len(p.rows.Bytes)), Page: p}
			cs := []model.TextChunk{c}
			if overlap {
				c.Order = 1
				cs = append(cs, c)
			}
			l.addStream(s, cs, allTime)
		}
		l.order(Backward)
		s := &scanner{x: x, l: l, pages: &pages{all: l.pages, max: 1 << 30}, filter: prog.filter(), stages: prog.stages(), probe: prog.probe()}
		// Idle pages are listed anew each time.
		alloctest.AtMost(t, 20, 5, func() {
			for i := range l.units {
				l.pages[0].wanted = 1 << 20
				s.pages.fifo = s.pages.fifo[:0]
				if err := s.unit(context.Background(), &l.units[i]); err != nil {
					t.Fatal(err)
				}
			}
		})
		if n := x.stats.lines.Load(); n == 0 || x.stats.kept.Load() != 0 {
			t.Error(n, x.stats.kept.Load())
		}
	}
}

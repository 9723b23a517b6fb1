package logql

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/selection"
)

// patternStages runs the stages of a query on single lines, if there are any.
type patternStages struct {
	ctx    context.Context
	filter selection.RowFilter  // nil: there is none
	stages selection.LineStages // nil: there are none
	picked []int32
	out    line.Result
}

func newPatternStages(ctx context.Context, q *PatternQuery) *patternStages {
	s := &patternStages{ctx: ctx}
	if len(q.Prepared.log.Stages) == 0 {
		return s
	}
	p := q.Prepared.program
	if p.Filter != nil {
		s.filter = p.Filter()
		s.filter.Bind(ctx)
	}
	s.stages = p.Stages()
	s.stages.Bind(ctx, q.Quota.TakeBytes)
	return s
}

func (s *patternStages) setStream(labels model.Labels) {
	if s.stages != nil {
		s.stages.SetStream(labels)
	}
}

// run returns what the stages make of row i, and whether it stays.
func (s *patternStages) run(rows *model.TextRows, i int, text []byte, metadata model.Labels) ([]byte, bool, error) {
	if s.filter != nil {
		s.picked = s.filter.Select(s.picked[:0], rows, i, i+1)
		// A filter whose time is over drops what it likes.
		if err := s.ctx.Err(); err != nil || len(s.picked) == 0 {
			return nil, false, err
		}
	}
	if s.stages == nil {
		return text, true, nil
	}
	ok, err := s.stages.Process(rows.Times[i], text, metadata, &s.out)
	return s.out.Line, ok, err
}

package sample

import (
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/selection"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/read/logql/window"
)

// Program is a compiled range aggregation. It never changes.
type Program struct {
	expr        *syntax.RangeAggregation
	pipeline    *line.Pipeline
	selection   *selection.Program
	aggregation window.Aggregation
	bytes       bool // counts bytes, not lines
	// outer is the grouping of the sum right above, by which samples were grouped; nil: none.
	outer *syntax.Grouping
}

// Compile compiles a range aggregation. outer, if not nil, is the grouping of a sum right above it, whose
// labels samples get at once. Errors are of class invalid or limit and have Loki's texts.
func Compile(e *syntax.RangeAggregation, outer *syntax.Grouping) (*Program, error) {
	s := line.Sampling{Unwrap: e.Range.Unwrap, None: e.Op == syntax.AbsentOverTime}
	grouping := e.Grouping
	if grouping == nil && AddsUp(e.Op) {
		grouping = outer
	}
	if grouping != nil {
		s.Labels, s.Without = grouping.Labels, grouping.Without
		s.None = s.None || len(grouping.Labels) == 0 && !grouping.Without
	}
	stages := e.Range.Query.Stages
	bytes := e.Op == syntax.BytesOverTime || e.Op == syntax.BytesRate
	if !bytes {
		stages = withoutIdleFormats(stages)
	}
	pipeline, err := line.CompileSampling(stages, s)
	if err != nil {
		return nil, err
	}
	return &Program{
		expr: e, pipeline: pipeline, selection: selection.CompileCounter(pipeline), bytes: bytes, outer: outer,
		aggregation: window.Aggregation{
			Op: e.Op, Unwrap: e.Range.Unwrap != nil, Quantile: e.Quantile, Width: int64(e.Range.Range),
		},
	}, nil
}

// AddsUp reports whether the sum over groups of an aggregation is the aggregation over the samples of the
// groups. It is so for the same ones as in Loki.
func AddsUp(op syntax.RangeOp) bool {
	switch op {
	case syntax.CountOverTime, syntax.Rate, syntax.BytesOverTime, syntax.BytesRate, syntax.SumOverTime:
		return true
	}
	return false
}

// withoutIdleFormats leaves out each line_format that no later parser or line filter sees, as Loki does. The
// result is another one if the template fails, or if a later template looks at the line.
func withoutIdleFormats(stages []syntax.Stage) []syntax.Stage {
	var kept []syntax.Stage
	seen := false
	for i := len(stages) - 1; i >= 0; i-- {
		switch stages[i].(type) {
		case *syntax.LineFormat:
			if !seen {
				continue
			}
		case *syntax.LineFilter, *syntax.JSONParser, *syntax.LogfmtParser, *syntax.RegexpParser, *syntax.PatternParser, *syntax.UnpackParser:
			seen = true
		}
		kept = append(kept, stages[i])
	}
	for i, j := 0, len(kept)-1; i < j; i, j = i+1, j-1 {
		kept[i], kept[j] = kept[j], kept[i]
	}
	return kept
}

// Selection returns the program that the plan of an execution needs.
func (p *Program) Selection() *selection.Program { return p.selection }

// Evaluate returns the series of the aggregation, sorted by labels. If there are several tenants, labels
// say whose lines were counted. Errors are of the classes of package model.
//
// If top is not nil, the series go there instead and the matrix is nil. That is not so for absent_over_time
// and where the sum right above still has something to add up.
//
// A line with an error ends the evaluation if it lies in a window: the error is that of the earliest such
// step, and there of the least labels.
func (p *Program) Evaluate(ctx context.Context, x *selection.Execution, steps vector.Steps, tenants []string, top *vector.Top) (*vector.Matrix, error) {
	e := newEvaluation(p, x.Quota, steps, tenants)
	x.Direction = selection.Forward // so that the first failed line ends the scan
	defer e.release()
	if times := e.cells.Range(); times.Min <= times.Max {
		e.divide(x)
		if err := x.FilterMetadata(ctx, times); err != nil {
			return nil, err
		}
		if err := x.Count(ctx, times, e); err != nil {
			return nil, err
		}
	}
	all, err := e.join(ctx)
	switch {
	case err != nil:
		return nil, err
	case p.expr.Op == syntax.AbsentOverTime:
		return e.absent(all)
	case top != nil && p.groups(all):
		return nil, e.each(ctx, all, top.Add)
	}
	return e.matrix(ctx, all, x.Workers)
}

// groups reports whether the series are already those of the sum right above, if there is one. A line with an
// error keeps all labels, and the label of the tenant is one more.
func (p *Program) groups(all []*series) bool {
	if p.outer == nil {
		return true
	}
	if p.outer.Without {
		return false
	}
	for _, s := range all {
		for name, _, rest, ok := s.labels.Next(); ok; name, _, rest, ok = rest.Next() {
			if !slices.Contains(p.outer.Labels, string(name)) {
				return false
			}
		}
	}
	return true
}

// absentLabels returns the labels of absent_over_time: those that the selector gives a value, unless it has
// further conditions on them.
func absentLabels(ms []*syntax.Matcher) (model.Labels, error) {
	values, conditions := make(map[string]string), make(map[string]bool)
	for _, m := range ms {
		switch _, known := values[m.Name]; {
		case m.Name == "__name__":
		case m.Op != model.MatchEqual || known:
			conditions[m.Name] = true
		case m.Value != "":
			values[m.Name] = m.Value
		}
	}
	var b model.LabelsBuilder
	for name, value := range values {
		if !conditions[name] {
			b.Add([]byte(name), []byte(value))
		}
	}
	return b.Append(nil)
}

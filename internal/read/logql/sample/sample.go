package sample

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/selection"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// Program is a compiled range aggregation. It never changes.
type Program struct {
	expr      *syntax.RangeAggregation
	selection *selection.Program
}

// Compile compiles a range aggregation. outer, if not nil, is the grouping of a sum right above it, whose
// labels samples get at once. Errors are of class invalid or limit and have Loki's texts.
func Compile(e *syntax.RangeAggregation, outer *syntax.Grouping) (*Program, error) {
	p, err := selection.Compile(e.Range.Query.Stages)
	if err != nil {
		return nil, err
	}
	return &Program{e, p}, nil
}

// Selection returns the program that the plan of an execution needs.
func (p *Program) Selection() *selection.Program { return p.selection }

// Evaluate returns the series of the aggregation, sorted by labels. If there are several tenants, labels
// say whose lines were counted. Errors are of the classes of package model.
func (p *Program) Evaluate(ctx context.Context, x *selection.Execution, steps vector.Steps, tenants []string) (*vector.Matrix, error) {
	return nil, fmt.Errorf("%w: %s is not evaluated yet", model.ErrInvalid, p.expr.Op)
}

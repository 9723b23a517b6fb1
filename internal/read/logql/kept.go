package logql

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/plan"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/read/results"
)

// evaluateLeaf evaluates a leaf at some steps. See [plan.Evaluation].
type evaluateLeaf func(ctx context.Context, steps vector.Steps, top *vector.Top) (*vector.Matrix, error)

// evaluateAbove evaluates an aggregation of a leaf. If the values of the leaf are too large to be kept, as
// those of a series for each line are, those of the aggregation are kept.
func (e *Engine) evaluateAbove(ctx context.Context, q *MetricQuery, leaf *plan.Leaf, extent plan.Extent, divisible bool, evaluate func(ctx context.Context, steps vector.Steps) (*vector.Matrix, error)) (*vector.Matrix, error) {
	if !e.keeps(q, leaf) || !e.results.Refuses(keptLeaf(q, leaf, leaf.Text), results.Steps(extent.Steps)) {
		return evaluate(ctx, extent.Steps)
	}
	return e.evaluate(ctx, q, leaf, extent, divisible, nil, func(ctx context.Context, steps vector.Steps, _ *vector.Top) (*vector.Matrix, error) {
		return evaluate(ctx, steps)
	})
}

// evaluate evaluates a leaf or an aggregation of it, and takes the values that are kept. divisible says that
// fewer steps are tried if these need too much memory.
func (e *Engine) evaluate(ctx context.Context, q *MetricQuery, leaf *plan.Leaf, extent plan.Extent, divisible bool, top *vector.Top, evaluate evaluateLeaf) (*vector.Matrix, error) {
	steps := extent.Steps
	if run := e.open(ctx, q, leaf, extent); run != nil {
		before := q.Quota.Charged()
		m, err := joinKept(ctx, run, q.Quota, steps, evaluate)
		if err == nil {
			return m, e.note(q, leaf, steps)
		}
		if ctx.Err() != nil {
			return nil, err
		}
		if divisible && top == nil && model.NeedsMoreMemory(err) {
			return nil, err // the values of fewer steps can be kept
		}
		// The error of a piece may not be the one that the whole has, and the whole needs less memory if its
		// series need not be held together.
		q.Quota.Revert(before)
		if model.NeedsMoreMemory(err) {
			run.Refuse()
		}
	}
	return evaluate(ctx, steps, top)
}

// open looks for kept values of a leaf, or of an aggregation of it. It returns nil if the whole is evaluated.
func (e *Engine) open(ctx context.Context, q *MetricQuery, leaf *plan.Leaf, extent plan.Extent) *results.Run {
	if !e.keeps(q, leaf) {
		return nil
	}
	return e.results.Open(ctx, keptLeaf(q, leaf, extent.Text), results.Steps(extent.Steps), q.Cost.QueryID())
}

// keeps reports whether values of a leaf, and what is computed of them, may be kept.
func (e *Engine) keeps(q *MetricQuery, leaf *plan.Leaf) bool {
	switch {
	case e.results == nil || q.Cost.Fresh || q.Cost.Bill != nil:
		return false
	case leaf.Aggregation.Op == syntax.StddevOverTime || leaf.Aggregation.Op == syntax.StdvarOverTime:
		// Their last bits depend on the order of workers.
		return false
	}
	return true
}

// keptLeaf names what is kept: a text, which depends on the rows that a leaf reads.
func keptLeaf(q *MetricQuery, leaf *plan.Leaf, text string) *results.Leaf {
	a := leaf.Aggregation
	offset := int64(a.Range.Offset)
	return &results.Leaf{Tenants: q.Tenants, Signal: model.Logs, Text: text, Before: int64(a.Range.Range) + offset, After: -offset}
}

// note adds to the cost what reading the rows of a leaf would have added.
func (e *Engine) note(q *MetricQuery, leaf *plan.Leaf, steps vector.Steps) error {
	r := rowsOf(leaf, steps)
	for _, tenant := range q.Tenants {
		if err := e.read.Kept(&model.Request{Tenant: tenant, Signal: model.Logs, Family: model.Text, Range: r, Quota: q.Quota, Cost: q.Cost}); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf returns the range of the rows that a leaf needs for steps.
func rowsOf(leaf *plan.Leaf, steps vector.Steps) model.TimeRange {
	offset := int64(leaf.Aggregation.Range.Offset)
	return model.TimeRange{Min: steps.Start - offset - int64(leaf.Aggregation.Range.Range), Max: steps.Time(steps.Count-1) - offset}
}

// joinKept joins kept values and those of the steps between them. It keeps the latter where that is possible.
func joinKept(ctx context.Context, run *results.Run, quota *model.Quota, steps vector.Steps, evaluate evaluateLeaf) (*vector.Matrix, error) {
	if len(run.Pieces) == 1 && run.Pieces[0].Value == nil {
		m, err := evaluate(ctx, steps, nil)
		if err == nil {
			keepMatrix(run, &run.Pieces[0], m)
		}
		return m, err
	}
	whole := vector.NewJoined(steps)
	for i := range run.Pieces {
		p := &run.Pieces[i]
		if p.Value != nil {
			if err := whole.Copy(quota, p.Value.(*vector.Matrix), p.At, p.To-p.From, p.From); err != nil {
				return nil, err
			}
			continue
		}
		m, err := evaluate(ctx, steps.Part(p.From, p.To-p.From), nil)
		if err == nil {
			keepMatrix(run, p, m)
			err = whole.Add(quota, m, p.From)
		}
		if err != nil {
			return nil, err
		}
	}
	return whole.Matrix(), nil
}

// keepMatrix keeps the value of a piece.
func keepMatrix(run *results.Run, p *results.Piece, m *vector.Matrix) {
	if m.Size() > run.MaxBytes() {
		run.Refuse()
		return
	}
	run.Keep(p, func(from, to int) (any, int64) {
		part := m.Cut(from-p.From, to-from)
		return part, part.Size()
	})
}

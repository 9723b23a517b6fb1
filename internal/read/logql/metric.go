package logql

import (
	"bytes"
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/plan"
	"github.com/shaledb/shale/internal/read/logql/selection"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// MetricQuery is a query for numbers.
type MetricQuery struct {
	// Tenants are whose lines are counted, each once. If there are several, labels say whose a line is.
	Tenants []string
	// Prepared is a query for numbers.
	Prepared *Prepared
	// Steps are when it is evaluated.
	Steps vector.Steps
	// Instant says that the query asks for one instant: its result is a vector.
	Instant bool
	// MaxSeries bounds the series of the result; 0: only their memory does.
	MaxSeries int
	// Partial cuts a result of more series, with a warning, instead of refusing it. The first series by their
	// labels stay.
	Partial bool
	// Quota bounds the query and Cost tells what it read. The result stays charged until the quota is released.
	Quota *model.Quota
	Cost  *model.Cost
}

// ResultKind says what a result consists of.
type ResultKind uint8

// The kinds of results.
const (
	ResultMatrix ResultKind = iota // series with a value for each step
	ResultVector                   // series with one value
	ResultScalar                   // a number: one series without labels
)

// Numbers are the result of a query for numbers.
type Numbers struct {
	Kind ResultKind
	// Matrix has its series sorted by labels, or in the order of values if the query asks for one instant and
	// sorts. Two series have the same labels only if label_replace made them so and both have a value at one
	// step.
	Matrix   *vector.Matrix
	Warnings []string
	Stats    Stats
}

// Numbers answers a query for numbers. Its errors are of the classes of package model; those of class invalid
// have Loki's texts.
func (e *Engine) Numbers(ctx context.Context, q *MetricQuery) (*Numbers, error) {
	began := e.now()
	if q.Prepared.WantsLines() {
		return nil, ErrInstant
	}
	query := *q
	q = &query
	if q.Quota == nil {
		q.Quota = new(model.Quota)
	}
	if q.Cost == nil {
		q.Cost = new(model.Cost)
	}
	quota, cost := q.Quota, q.Cost
	r := &Numbers{Kind: ResultMatrix}
	if q.Instant {
		r.Kind = ResultVector
		if q.Prepared.plan.Scalar {
			r.Kind = ResultScalar
		}
	}
	before := costsOf(cost)
	p := q.Prepared.plan
	for _, leaf := range p.Leaves {
		if err := e.read.TakeRange(q.Tenants, model.Logs, rowsOf(leaf, q.Steps), quota); err != nil {
			return nil, err
		}
	}
	var err error
	r.Matrix, err = inPieces(ctx, p, quota, q.Steps, func(ctx context.Context, steps vector.Steps, divisible bool) (*vector.Matrix, error) {
		run := plan.Evaluation{
			Plan: p, Steps: steps, KeepOrder: q.Instant && p.Ordered, Quota: quota,
			Read: func(ctx context.Context, leaf *plan.Leaf, extent plan.Extent, top *vector.Top) (*vector.Matrix, error) {
				return e.evaluate(ctx, q, leaf, extent, divisible, top, func(ctx context.Context, steps vector.Steps, top *vector.Top) (*vector.Matrix, error) {
					x := e.selects(selection.Plan{Direction: Forward, Program: leaf.Program.Selection(), Quota: quota, Cost: cost}, leaf.Aggregation.Range.Query, q.Tenants)
					m, err := leaf.Program.Evaluate(ctx, x, steps, q.Tenants, top)
					r.Stats.add(x.Figures())
					return m, err
				})
			},
			Above: func(ctx context.Context, leaf *plan.Leaf, extent plan.Extent, evaluate func(ctx context.Context, steps vector.Steps) (*vector.Matrix, error)) (*vector.Matrix, error) {
				return e.evaluateAbove(ctx, q, leaf, extent, divisible, evaluate)
			},
		}
		return run.Run(ctx)
	})
	if err != nil {
		return nil, err
	}
	if !q.Instant {
		if err := r.Matrix.JoinEqual(quota); err != nil {
			return nil, err
		}
	}
	if err := r.limit(q, quota); err != nil {
		return nil, err
	}
	for i := range r.Matrix.Series {
		r.Stats.Entries += int64(r.Matrix.Series[i].Present.Len())
	}
	r.Stats.addCosts(costsOf(cost), before)
	r.Stats.Exec = e.now().Sub(began)
	return r, nil
}

// limit applies the limit of series. As in Loki, series with the same labels count once in a range.
func (r *Numbers) limit(q *MetricQuery, quota *model.Quota) error {
	if q.MaxSeries <= 0 {
		return nil
	}
	all := r.Matrix.Series
	n := 0
	for i := range all {
		if q.Instant || i == 0 || !bytes.Equal(all[i].Labels, all[i-1].Labels) {
			n++
		}
		if n <= q.MaxSeries {
			continue
		}
		if !q.Partial {
			return &refused{fmt.Sprintf("maximum number of series (%d) reached for a single query; consider reducing query cardinality by "+
				"adding more specific stream selectors, reducing the time range, or aggregating results with functions like sum(), count() or topk()", q.MaxSeries), model.ErrLimit}
		}
		cut := vector.Matrix{Steps: r.Matrix.Steps, Series: all[i:]}
		cut.Release(quota)
		r.Matrix.Series = all[:i:i]
		r.Warnings = append(r.Warnings, fmt.Sprintf("maximum number of series (%d) reached for a single query; returning partial results", q.MaxSeries))
		return nil
	}
	return nil
}

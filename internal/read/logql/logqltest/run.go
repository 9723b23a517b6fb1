package logqltest

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// Run runs a query over the logs of a tenant.
func Run(ctx context.Context, e *logql.Engine, tenant string, q *Query) *Result {
	prepare := logql.Prepare
	if q.Instant() && q.Limit == 0 {
		prepare = logql.PrepareInstant
	}
	p, err := prepare(q.Text)
	if err != nil {
		return &Result{Error: err.Error()}
	}
	quota := &model.Quota{Pool: &model.QueryPool{MaxBytes: math.MaxInt64}}
	defer quota.Release()
	if p.WantsLines() {
		return runLines(ctx, e, tenant, q, p, quota)
	}
	steps := vector.Steps{Start: q.Start, Step: q.Step, Count: 1}
	if !q.Instant() {
		steps.Count += int((q.End - q.Start) / q.Step)
	}
	n, err := e.Numbers(ctx, &logql.MetricQuery{
		Tenants: []string{tenant}, Prepared: p, Steps: steps, Instant: q.Instant(), Quota: quota, Cost: &model.Cost{},
	})
	if err != nil {
		return &Result{Error: err.Error()}
	}
	r := &Result{Type: []string{Matrix, Vector, Scalar}[n.Kind]}
	for _, s := range n.Matrix.Series {
		out := Series{Labels: pairs(s.Labels)}
		for i := range n.Matrix.Steps.Count {
			if s.Present.Has(i) {
				out.Points = append(out.Points, Point{n.Matrix.Steps.Time(i) / 1e6, s.Values[i]})
			}
		}
		r.Series = append(r.Series, out)
	}
	return r
}

func runLines(ctx context.Context, e *logql.Engine, tenant string, q *Query, p *logql.Prepared, quota *model.Quota) *Result {
	direction := logql.Backward
	if q.Forward {
		direction = logql.Forward
	}
	lines, err := e.Lines(ctx, &logql.Query{
		Tenants: []string{tenant}, Prepared: p, Start: q.Start, End: q.End, Limit: q.Limit, Direction: direction,
		Quota: quota, Cost: &model.Cost{},
	})
	if err != nil {
		return &Result{Error: err.Error()}
	}
	r := &Result{Type: Streams}
	for _, s := range lines.Streams {
		out := Series{Labels: pairs(s.Labels)}
		for _, x := range s.Entries {
			out.Lines = append(out.Lines, Entry{x.Time, string(x.Line)})
		}
		r.Series = append(r.Series, out)
	}
	return r
}

func pairs(l model.Labels) []string {
	var out []string
	for {
		name, value, rest, ok := l.Next()
		if !ok {
			return out
		}
		out, l = append(out, string(name), string(value)), rest
	}
}

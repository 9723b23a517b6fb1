package prom

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/model"
)

// The engine allocates two counters for every step of a subquery before it evaluates the first, even without
// samples: x[290y:1ms] would exhaust the memory of the process.
const (
	bytesPerSubqueryStep = 16
	maxSubquerySteps     = 1 << 24 // a year of steps of 2 s
)

// chargeSubqueries charges the steps of the subqueries of an expression, whose durations are computed, and
// that is evaluated over a time span. A subquery with too many steps is an error of class [model.ErrLimit].
func (h *Handler) chargeSubqueries(expr parser.Expr, span time.Duration, q *model.Quota) error {
	var err error
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		sub, ok := node.(*parser.SubqueryExpr)
		if !ok || err != nil {
			return err
		}
		// A subquery is evaluated once, over the whole time that the steps around it look back at.
		length := saturate(span, sub.Range)
		for _, outer := range path {
			if o, ok := outer.(*parser.SubqueryExpr); ok {
				length = saturate(length, o.Range)
			}
		}
		step := sub.Step
		switch {
		case step == 0:
			step = h.o.SubqueryStep
		case step < time.Millisecond:
			// The engine counts in milliseconds and would divide by zero.
			err = badParam("query", fmt.Errorf("subquery steps below 1ms are not accepted"))
		}
		if err != nil {
			return err
		}
		steps := int64(length / step)
		if steps > maxSubquerySteps {
			err = fmt.Errorf("%w: a subquery has %d steps; at most %d are allowed. Try a shorter range or a longer step", model.ErrLimit, steps, maxSubquerySteps)
		} else {
			err = q.TakeBytes(bytesPerSubqueryStep * steps)
		}
		return err
	})
	return err
}

// saturate adds two non-negative durations.
func saturate(a, b time.Duration) time.Duration {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

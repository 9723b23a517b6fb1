package logql

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/plan"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// maxReread bounds how often, on average, the lines of a query are read if it is evaluated in pieces: the
// windows of the first steps of each piece reach back into the piece before.
const maxReread = 4

// evaluateSteps evaluates a plan at some steps. divisible says that fewer steps are tried if these need too
// much memory.
type evaluateSteps func(ctx context.Context, steps vector.Steps, divisible bool) (*vector.Matrix, error)

// inPieces evaluates a plan at all steps. If that needs more memory than the query may have, it evaluates
// pieces of the steps, each half as long as the one that was too large, one after the other. Every operation
// of LogQL has a value at a step that depends on this step alone, so the result is the same. A topk of groups
// that come and go, such as paths with numbers in them, needs memory for the groups of a piece only.
func inPieces(ctx context.Context, p *plan.Plan, quota *model.Quota, all vector.Steps, evaluate evaluateSteps) (*vector.Matrix, error) {
	var whole *vector.Joined
	for from, size := 0, all.Count; from < all.Count; {
		steps := all.Part(from, min(size, all.Count-from))
		half := steps.Count / 2
		divisible := half > 0 && reread(p, all.Step, half) <= maxReread
		before := quota.Charged()
		m, err := evaluate(ctx, steps, divisible)
		switch {
		case divisible && model.NeedsMoreMemory(err):
			quota.Revert(before)
			size = half
			continue
		case err != nil:
			return nil, err
		case steps.Count == all.Count:
			return m, nil
		}
		if whole == nil {
			whole = vector.NewJoined(all)
		}
		if err := whole.Add(quota, m, from); err != nil {
			return nil, err
		}
		from += steps.Count
	}
	return whole.Matrix(), nil
}

// reread returns how often each line is read on average if pieces have that many steps.
func reread(p *plan.Plan, step int64, steps int) float64 {
	longest := int64(0)
	for _, leaf := range p.Leaves {
		longest = max(longest, int64(leaf.Aggregation.Range.Range))
	}
	piece := float64(step) * float64(steps)
	return max(1, (float64(longest)+piece-float64(step))/piece)
}

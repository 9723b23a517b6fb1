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

// inPieces evaluates a plan at all steps. If that needs more memory than the query may have, it evaluates
// pieces of the steps, each half as long as the one that was too large, one after the other. Every operation
// of LogQL has a value at a step that depends on this step alone, so the result is the same. A topk of groups
// that come and go, such as paths with numbers in them, needs memory for the groups of a piece only.
func inPieces(ctx context.Context, run plan.Evaluation, all vector.Steps) (*vector.Matrix, error) {
	var whole *vector.Joined
	for from, size := 0, all.Count; from < all.Count; {
		run.Steps = all.Part(from, min(size, all.Count-from))
		before := run.Quota.Charged()
		m, err := run.Run(ctx)
		switch half := run.Steps.Count / 2; {
		case err != nil && half > 0 && model.NeedsMoreMemory(err) && reread(run.Plan, all.Step, half) <= maxReread:
			run.Quota.Revert(before)
			size = half
			continue
		case err != nil:
			return nil, err
		case run.Steps.Count == all.Count:
			return m, nil
		}
		if whole == nil {
			whole = vector.NewJoined(all)
		}
		if err := whole.Add(run.Quota, m, from); err != nil {
			return nil, err
		}
		from += run.Steps.Count
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

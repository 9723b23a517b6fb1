package vector

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// Aggregate carries out an aggregation over the series of a matrix. The result has a series for each group,
// in the order of their first series; topk, bottomk and the sorts keep series as they are. Sums are taken in
// the order of the series, so the same operand always gives the same bits.
func Aggregate(ctx context.Context, quota *model.Quota, e *syntax.VectorAggregation, in *Matrix) (*Matrix, error) {
	if Picks(e.Op) {
		return pick(ctx, quota, e, in)
	}
	numbers := groups(&e.Grouping)
	groupOf := numbers.add(in)
	labels := numbers.labels
	if len(labels) == len(in.Series) && keepsSingle(e.Op) {
		return regrouped(quota, in, labels)
	}
	out := &Matrix{Steps: in.Steps, Series: make([]Series, len(labels))}
	steps := in.Steps.Count
	states := make([]state, len(labels))
	scratch := stateSize(e.Op, steps) * int64(len(labels))
	if err := quota.TakeBytes(scratch); err != nil {
		return nil, err
	}
	a := aggregation{op: e.Op, first: NewSet(steps), further: NewSet(steps)}
	for i := range in.Series {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g := groupOf[i]
		s := &out.Series[g]
		if s.Values == nil {
			var err error
			if *s, err = newSeries(quota, labels[g], steps); err != nil {
				return nil, err
			}
			states[g] = newState(e.Op, steps)
		}
		a.add(s, &states[g], &in.Series[i])
	}
	for g := range out.Series {
		a.finish(&out.Series[g], &states[g])
	}
	_ = quota.TakeBytes(-scratch) // giving back does not fail
	return out, nil
}

// Picks reports whether an aggregation keeps series as they are: topk, bottomk and the sorts.
func Picks(op syntax.VectorOp) bool {
	switch op {
	case syntax.TopK, syntax.ApproxTopK, syntax.BottomK, syntax.Sort, syntax.SortDesc:
		return true
	}
	return false
}

// keepsSingle reports whether an aggregation of one series has the values of that series.
func keepsSingle(op syntax.VectorOp) bool {
	return op == syntax.Sum || op == syntax.Avg || op == syntax.Min || op == syntax.Max
}

// regrouped returns the series of a matrix with other labels.
func regrouped(quota *model.Quota, in *Matrix, labels []model.Labels) (*Matrix, error) {
	out := &Matrix{Steps: in.Steps, Series: make([]Series, len(labels))}
	for i := range in.Series {
		out.Series[i] = in.Series[i]
		out.Series[i].Labels = labels[i]
	}
	return out, quota.TakeBytes(out.Size())
}

// newSeries charges and makes a series without present values.
func newSeries(quota *model.Quota, labels model.Labels, steps int) (Series, error) {
	if err := quota.TakeBytes(SeriesSize(labels, steps)); err != nil {
		return Series{}, err
	}
	return Series{Labels: labels, Values: make([]float64, steps), Present: NewSet(steps)}, nil
}

// state is what an aggregation of one group needs for each step until its values are final.
type state struct {
	counts []float64 // of avg, stddev and stdvar
	means  []float64 // of stddev and stdvar
}

func newState(op syntax.VectorOp, steps int) (s state) {
	switch op {
	case syntax.Stddev, syntax.Stdvar:
		s.means = make([]float64, steps)
		fallthrough
	case syntax.Avg:
		s.counts = make([]float64, steps)
	}
	return s
}

func stateSize(op syntax.VectorOp, steps int) int64 {
	switch op {
	case syntax.Stddev, syntax.Stdvar:
		return 16 * int64(steps)
	case syntax.Avg:
		return 8 * int64(steps)
	}
	return 0
}

// aggregation adds series to groups.
type aggregation struct {
	op syntax.VectorOp
	// Of the series that is added: the steps at which it is the first of its group, and the others.
	first, further Set
}

// add adds the values of a series to a group.
func (a *aggregation) add(g *Series, st *state, s *Series) {
	for w, present := range s.Present {
		a.first[w] = present &^ g.Present[w]
		a.further[w] = present & g.Present[w]
		g.Present[w] |= present
	}
	for i := range a.first.All() {
		switch a.op {
		case syntax.Count:
			g.Values[i] = 1
		case syntax.Stddev, syntax.Stdvar:
			st.means[i], st.counts[i] = s.Values[i], 1
		case syntax.Avg:
			g.Values[i], st.counts[i] = s.Values[i], 1
		default:
			g.Values[i] = s.Values[i]
		}
	}
	a.addFurther(g, st, s.Values)
}

// addFurther adds values at steps at which the group has one. As in Loki, a mean moves by the difference to
// each value, and NaN loses against any number in min and max.
func (a *aggregation) addFurther(g *Series, st *state, values []float64) {
	switch a.op {
	case syntax.Sum:
		for i := range a.further.All() {
			g.Values[i] += values[i]
		}
	case syntax.Count:
		for i := range a.further.All() {
			g.Values[i]++
		}
	case syntax.Avg:
		for i := range a.further.All() {
			st.counts[i]++
			g.Values[i] += (values[i] - g.Values[i]) / st.counts[i]
		}
	case syntax.Max:
		for i := range a.further.All() {
			if g.Values[i] < values[i] || math.IsNaN(g.Values[i]) {
				g.Values[i] = values[i]
			}
		}
	case syntax.Min:
		for i := range a.further.All() {
			if g.Values[i] > values[i] || math.IsNaN(g.Values[i]) {
				g.Values[i] = values[i]
			}
		}
	case syntax.Stddev, syntax.Stdvar: // Welford's method: the value is the sum of squares
		for i := range a.further.All() {
			st.counts[i]++
			delta := values[i] - st.means[i]
			st.means[i] += delta / st.counts[i]
			g.Values[i] += delta * (values[i] - st.means[i])
		}
	}
}

// finish makes the final values of a group.
func (a *aggregation) finish(g *Series, st *state) {
	switch a.op {
	case syntax.Stdvar:
		for i := range g.Present.All() {
			g.Values[i] /= st.counts[i]
		}
	case syntax.Stddev:
		for i := range g.Present.All() {
			g.Values[i] = math.Sqrt(g.Values[i] / st.counts[i])
		}
	}
}

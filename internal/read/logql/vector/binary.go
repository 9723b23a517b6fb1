package vector

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// CombineNumber carries out an operation between a matrix and a number, which is on the left or on the right.
// Series keep their labels. A comparison without bool keeps the values for which it is true.
func CombineNumber(ctx context.Context, quota *model.Quota, e *syntax.BinaryExpr, in *Matrix, number *syntax.Literal) (*Matrix, error) {
	left := e.Left == syntax.MetricExpr(number)
	filters := isFilter(e)
	out := &Matrix{Steps: in.Steps}
	for i := range in.Series {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		from := &in.Series[i]
		s, err := newSeries(quota, from.Labels, in.Steps.Count)
		if err != nil {
			return nil, err
		}
		for step := range from.Present.All() {
			v := from.Values[step]
			l, r := v, number.Value
			if left {
				l, r = r, l
			}
			switch result := syntax.Calculate(e.Op, l, r); {
			case !filters:
				s.Values[step] = result
			case result == 0:
				continue
			default:
				s.Values[step] = v
			}
			s.Present.Add(step)
		}
		out.add(quota, s)
	}
	return out, nil
}

// add adds a series that was charged, or gives its memory back if it has no value.
func (m *Matrix) add(quota *model.Quota, s Series) {
	if s.Present.IsEmpty() {
		_ = quota.TakeBytes(-SeriesSize(s.Labels, m.Steps.Count)) // giving back does not fail
		return
	}
	m.Series = append(m.Series, s)
}

// isFilter reports whether an operation is a comparison that leaves elements out.
func isFilter(e *syntax.BinaryExpr) bool {
	switch e.Op {
	case syntax.OpEqual, syntax.OpNotEqual, syntax.OpGreater, syntax.OpGreaterOrEqual, syntax.OpLess, syntax.OpLessOrEqual:
		return !e.Bool
	}
	return false
}

// Combine carries out an operation between two matrices of the same steps. Series are in the order of the
// left side, or of the right side with group_right; or adds those of the right side at the end.
//
// Elements are matched at each step for itself, as in Loki: an error means that two elements of one step
// exclude each other, and is of class invalid.
func Combine(ctx context.Context, quota *model.Quota, e *syntax.BinaryExpr, left, right *Matrix) (*Matrix, error) {
	if e.Op.IsSet() {
		return combineSets(ctx, quota, e, left, right)
	}
	return match(ctx, quota, e, left, right)
}

// combineSets carries out and, or and unless.
func combineSets(ctx context.Context, quota *model.Quota, e *syntax.BinaryExpr, left, right *Matrix) (*Matrix, error) {
	out := &Matrix{Steps: left.Steps}
	switch e.Op {
	case syntax.OpAnd:
		return out, out.addWhere(ctx, quota, &e.Matching, left, right, true)
	case syntax.OpUnless:
		return out, out.addWhere(ctx, quota, &e.Matching, left, right, false)
	}
	for i := range left.Series {
		s := left.Series[i]
		if err := quota.TakeBytes(SeriesSize(s.Labels, left.Steps.Count)); err != nil {
			return nil, err
		}
		out.Series = append(out.Series, s)
	}
	return out, out.addWhere(ctx, quota, &e.Matching, right, left, false)
}

// addWhere adds the elements of a matrix for which the other one has an element with the same signature at
// the same step, or those for which it has none.
func (m *Matrix) addWhere(ctx context.Context, quota *model.Quota, by *syntax.VectorMatching, from, other *Matrix, has bool) error {
	numbers := signatures(by)
	otherNumbers := numbers.add(other)
	// At which steps the other side has a signature.
	there := make([]Set, len(numbers.labels))
	for i, n := range otherNumbers {
		if there[n] == nil {
			there[n] = NewSet(m.Steps.Count)
		}
		for w, present := range other.Series[i].Present {
			there[n][w] |= present
		}
	}
	never := NewSet(m.Steps.Count)
	fromNumbers := numbers.add(from)
	for i := range from.Series {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := from.Series[i]
		if err := quota.TakeBytes(SeriesSize(s.Labels, m.Steps.Count)); err != nil {
			return err
		}
		set := never
		if n := int(fromNumbers[i]); n < len(there) {
			set = there[n]
		}
		present := NewSet(m.Steps.Count)
		for w, p := range s.Present {
			if present[w] = p & set[w]; !has {
				present[w] = p &^ set[w]
			}
		}
		s.Present = present
		m.add(quota, s)
	}
	return nil
}

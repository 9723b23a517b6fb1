package vector

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// Constant returns a matrix of one series without labels that has a value at each step.
func Constant(quota *model.Quota, steps Steps, value float64) (*Matrix, error) {
	s, err := newSeries(quota, nil, steps.Count)
	if err != nil {
		return nil, err
	}
	for i := range s.Values {
		s.Values[i] = value
		s.Present.Add(i)
	}
	return &Matrix{Steps: steps, Series: []Series{s}}, nil
}

// ReplaceLabels carries out label_replace. Series keep their order and their values, and different series may
// get the same labels.
func ReplaceLabels(ctx context.Context, quota *model.Quota, e *syntax.LabelReplace, in *Matrix) (*Matrix, error) {
	out := &Matrix{Steps: in.Steps, Series: make([]Series, 0, len(in.Series))}
	var b model.LabelsBuilder
	var expanded []byte
	for i := range in.Series {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s := in.Series[i]
		src := s.Labels.Get(e.Src)
		if groups := e.Regexp.FindSubmatchIndex(src); groups != nil {
			expanded = e.Regexp.Expand(expanded[:0], []byte(e.Replacement), src, groups)
			b.Reset()
			for name, value, rest, ok := s.Labels.Next(); ok; name, value, rest, ok = rest.Next() {
				if string(name) != e.Dst {
					b.Add(name, value)
				}
			}
			b.Add([]byte(e.Dst), expanded)
			var err error
			if s.Labels, err = b.Append(nil); err != nil {
				return nil, err
			}
		}
		if err := quota.TakeBytes(SeriesSize(s.Labels, in.Steps.Count)); err != nil {
			return nil, err
		}
		out.Series = append(out.Series, s)
	}
	return out, nil
}

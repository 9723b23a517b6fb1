package transform

import (
	"slices"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// transformNull fills gaps with a number; with reference series, only where one of them has a value.
func transformNull(c *function.Call) (any, error) {
	reference := c.List(2)
	n := 0
	for _, r := range reference {
		n = max(n, len(r.Values))
	}
	var fill []float64
	if len(reference) > 0 {
		fill = series.Nulls(n)
		for _, r := range reference {
			for i, v := range r.Values {
				if !series.IsNull(v) {
					fill[i] = c.Number(1)
				}
			}
		}
	}
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		s.Tags["transformNull"] = c.Text(1)
		name := "transformNull(" + s.Name + "," + series.General(c.Number(1))
		if len(reference) > 0 {
			s.Tags["referenceSeries"] = "1"
			name += ",referenceSeries"
		}
		s.Rename(name + ")")
		if slices.ContainsFunc(reference, func(r *series.Series) bool { return r.Step != s.Step }) {
			s.Values = fillWithin(s, reference, c.Number(1))
			return s, nil
		}
		// Where the reference has more values, graphite-web drops as many of the first values: all others move.
		out := slices.Clone(s.Values)
		for i, v := range out {
			switch {
			case !series.IsNull(v):
			case len(reference) == 0:
				out[i] = c.Number(1)
			case i < n:
				out[i] = fill[i]
			}
		}
		s.Values = out
		return s, nil
	})(c)
}

// fillWithin fills the gaps of a series in whose time a reference series has a value. graphite-web counts
// values in place of times, which are others if the steps are different.
func fillWithin(s *series.Series, reference series.List, fill float64) []float64 {
	out := slices.Clone(s.Values)
	for i := range out {
		begin := s.Start + int64(i)*s.Step
		for _, r := range reference {
			first, last := floorDiv(begin-r.Start, r.Step), floorDiv(begin+s.Step-1-r.Start, r.Step)
			for j := max(0, first); j <= last && j < int64(len(r.Values)) && series.IsNull(out[i]); j++ {
				if !series.IsNull(r.Values[j]) {
					out[i] = fill
				}
			}
		}
	}
	return out
}

// gaps calls f with the bounds of each run of missing values: the value before the run is at begin-1, the
// one after it at end. A run at the end has end = len.
func gaps(values []float64, f func(begin, end int)) {
	for i := 0; i < len(values); i++ {
		if !series.IsNull(values[i]) {
			continue
		}
		begin := i
		for i < len(values) && series.IsNull(values[i]) {
			i++
		}
		f(begin, i)
	}
}

// keepLast repeats the last value in gaps of at most limit values, also at the end.
func keepLast(c *function.Call, s *series.Series) (*series.Series, error) {
	limit := c.Number(1)
	s.Rename("keepLastValue(" + s.Name + ")")
	out := slices.Clone(s.Values)
	gaps(s.Values, func(begin, end int) {
		if begin > 0 && float64(end-begin) <= limit {
			for i := begin; i < end; i++ {
				out[i] = out[begin-1]
			}
		}
	})
	s.Values = out
	return s, nil
}

// interpolate draws a line through gaps of at most limit values, but not at the end.
func interpolate(c *function.Call, s *series.Series) (*series.Series, error) {
	limit := c.Number(1)
	s.Rename("interpolate(" + s.Name + ")")
	out := slices.Clone(s.Values)
	gaps(s.Values, func(begin, end int) {
		if begin > 0 && end < len(out) && float64(end-begin) <= limit {
			from, rise := out[begin-1], out[end]-out[begin-1]
			for i := begin; i < end; i++ {
				out[i] = from + float64(i-begin+1)*rise/float64(end-begin+1)
			}
		}
	})
	s.Values = out
	return s, nil
}

// compress gives a series with a value every n steps a step of n. The distance is guessed from the first
// values.
func compress(_ *function.Call, s *series.Series) (*series.Series, error) {
	s.Rename("compressPeriodicGaps(" + s.Name + ")")
	there := func(i int) bool { return !series.IsNull(s.Values[i]) && s.Values[i] != 0 }
	first, second := 0, 0
	for i := range s.Values {
		if there(i) {
			if first > 0 {
				second = i
				break
			}
			first = i
		}
	}
	guess := second - first
	third := second + guess
	if guess <= 1 || third > len(s.Values)-2 || !there(third) || !series.IsNull(s.Values[third-1]) || !series.IsNull(s.Values[third+1]) {
		return s, nil
	}
	interval, start := int64(guess)*s.Step, s.Start+int64(first)*s.Step
	out, _ := buckets(s, series.Last, interval, start, s.End)
	d := *s
	d.Draw = series.Draw{}
	d.Start, d.Step, d.End, d.Values = start, interval, start+interval*int64(len(out)-1), out
	return &d, nil
}

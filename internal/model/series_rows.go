package model

// SeriesRows are the rows of one series, by family.
type SeriesRows struct {
	Samples, Exemplars Rows
}

const families = 2

// Families lists the families that rows of a series may have, in the order of the file format.
func Families() [families]Family { return [families]Family{Samples, Exemplars} }

// Family returns the rows of a family.
func (s *SeriesRows) Family(f Family) *Rows {
	if f == Exemplars {
		return &s.Exemplars
	}
	return &s.Samples
}

// Len returns the number of rows of all families.
func (s *SeriesRows) Len() int { return s.Samples.Len() + s.Exemplars.Len() }

// Reset empties all families and keeps their memory.
func (s *SeriesRows) Reset() {
	s.Samples.Reset()
	s.Exemplars.Reset()
}

// Append adds all rows of o.
func (s *SeriesRows) Append(o *SeriesRows) {
	for _, f := range Families() {
		if from := o.Family(f); from.Len() > 0 {
			s.Family(f).AppendRows(from, 0, from.Len())
		}
	}
}

// Normalize brings every family into the order of the file format.
func (s *SeriesRows) Normalize() {
	for _, f := range Families() {
		s.Family(f).NormalizeAs(f)
	}
}

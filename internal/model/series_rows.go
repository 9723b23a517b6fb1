package model

// SeriesRows are the rows of one series of metrics, by family. They have no text: the lines of one series may
// exceed the memory, so they are handled a page at a time; see [TextRows].
type SeriesRows struct {
	Samples, Exemplars Rows
}

// Families lists the families that rows of a batch may have, in the order of the file format.
func Families() [families]Family { return [families]Family{Samples, Exemplars, Text} }

const families = 3

// PointFamilies lists the families that a SeriesRows has, in the order of the file format.
func PointFamilies() [2]Family { return [2]Family{Samples, Exemplars} }

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
	for _, f := range PointFamilies() {
		if from := o.Family(f); from.Len() > 0 {
			s.Family(f).AppendRows(from, 0, from.Len())
		}
	}
}

// Normalize sorts every family into the order of the file format, and removes duplicates.
func (s *SeriesRows) Normalize() {
	for _, f := range PointFamilies() {
		s.Family(f).NormalizeAs(f)
	}
}

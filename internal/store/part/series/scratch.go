package series

// scratch is the memory of a selection that grows with the series that it looks at. It is charged before it
// is taken and given back when the selection ends.
type scratch struct {
	charge func(bytes int64) error // nil: nothing is charged
	taken  int64
}

func (s *scratch) take(bytes int64) error {
	if s.charge == nil {
		return nil
	}
	if err := s.charge(bytes); err != nil {
		return err
	}
	s.taken += bytes
	return nil
}

// release gives everything back.
func (s *scratch) release() {
	if s.taken > 0 {
		_ = s.charge(-s.taken) // giving back never fails
	}
	s.taken = 0
}

package line

import (
	"cmp"
	"slices"
)

// shape is the order by name of the labels of the last line. Lines of one kind have the same labels in the
// same order, so they are seldom sorted again: sorting was more than a third of the time of | json in
// BenchmarkProcess.
type shape struct {
	names []byte // one after the other
	ends  []int
	order []int32
}

// sort finds the order of labels.
func (s *shape) sort(all []label) {
	if s.fits(all) {
		return
	}
	s.names, s.ends, s.order = s.names[:0], s.ends[:0], s.order[:0]
	for i := range all {
		s.names = append(s.names, all[i].name...)
		s.ends = append(s.ends, len(s.names))
		s.order = append(s.order, int32(i))
	}
	slices.SortFunc(s.order, func(a, b int32) int { return cmp.Compare(all[a].name, all[b].name) })
}

func (s *shape) fits(all []label) bool {
	if len(s.ends) != len(all) {
		return false
	}
	begin := 0
	for i := range all {
		if all[i].name != text(s.names[begin:s.ends[i]]) {
			return false
		}
		begin = s.ends[i]
	}
	return true
}

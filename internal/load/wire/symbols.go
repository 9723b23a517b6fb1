package wire

// symbols is the table of strings of one request of remote write 2.0, as bytes of its field 4.
type symbols struct {
	bytes []byte
	n     uint32
}

func (s *symbols) reset() {
	s.bytes, s.n = append(s.bytes[:0], LenTag(4), 0), 1 // the first symbol is empty
}

// add appends a symbol and returns its reference. It does not look for duplicates.
func (s *symbols) add(text []byte) uint32 {
	s.bytes = AppendField(s.bytes, 4, text)
	s.n++
	return s.n - 1
}

// numbered are the references of symbols that differ only by a number. A request has a range of them: the
// numbers rise from the first one, and continue at 0 after the last one.
type numbered struct {
	first, size int
	refs        []uint32 // 0: not added yet
}

func (t *numbered) reset(first, size, most int) {
	t.first, t.size = first, size
	n := min(size, most)
	if cap(t.refs) < n {
		t.refs = make([]uint32, n)
	}
	t.refs = t.refs[:n]
	clear(t.refs)
}

// at returns a pointer to the reference of a number.
func (t *numbered) at(n int) *uint32 {
	if n -= t.first; n < 0 {
		n += t.size
	}
	return &t.refs[n]
}

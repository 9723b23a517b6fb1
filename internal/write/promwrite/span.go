package promwrite

// span is a piece of the decoded body, or, with the top bit of at set, of a walker's arena.
type span struct{ at, size uint32 }

const inArena = 1 << 31

// of returns the piece of a body; the span must not lie in the arena.
func (s span) of(decoded []byte) []byte { return decoded[s.at : s.at+s.size : s.at+s.size] }

func spanOf(begin, stop int) span { return span{uint32(begin), uint32(stop - begin)} }

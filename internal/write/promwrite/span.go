package promwrite

// span is a range of the decoded body. With the bit inArena of at set, it is a range of a walker's
// arena.
type span struct{ at, size uint32 }

const inArena = 1 << 31

// slice returns the bytes of the span in a body. The span must not be in the arena.
func (s span) slice(decoded []byte) []byte { return decoded[s.at : s.at+s.size : s.at+s.size] }

func spanOf(begin, stop int) span { return span{uint32(begin), uint32(stop - begin)} }

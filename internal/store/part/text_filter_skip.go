package part

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// textSkip is a filter of a request, made ready to be asked of many units: each clause as its alternatives, and each of these
// as the items that a unit must have.
type textSkip struct {
	clauses [][]literalItems
}

// newTextSkip returns nil if nothing can be left out.
func newTextSkip(f *model.TextFilter) *textSkip {
	if f == nil {
		return nil
	}
	s := &textSkip{}
	for i := range f.Clauses {
		var any []literalItems
		for k := range f.Clauses[i].Any {
			l := itemsOfLiteral(&f.Clauses[i].Any[k])
			if len(l.items) == 0 {
				any = nil
				break
			}
			any = append(any, l)
		}
		if any != nil {
			s.clauses = append(s.clauses, any)
		}
	}
	if len(s.clauses) == 0 {
		return nil
	}
	return s
}

// selective reports whether something is asked for that is no word.
func (s *textSkip) selective() bool {
	return slices.ContainsFunc(s.clauses, func(any []literalItems) bool {
		return !slices.ContainsFunc(any, func(l literalItems) bool {
			return !slices.ContainsFunc(l.classes, func(class byte) bool { return class != itemWords })
		})
	})
}

// ruledOut returns 1 for each filter of a page of whose unit no line satisfies the request's. It asks for slices that it needs.
func (s *textSkip) ruledOut(p *filterPage, slice func(int) ([]byte, error)) ([]byte, error) {
	out := make([]byte, len(p.filters))
	may := make([]bool, len(p.filters))
	var left []int32 // filters that may have all items so far
	for _, any := range s.clauses {
		clear(may)
		for k := range any {
			left = left[:0]
			for i := range out {
				if out[i] == 0 && !may[i] {
					left = append(left, int32(i))
				}
			}
			var err error
			if left, err = mayHave(&any[k], p, left, slice); err != nil {
				return nil, err
			}
			for _, i := range left {
				may[i] = true
			}
		}
		for i, m := range may {
			if !m {
				out[i] = 1
			}
		}
	}
	return out, nil
}

// slicesAhead is how many items of a literal are mostly enough.
const slicesAhead = 3

// ahead appends the slices of a page that will most likely be needed.
func (s *textSkip) ahead(dst []Addr, p *filterPage) []Addr {
	for _, any := range s.clauses {
		for k := range any {
			for i, item := range any[k].items[:min(len(any[k].items), slicesAhead)] {
				if !p.sliced[any[k].classes[i]] {
					continue
				}
				if a := p.slice(p.sliceOf(item)); !slices.Contains(dst, a) {
					dst = append(dst, a)
				}
			}
		}
	}
	return dst
}

// key is what a list is named after that says something of the filter: a digest of all that is asked, since the items may be many
// and a list is kept for each page.
func (s *textSkip) key() string {
	h := sha256.New()
	var b []byte
	for _, any := range s.clauses {
		b = binary.AppendUvarint(b[:0], uint64(len(any)))
		for i := range any {
			b = binary.AppendUvarint(b, uint64(len(any[i].items)))
			b = append(b, any[i].classes...)
			for _, item := range any[i].items {
				b = binary.LittleEndian.AppendUint64(b, item)
			}
		}
		h.Write(b)
	}
	return "filters " + string(h.Sum(nil)) + " "
}

// mayHave returns those of some filters that may have all items.
func mayHave(l *literalItems, p *filterPage, of []int32, slice func(int) ([]byte, error)) ([]int32, error) {
	for k, item := range l.items {
		class := l.classes[k]
		var bits []byte
		if len(of) > 0 && p.sliced[class] {
			var err error
			if bits, err = slice(p.sliceOf(item)); err != nil {
				return nil, err
			}
		}
		of = slices.DeleteFunc(of, func(i int32) bool { return !p.has(int(i), class, item, bits) })
	}
	return of, nil
}

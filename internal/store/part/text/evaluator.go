package text

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// evaluator tests the filters of units against the filter of a request. Each clause is a list of
// alternatives, and each alternative is the items that a unit must have.
type evaluator struct {
	clauses [][]lines.Literal
}

// newEvaluator returns nil if no unit can be ruled out.
func newEvaluator(f *model.TextFilter) *evaluator {
	if f == nil {
		return nil
	}
	s := &evaluator{}
	for i := range f.Clauses {
		var any []lines.Literal
		for k := range f.Clauses[i].Any {
			l := lines.ItemsOf(&f.Clauses[i].Any[k])
			if len(l.Items) == 0 {
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

// selective reports whether a clause looks for something other than words.
func (s *evaluator) selective() bool {
	return slices.ContainsFunc(s.clauses, func(any []lines.Literal) bool {
		return !slices.ContainsFunc(any, func(l lines.Literal) bool {
			return !slices.ContainsFunc(l.Classes, func(class byte) bool { return class != lines.ItemWords })
		})
	})
}

// ruledOut returns 1 for each filter of a page that rules out its unit. It calls slice for the slices that it
// needs.
func (s *evaluator) ruledOut(p *filterPage, slice func(int) ([]byte, error)) ([]byte, error) {
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

// likelyItems is the number of items of a literal that usually suffice.
const likelyItems = 3

// likelySlices appends the slices of a page that will most likely be needed.
func (s *evaluator) likelySlices(dst []file.Addr, p *filterPage) []file.Addr {
	for _, any := range s.clauses {
		for k := range any {
			for i, item := range any[k].Items[:min(len(any[k].Items), likelyItems)] {
				if !p.sliced[any[k].Classes[i]] {
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

// key identifies the filter in the keys of lists: a digest of all items, since there may be many, and a list
// is cached for each page.
func (s *evaluator) key() [16]byte {
	h := sha256.New()
	var b []byte
	for _, any := range s.clauses {
		b = binary.AppendUvarint(b[:0], uint64(len(any)))
		for i := range any {
			b = binary.AppendUvarint(b, uint64(len(any[i].Items)))
			b = append(b, any[i].Classes...)
			for _, item := range any[i].Items {
				b = binary.LittleEndian.AppendUint64(b, item)
			}
		}
		h.Write(b)
	}
	return [16]byte(h.Sum(nil)[:16])
}

// mayHave returns those of some filters that may have all items.
func mayHave(l *lines.Literal, p *filterPage, of []int32, slice func(int) ([]byte, error)) ([]int32, error) {
	for k, item := range l.Items {
		class := l.Classes[k]
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

package text

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// evaluator is a filter of a request, made ready to be asked of many units: each clause as its alternatives,
// and each of these as the items that a unit must have.
type evaluator struct {
	clauses [][]lines.Literal
}

// newEvaluator returns nil if nothing can be left out.
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

// selective reports whether something is asked for that is no word.
func (s *evaluator) selective() bool {
	return slices.ContainsFunc(s.clauses, func(any []lines.Literal) bool {
		return !slices.ContainsFunc(any, func(l lines.Literal) bool {
			return !slices.ContainsFunc(l.Classes, func(class byte) bool { return class != lines.ItemWords })
		})
	})
}

// ruledOut returns 1 for each filter of a page of whose unit no line satisfies the request's. It asks for
// slices that it needs.
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

// likelyItems is how many items of a literal are mostly enough.
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

// key is what a list is named after that says something of the filter: a digest of all that is asked, since
// the items may be many and a list is kept for each page.
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

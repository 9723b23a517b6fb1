package part

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// textSkip is a filter of a request, made ready to be asked of many units: each clause as its alternatives, and each of these
// as the items that a unit must have.
type textSkip struct {
	clauses [][]literalItems
}

// literalItems are what lines must have that satisfy a literal.
type literalItems struct {
	items   []uint64
	classes []byte
}

// mostLiteralItems bounds what is asked for one literal: more would say little more, and each may need a slice of its own.
const mostLiteralItems = 12

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
			if left, err = any[k].in(p, left, slice); err != nil {
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

// in returns those of some filters that may have all items.
func (l *literalItems) in(p *filterPage, of []int32, slice func(int) ([]byte, error)) ([]int32, error) {
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

func (l *literalItems) add(class byte, item uint64) {
	if item != 0 && len(l.items) < mostLiteralItems && !slices.Contains(l.items, item) {
		l.items, l.classes = append(l.items, item), append(l.classes, class)
	}
}

// itemsOfLiteral returns what the filter of a unit has if a line has the literal, none if nothing is known.
func itemsOfLiteral(t *model.TextLiteral) (l literalItems) {
	if t.Name != "" {
		if !t.Fold && t.Value != "" {
			l.add(itemMetadata, metadataItem(t.Name, t.Value))
		}
		return l
	}
	needle := []byte(t.Value)
	if !t.Fold {
		l.runs(needle)
		l.words(appendGrams(nil, needle))
		return l
	}
	// A letter that has other forms than its two cases, as k and s do, may be any bytes in the line: what stands beside it is at
	// an edge. For runs so does T, which is part of one as t.
	for _, piece := range cut(needle, "kKsStTzZ") {
		l.runs(piece)
	}
	var grams []gram
	for _, piece := range cut(needle, "kKsS") {
		grams = appendGrams(grams, piece)
	}
	l.words(grams)
	return l
}

// cut returns the pieces between the bytes that are among some, or not ASCII.
func cut(b []byte, some string) [][]byte {
	return bytes.FieldsFunc(b, func(r rune) bool { return r >= utf8.RuneSelf || strings.ContainsRune(some, r) })
}

// gram is an item of four letters.
type gram struct {
	item   uint64
	rarity int
}

func appendGrams(dst []gram, b []byte) []gram {
	for i := range len(b) - wordGram + 1 {
		of, rarity := uint32(0), 0
		for k := range wordGram {
			w := wordByte[b[i+k]]
			if w == 0 {
				rarity = -1
				break
			}
			of |= uint32(w) << (8 * k)
			rarity += letterRarity[w]
		}
		if item := gramItem(of); rarity >= 0 && item != 0 {
			dst = append(dst, gram{item, rarity})
		}
	}
	return dst
}

// words adds the items of words, those first that are rare among words, since each that is looked at costs a slice.
func (l *literalItems) words(grams []gram) {
	slices.SortStableFunc(grams, func(x, y gram) int { return y.rarity - x.rarity })
	for _, g := range grams {
		l.add(itemWords, g.item)
	}
}

// letterRarity is the place of a letter by how common it is in English, and of other bytes of words one in the middle.
var letterRarity = func() (rarity [256]int) {
	const common = "etaoinsrhldcumfpgwybvkxjqz"
	for i := range rarity {
		rarity[i] = len(common) / 2
	}
	for i, c := range []byte(common) {
		rarity[c] = i
	}
	return rarity
}()

// runs adds the items of the runs of a stretch of a line. Long ones come first, since they say most. Shorter ones must have
// something on both sides.
func (l *literalItems) runs(b []byte) {
	type span struct{ i, j int }
	var whole []span
	for i := 0; i < len(b); {
		if runClass[b[i]] == 0 {
			i++
			continue
		}
		j := i
		for j < len(b) && runClass[b[j]] != 0 {
			j++
		}
		if j-i >= longRun {
			for _, item := range appendMinimizers(nil, b[i:j]) {
				l.add(itemLong, item)
			}
		} else if i > 0 && j < len(b) {
			whole = append(whole, span{i, j})
		}
		i = j
	}
	for _, s := range whole {
		l.add(itemRuns, runItem(b[s.i:s.j]))
		if k, ok := pairAt(b, s.i, s.j); ok {
			l.add(itemPairs, pairItem(b[k:s.j]))
		}
	}
}

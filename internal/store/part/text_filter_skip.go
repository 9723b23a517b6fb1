package part

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
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

// mostLiteralItems bounds what is asked for one literal: more would say little more.
const mostLiteralItems = 32

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

// none reports whether no line of the unit that has the filter satisfies the request's.
func (s *textSkip) none(filter []byte) (bool, error) {
	var f itemFilter
	if err := f.open(filter); err != nil {
		return false, err
	}
	for _, any := range s.clauses {
		may := false
		for i := range any {
			if may = any[i].in(&f); may {
				break
			}
		}
		if !may {
			return true, nil
		}
	}
	return false, nil
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

// in reports whether a filter may have all items.
func (l *literalItems) in(f *itemFilter) bool {
	for i, item := range l.items {
		if !f.has(l.classes[i], item) {
			return false
		}
	}
	return true
}

func (l *literalItems) add(class byte, item uint64) {
	if item != 0 && len(l.items) < mostLiteralItems {
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
		l.words(needle)
		return l
	}
	// A letter that has other forms than its two cases, as k and s do, may be any bytes in the line: what stands beside it is at
	// an edge. For runs so does T, which is part of one as t.
	for _, piece := range cut(needle, "kKsStTzZ") {
		l.runs(piece)
	}
	for _, piece := range cut(needle, "kKsS") {
		l.words(piece)
	}
	return l
}

// cut returns the pieces between the bytes that are among some, or not ASCII.
func cut(b []byte, some string) [][]byte {
	return bytes.FieldsFunc(b, func(r rune) bool { return r >= utf8.RuneSelf || strings.ContainsRune(some, r) })
}

func (l *literalItems) words(b []byte) {
	eachGram(b, func(item uint64) { l.add(itemWords, item) })
}

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

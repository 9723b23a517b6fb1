package lines

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// Literal is what a line must have to contain a literal.
type Literal struct {
	Items   []uint64
	Classes []byte
}

// mostLiteralItems bounds the items of one literal: more would rule out little more, and each may need its
// own slice.
const mostLiteralItems = 12

func (l *Literal) add(class byte, item uint64) {
	if item != 0 && len(l.Items) < mostLiteralItems && !slices.Contains(l.Items, item) {
		l.Items, l.Classes = append(l.Items, item), append(l.Classes, class)
	}
}

// ItemsOf returns the items that the filter of a unit has if a line contains the literal, or none if it
// implies none.
func ItemsOf(t *model.TextLiteral) (l Literal) {
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
	// A letter with other forms than its two cases, such as k and s, may be any bytes in the line, so the text
	// next to it is at an edge. For runs, T is such a letter too: a run has t but not T.
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

// cut returns the pieces between bytes that are in a set, or not ASCII.
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

// words adds the items of words, rare ones first, because each lookup costs a slice.
func (l *Literal) words(grams []gram) {
	slices.SortStableFunc(grams, func(x, y gram) int { return y.rarity - x.rarity })
	for _, g := range grams {
		l.add(ItemWords, g.item)
	}
}

// letterRarity ranks letters by how common they are in English. Other bytes of words have a middle rank.
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

// runs adds the items of the runs of a stretch of a line. Long ones come first, since they rule out most.
// Shorter ones must have something on both sides.
func (l *Literal) runs(b []byte) {
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

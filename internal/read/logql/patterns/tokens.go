package patterns

import (
	"hash/maphash"
)

const (
	// maxWords and maxBytes bound how much of a line is looked at. The rest is one wildcard.
	maxWords = 64
	maxBytes = 2048
)

// separators are the bytes between words: space, control characters, and the punctuation of sentences, JSON
// and logfmt. Bytes of paths, versions and addresses (/ - _ . and such) are parts of words.
var separators = func() (is [256]bool) {
	for c := range 0x21 {
		is[c] = true
	}
	for _, c := range []byte("=,;:()[]{}\"'<>|`\x7f") {
		is[c] = true
	}
	return is
}()

// span is where a word is in its line.
type span struct{ begin, end uint16 }

// tokens are the words of a line. Memory is reused from line to line.
type tokens struct {
	seed  maphash.Seed
	spans []span
	// words has the hash of each word. They are never 0 and odd exactly if the word has a digit.
	words []uint64
	// text is as much of the line as is looked at. If there is more, the line is open: the rest is a wildcard.
	text []byte
	open bool
	// structure stands for all that is between the words.
	structure uint64

	between []byte
}

func newTokens() *tokens { return &tokens{seed: maphash.MakeSeed()} }

// cut cuts a line into words.
func (t *tokens) cut(line []byte) {
	t.spans, t.words, t.between = t.spans[:0], t.words[:0], t.between[:0]
	end := min(len(line), maxBytes)
	i := 0
	for i < end {
		if separators[line[i]] {
			t.between = append(t.between, line[i])
			i++
			continue
		}
		begin, digit := i, uint64(0)
		for i < len(line) && i <= maxBytes && !separators[line[i]] {
			if line[i]-'0' <= 9 {
				digit = 1
			}
			i++
		}
		if i > maxBytes || len(t.spans) == maxWords {
			i = begin
			break
		}
		t.spans = append(t.spans, span{uint16(begin), uint16(i)})
		t.words = append(t.words, (maphash.Bytes(t.seed, line[begin:i])|2)&^1|digit)
		t.between = append(t.between, 'w') // no separator
	}
	if t.text, t.open = line[:i], i < len(line); t.open {
		t.between = append(t.between, '.')
	}
	t.structure = maphash.Bytes(t.seed, t.between)
}

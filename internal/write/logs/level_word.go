package logs

import "bytes"

// Properties of a byte: it may precede a word, follow a word, or be the first letter of a level.
const (
	beforeWord = 1 << iota
	afterWord
	firstLetter
)

// wordBytes has the properties of each byte. A colon may follow a word but not precede it: "debug: x"
// has a level, "misc:error" has none.
var wordBytes = func() (t [256]uint8) {
	for _, c := range []byte(" \t\n[({\"=") {
		t[c] |= beforeWord
	}
	for _, c := range []byte(" \t\n[](){}:,!\"=") {
		t[c] |= afterWord
	}
	for _, c := range []byte("tdfcewiTDFCEWI") {
		t[c] |= firstLetter
	}
	return t
}()

// dottedI is the only letter beyond ASCII whose lower case, i, occurs in a level.
var dottedI = []byte("İ")

// wordLevel returns the level of the first word that is a level, or levelUnknown.
func wordLevel(line []byte) level {
	if bytes.Contains(line, dottedI) {
		line = bytes.ReplaceAll(line, dottedI, []byte{'i'})
	}
	before := uint8(beforeWord)
	for i, c := range line {
		class := wordBytes[c]
		if before&beforeWord != 0 && class&firstLetter != 0 {
			if l := levelWordAt(line[i:]); l != none {
				return l
			}
		}
		before = class
	}
	return levelUnknown
}

// levelWordAt returns the level that b begins with as a whole word, or none.
func levelWordAt(b []byte) level {
	switch b[0] | 0x20 {
	case 'i':
		if isWord(b, "info") {
			return levelInfo
		}
	case 'e':
		if isWord(b, "error") || isWord(b, "err") {
			return levelError
		}
	case 'w':
		if isWord(b, "warn") || isWord(b, "warning") {
			return levelWarn
		}
	case 'd':
		if isWord(b, "debug") {
			return levelDebug
		}
	case 't':
		if isWord(b, "trace") {
			return levelTrace
		}
	case 'f':
		if isWord(b, "fatal") {
			return levelFatal
		}
	case 'c':
		if isWord(b, "critical") {
			return levelCritical
		}
	}
	return none
}

// isWord reports whether b begins with word, in any case, followed by the end of a word.
func isWord(b []byte, word string) bool {
	if len(b) < len(word) || len(b) > len(word) && wordBytes[b[len(word)]]&afterWord == 0 {
		return false
	}
	for i := range len(word) {
		if b[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

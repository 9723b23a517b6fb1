package logs

import "bytes"

// What a letter may begin, or a byte be beside a word.
const (
	beforeWord = 1 << iota
	behindWord
	firstLetter
)

// wordBytes says of each byte which of these it is. Colons stand behind words and not before: "debug: x" has a level,
// "misc:error" has none.
var wordBytes = func() (t [256]uint8) {
	for _, c := range []byte(" \t\n[({\"=") {
		t[c] |= beforeWord
	}
	for _, c := range []byte(" \t\n[](){}:,!\"=") {
		t[c] |= behindWord
	}
	for _, c := range []byte("tdfcewiTDFCEWI") {
		t[c] |= firstLetter
	}
	return t
}()

// dottedI is the one letter beyond ASCII whose lower case, i, is part of a level.
var dottedI = []byte("İ")

// wordLevel returns the level of the first word in the line that is one, or unknown.
func wordLevel(line []byte) level {
	if bytes.Contains(line, dottedI) {
		line = bytes.ReplaceAll(line, dottedI, []byte{'i'})
	}
	before := uint8(beforeWord)
	for i, c := range line {
		of := wordBytes[c]
		if before&beforeWord != 0 && of&firstLetter != 0 {
			if l := levelWordAt(line[i:]); l != none {
				return l
			}
		}
		before = of
	}
	return levelUnknown
}

// levelWordAt returns the level of the word with which b begins, or none.
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

// isWord reports whether b begins with a word, in any case, that ends there.
func isWord(b []byte, word string) bool {
	if len(b) < len(word) || len(b) > len(word) && wordBytes[b[len(word)]]&behindWord == 0 {
		return false
	}
	for i := range len(word) {
		if b[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

package words

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Filter returns the filter of the lines that contain a text. VictoriaLogs has an index of words, so whole
// words within the text are asked for, too.
func Filter(text string, fold bool) string {
	pattern := regexp.QuoteMeta(text)
	if fold {
		return "_msg:~" + strconv.Quote("(?i)"+pattern)
	}
	out := "_msg:~" + strconv.Quote(pattern)
	for _, w := range wholeWords(text) {
		out += " _msg:" + strconv.Quote(w)
	}
	if strings.Contains(out, " ") {
		return "(" + out + ")"
	}
	return out
}

// maxWords bounds the words of one text that are asked for.
const maxWords = 4

// wholeWords returns words within a text, the longest first. A word at an end of the text may be part of a
// longer one in a line, and letters beyond ASCII are left to VictoriaLogs: neither is returned.
func wholeWords(text string) (words []string) {
	begin := -1 // after a byte that is in no word
	for i := range len(text) {
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			begin = -1
		case !IsByte(c):
			if begin >= 0 && begin < i {
				words = append(words, text[begin:i])
			}
			begin = i + 1
		}
	}
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return words[:min(len(words), maxWords)]
}

// IsByte reports whether a byte is one of words.
func IsByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

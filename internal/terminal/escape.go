package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape appends text to dst on one line, with everything that a terminal would obey or could not show
// written as in Go: \n, \x1b, \u202e. That is: control characters, line and paragraph separators, the
// characters that change the direction of the text around them, and bytes that are not UTF-8. A backslash
// stays as it is, so that lines of JSON stay readable; the result cannot be turned back into the text.
func Escape(dst, text []byte) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = fmt.Appendf(dst, `\x%02x`, text[0])
		case obeyed(r):
			quoted := strconv.AppendQuoteRuneToASCII(nil, r)
			dst = append(dst, quoted[1:len(quoted)-1]...)
		default:
			dst = append(dst, text[:size]...)
		}
		text = text[size:]
	}
	return dst
}

// EscapeLines is Escape for messages of several lines: newlines stay.
func EscapeLines(text string) string {
	var out []byte
	for line := range strings.Lines(text) {
		bare, ended := strings.CutSuffix(line, "\n")
		out = Escape(out, []byte(bare))
		if ended {
			out = append(out, '\n')
		}
	}
	return string(out)
}

// EscapeJSON appends a JSON document to dst, in which the characters that Escape would write otherwise are
// escaped as JSON does. It means the same.
func EscapeJSON(dst, document []byte) []byte {
	for len(document) > 0 {
		r, size := utf8.DecodeRune(document)
		if r != '\n' && r != '\r' && r != '\t' && obeyed(r) {
			dst = fmt.Appendf(dst, `\u%04x`, r)
		} else {
			dst = append(dst, document[:size]...)
		}
		document = document[size:]
	}
	return dst
}

// obeyed reports whether a terminal does something else with a character than to show it.
func obeyed(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069': // embeddings, overrides and isolates
		return true
	}
	return false
}

package match

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// needle is a string to look for. If fold is set the case of letters does not matter, as in Go's regular
// expressions: by Unicode's simple folding, so that k is also the sign of Kelvin, and s the long s.
type needle struct {
	text []byte
	fold bool

	// For folding, text is ASCII in lower case: others are left to the regular expression. rare is the place
	// of its rarest byte, by which it is searched for, and special says that a line with a Kelvin sign or a
	// long s can match.
	rare    int
	special bool
}

// newNeedle returns ok = false for what must be folded and is not ASCII.
func newNeedle(s string, fold bool) (n needle, ok bool) {
	n = needle{text: []byte(s)}
	if !fold || !hasLetter(s) {
		for i := 0; fold && i < len(s); i++ {
			if s[i] >= utf8.RuneSelf {
				return n, false
			}
		}
		return n, true
	}
	n.fold = true
	for i := range n.text {
		c := Lower(n.text[i])
		if c >= utf8.RuneSelf {
			return n, false
		}
		n.text[i] = c
		n.special = n.special || c == 'k' || c == 's'
		if rareness(c) > rareness(n.text[n.rare]) {
			n.rare = i
		}
	}
	return n, true
}

func hasLetter(s string) bool {
	for _, r := range s {
		if unicode.SimpleFold(r) != r {
			return true
		}
	}
	return false
}

func Lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// rareness ranks bytes by how seldom they are in log lines, roughly.
func rareness(c byte) int {
	switch {
	case c == ' ':
		return 0
	case c == 'e' || c == 't' || c == 'a' || c == 'o' || c == 'i' || c == 'n' || c == 's' || c == 'r':
		return 1
	case c == 'j' || c == 'q' || c == 'x' || c == 'z':
		return 4
	case c >= 'a' && c <= 'z':
		return 2
	case c >= '0' && c <= '9', c == '"', c == '=', c == ':', c == '.', c == ',', c == '-':
		return 1
	}
	return 3
}

func (n *needle) Matches(line []byte) bool { return n.index(line) >= 0 }

// index returns the place of the first hit, or -1. With special letters a hit may be longer than the needle.
func (n *needle) index(b []byte) int {
	if n.special && hasSpecial(b) {
		return n.indexSpecial(b)
	}
	return n.indexPlain(b)
}

// indexPlain is index for bytes without special letters, where each hit is as long as the needle.
func (n *needle) indexPlain(b []byte) int {
	if n.fold {
		return n.indexASCII(b)
	}
	return bytes.Index(b, n.text)
}

// indexASCII looks for both cases of the rarest byte with the machine's search for bytes, and compares around
// the hits. Where they would be too many it compares everywhere.
func (n *needle) indexASCII(b []byte) int {
	c := n.text[n.rare]
	if rareness(c) <= 1 && len(n.text) > 1 {
		return n.indexOften(b)
	}
	upper := c
	if c >= 'a' && c <= 'z' {
		upper -= 'a' - 'A'
	}
	last := len(b) - len(n.text) // the last place of a hit
	if last < 0 {
		return -1
	}
	area := b[n.rare : n.rare+last+1]
	next := func(from int, c byte) int {
		if from > len(area) {
			return len(area)
		}
		if i := bytes.IndexByte(area[from:], c); i >= 0 {
			return from + i
		}
		return len(area)
	}
	lo, up := next(0, c), len(area)
	if upper != c {
		up = next(0, upper)
	}
	for {
		at := min(lo, up)
		if at == len(area) {
			return -1
		}
		if n.equalASCII(b[at : at+len(n.text)]) {
			return at
		}
		if at == lo {
			lo = next(at+1, c)
		} else {
			up = next(at+1, upper)
		}
	}
}

func (n *needle) indexOften(b []byte) int {
	first, second := n.text[0], n.text[1]
	for i := 0; i+len(n.text) <= len(b); i++ {
		if Lower(b[i]) == first && Lower(b[i+1]) == second && n.equalASCII(b[i:i+len(n.text)]) {
			return i
		}
	}
	return -1
}

func (n *needle) equalASCII(b []byte) bool {
	for i, c := range n.text {
		if Lower(b[i]) != c {
			return false
		}
	}
	return true
}

// hasSpecial reports whether b has a letter that folds to an ASCII one: U+017F or U+212A.
func hasSpecial(b []byte) bool {
	return bytes.Contains(b, []byte("\u017f")) || bytes.Contains(b, []byte("\u212a"))
}

func (n *needle) indexSpecial(b []byte) int {
	for i := range b {
		if n.matchSpecial(b[i:]) {
			return i
		}
	}
	return -1
}

func (n *needle) matchSpecial(b []byte) bool {
	for _, c := range n.text {
		r, size := utf8.DecodeRune(b)
		if size == 0 {
			return false
		}
		switch r {
		case '\u017f':
			r = 's'
		case '\u212a':
			r = 'k'
		}
		if r >= utf8.RuneSelf || Lower(byte(r)) != c {
			return false
		}
		b = b[size:]
	}
	return true
}

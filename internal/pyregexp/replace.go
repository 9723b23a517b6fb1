package pyregexp

import (
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// piece is a part of a template: literal text, or a group if it is not negative.
type piece struct {
	text  string
	group int
}

// Template is the parsed replacement of a regular expression.
type Template struct {
	regex  *Regexp
	pieces []piece
}

// Template parses a replacement in Python's form: \1 and \g<1> are groups, \g<name> is a named group, \\ is
// a backslash.
func (r *Regexp) Template(text string) (*Template, error) {
	t := &Template{regex: r}
	add := func(n int, ref string) error {
		if n < 0 || n > r.groups {
			return errorf("the replacement %q refers to the group %s, of which %q has none", text, ref, r.pattern)
		}
		t.pieces = append(t.pieces, piece{group: n})
		return nil
	}
	var b strings.Builder
	literal := func() {
		if b.Len() > 0 {
			t.pieces = append(t.pieces, piece{text: b.String(), group: -1})
			b.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch c := text[i]; {
		case c == 'g' && i+1 < len(text) && text[i+1] == '<' && strings.Contains(text[i:], ">"):
			end := i + strings.IndexByte(text[i:], '>')
			ref := text[i+2 : end]
			n, err := strconv.Atoi(ref)
			if err != nil {
				n = r.Group(ref)
			}
			literal()
			if err := add(n, ref); err != nil {
				return nil, err
			}
			i = end
		case c == '0':
			b.WriteByte(0)
		case '1' <= c && c <= '9':
			end := i + 1
			if end < len(text) && '0' <= text[end] && text[end] <= '9' {
				end++
			}
			n, _ := strconv.Atoi(text[i:end])
			literal()
			if err := add(n, text[i:end]); err != nil {
				return nil, err
			}
			i = end - 1
		case strings.IndexByte(`abfnrtv`, c) >= 0:
			b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
		case c == '\\':
			b.WriteByte(c)
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			return nil, errorf(`the replacement %q has the unknown escape \%c`, text, c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	literal()
	return t, nil
}

// maxResult bounds a replaced text.
const maxResult = 64 << 10

// Replace replaces all matches in a text.
func (t *Template) Replace(s string) (string, error) {
	matches, err := t.regex.all(s)
	if err != nil || len(matches) == 0 {
		return s, err
	}
	var b strings.Builder
	end := 0
	for _, m := range matches {
		b.WriteString(s[end:m[0]])
		for _, p := range t.pieces {
			switch {
			case p.group < 0:
				b.WriteString(p.text)
			case 2*p.group+1 < len(m) && m[2*p.group] >= 0:
				b.WriteString(s[m[2*p.group]:m[2*p.group+1]])
			}
		}
		if b.Len() > maxResult {
			return "", errorf("the replacement makes a text of more than %d bytes", maxResult)
		}
		end = m[1]
	}
	b.WriteString(s[end:])
	return b.String(), nil
}

// Group returns the number of a group with a name, or -1.
func (r *Regexp) Group(name string) int {
	if n, ok := r.names[name]; ok {
		return n
	}
	return -1
}

// Groups returns the texts of the groups of the first match, and whether there is one. The first text is
// that of the whole match; a group that took no part is empty.
func (r *Regexp) Groups(text string) (groups []string, ok bool, err error) {
	var m match
	if r.isLinear(text) {
		m = r.linear.FindStringSubmatchIndex(text)
	} else if m, _, err = r.next(newRunes(text), 0); err != nil {
		return nil, false, err
	}
	for i := 0; i+1 < len(m); i += 2 {
		of := ""
		if m[i] >= 0 {
			of = text[m[i]:m[i+1]]
		}
		groups = append(groups, of)
	}
	return groups, m != nil, nil
}

// match is a match with its groups, as pairs of offsets in bytes; -1 where a group took no part.
type match []int

// all returns the matches that Python replaces: from left to right, where an empty match may follow another
// match.
func (r *Regexp) all(s string) (out []match, err error) {
	if r.isLinear(s) && (r.once || r.slow == nil) {
		for _, m := range r.linear.FindAllStringSubmatchIndex(s, -1) {
			out = append(out, m)
		}
		return out, nil
	}
	text := newRunes(s)
	for at := 0; at <= len(text.runes); {
		m, end, err := r.next(text, at)
		if err != nil {
			return nil, err
		}
		if m == nil {
			break
		}
		out = append(out, m)
		if at = end; m[0] == m[1] {
			// A longer match may begin here, but the engine would find the empty one again.
			at++
		}
	}
	return out, nil
}

// runes is a text as the backtracking engine counts it.
type runes struct {
	runes  []rune
	offset []int // of each rune, and of the end, in bytes; a byte that is not UTF-8 is a rune
}

func newRunes(s string) *runes {
	t := &runes{runes: make([]rune, 0, len(s)), offset: make([]int, 0, len(s)+1)}
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		t.runes, t.offset = append(t.runes, c), append(t.offset, i)
		i += n
	}
	t.offset = append(t.offset, len(s))
	return t
}

// next returns the first match of the backtracking engine from a rune on, or nil, and the rune after it.
func (r *Regexp) next(t *runes, at int) (found match, end int, err error) {
	err = r.backtrack(func() error {
		m, err := r.slow.FindRunesMatchStartingAt(t.runes, at)
		if err != nil || m == nil {
			return err
		}
		end = m.Index + m.Length
		for _, g := range m.Groups() {
			if len(g.Captures) == 0 {
				found = append(found, -1, -1)
			} else {
				found = append(found, t.offset[g.Index], t.offset[g.Index+g.Length])
			}
		}
		return nil
	})
	return found, end, err
}

// anchored reports whether an expression can match only at the start of the text.
func anchored(t *syntax.Regexp) bool {
	switch t.Op {
	case syntax.OpBeginText:
		return true
	case syntax.OpCapture:
		return anchored(t.Sub[0])
	case syntax.OpConcat:
		return len(t.Sub) > 0 && anchored(t.Sub[0])
	}
	return false
}

// minLength returns a lower bound of the length of a match: 0 or more.
func minLength(t *syntax.Regexp) int {
	switch t.Op {
	case syntax.OpLiteral:
		return len(t.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return minLength(t.Sub[0])
	case syntax.OpRepeat:
		return min(1, t.Min) * minLength(t.Sub[0])
	case syntax.OpConcat:
		n := 0
		for _, s := range t.Sub {
			n += minLength(s)
		}
		return n
	case syntax.OpAlternate:
		n := minLength(t.Sub[0])
		for _, s := range t.Sub[1:] {
			n = min(n, minLength(s))
		}
		return n
	}
	return 0
}

package pattern

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// piece is a part of a template: literal text, or a group if it is not negative.
type piece struct {
	text  string
	group int
}

// Template is the parsed replacement of a regular expression.
type Template struct {
	regex  *Regex
	pieces []piece
}

// Template parses a replacement in Python's form: \1 and \g<1> are groups, \g<name> is a named group, \\ is
// a backslash.
func (r *Regex) Template(text string) (*Template, error) {
	t := &Template{regex: r}
	groups := r.groups()
	add := func(n int, ref string) error {
		if n < 0 || n > groups {
			return fmt.Errorf("%w: the replacement %q refers to the group %s, of which %q has none", model.ErrInvalid, text, ref, r.text)
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
				n = r.group(ref)
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
			return nil, fmt.Errorf(`%w: the replacement %q has the unknown escape \%c`, model.ErrInvalid, text, c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	literal()
	return t, nil
}

func (r *Regex) groups() int {
	if r.linear != nil {
		return r.linear.NumSubexp()
	}
	return len(r.backtrack.GetGroupNumbers()) - 1
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
			return "", fmt.Errorf("%w: the replacement makes a name of more than %d bytes", model.ErrInvalid, maxResult)
		}
		end = m[1]
	}
	b.WriteString(s[end:])
	return b.String(), nil
}

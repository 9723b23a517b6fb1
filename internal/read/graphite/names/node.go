package names

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// node is one node of a glob. A text matches if it is one of the literals, or if one of the wildcards
// matches.
type node struct {
	deep     bool // **
	any      bool // *
	literal  string
	literals map[string]struct{} // nil if there is one or none
	wild     []wildcard
	// head is the literal text with which every match begins.
	head string
	one  bool // the node is literal, and nothing else matches
}

func parseNode(pattern string) (node, error) {
	switch pattern {
	case "**":
		return node{deep: true}, nil
	case "*":
		return node{any: true}, nil
	}
	alternatives, err := expandBraces(pattern)
	if err != nil {
		return node{}, err
	}
	var n node
	for i, a := range alternatives {
		w := parseWildcard(a)
		head := w.head()
		if i == 0 {
			n.head = head
		} else {
			n.head = n.head[:commonLength(n.head, head)]
		}
		if text, ok := w.text(); ok {
			if n.literals == nil {
				n.literals = make(map[string]struct{}, len(alternatives))
			}
			n.literals[text] = struct{}{}
			n.literal = text
			continue
		}
		n.wild = append(n.wild, w)
	}
	if len(n.wild) == 0 && len(n.literals) == 1 {
		n.one, n.literals = true, nil
	}
	return n, nil
}

func commonLength(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i
}

func (n *node) match(label []byte) bool {
	switch {
	case n.any || n.deep:
		return true
	case n.one:
		return string(label) == n.literal
	}
	if !bytes.HasPrefix(label, []byte(n.head)) {
		return false
	}
	if _, ok := n.literals[string(label)]; ok {
		return true
	}
	for i := range n.wild {
		if n.wild[i].match(label) {
			return true
		}
	}
	return false
}

// expandBraces returns the alternatives of a node. As in graphite-web, the innermost braces are expanded
// first, and a brace without its other half is literal.
func expandBraces(pattern string) ([]string, error) {
	todo, out := []string{pattern}, []string(nil)
	seen := make(map[string]struct{})
	for size := len(pattern); len(todo) > 0; {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		open, shut := innermost(p)
		if open < 0 {
			if _, ok := seen[p]; !ok {
				seen[p] = struct{}{}
				out = append(out, p)
			}
			continue
		}
		for _, choice := range splitChoices(p[open+1 : shut]) {
			todo = append(todo, p[:open]+choice+p[shut+1:])
			size += len(p)
		}
		if n := len(todo) + len(out); n > maxAlternatives || size > 16*maxGlobBytes {
			return nil, fmt.Errorf("%w: a node of the pattern has more than %d alternatives in braces", model.ErrInvalid, maxAlternatives)
		}
	}
	return out, nil
}

// innermost returns the places of the first pair of braces without braces between them, or -1.
func innermost(p string) (open, shut int) {
	open = -1
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '{':
			open = i
		case '}':
			if open >= 0 {
				return open, i
			}
		}
	}
	return -1, -1
}

func splitChoices(s string) []string {
	var out []string
	begin := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case ',':
			out, begin = append(out, s[begin:i]), i+1
		}
	}
	return append(out, s[begin:])
}

// wildcard is the texts between the stars of a pattern. The first begins a match, and the last ends it.
type wildcard []segment

// segment is a text without stars. If plain is set, it is literal.
type segment struct {
	plain string
	chars []char // nil: literal
}

// char is a character of a segment: itself, any, or one of a set.
type char struct {
	r   rune
	any bool
	set *set
}

// set is [...]: ranges of characters.
type set struct {
	not    bool
	ranges [][2]rune
}

func (s *set) has(r rune) bool {
	for _, x := range s.ranges {
		if x[0] <= r && r <= x[1] {
			return !s.not
		}
	}
	return s.not
}

func parseWildcard(p string) wildcard {
	w := wildcard{{}}
	var chars []char
	literal := true
	end := func() {
		last := &w[len(w)-1]
		if literal {
			var b strings.Builder
			for _, c := range chars {
				b.WriteRune(c.r)
			}
			last.plain = b.String()
		} else {
			last.chars = chars
		}
		chars, literal = nil, true
	}
	for len(p) > 0 {
		r, n := utf8.DecodeRuneInString(p)
		switch {
		case r == '*':
			end()
			w = append(w, segment{})
		case r == '?':
			chars, literal = append(chars, char{any: true}), false
		case r == '[':
			if s, used := parseSet(p); s != nil {
				chars, literal, n = append(chars, char{set: s}), false, used
				break
			}
			chars = append(chars, char{r: r})
		case r == '\\' && len(p) > 1:
			r, m := utf8.DecodeRuneInString(p[1:])
			chars, n = append(chars, char{r: r}), 1+m
		default:
			chars = append(chars, char{r: r})
		}
		p = p[n:]
	}
	end()
	return w
}

// parseSet reads [...] from the beginning of a pattern; nil: the bracket has no other half. As in fnmatch, a
// bracket right after the first one belongs to the set.
func parseSet(p string) (*set, int) {
	s, i := &set{}, 1
	if i < len(p) && p[i] == '!' {
		s.not = true
		i++
	}
	shut := i
	if shut < len(p) && p[shut] == ']' {
		shut++
	}
	for shut < len(p) && p[shut] != ']' {
		shut++
	}
	if shut >= len(p) {
		return nil, 0
	}
	members := []rune(p[i:shut])
	for k := 0; k < len(members); k++ {
		if k+2 < len(members) && members[k+1] == '-' {
			s.ranges = append(s.ranges, [2]rune{members[k], members[k+2]})
			k += 2
			continue
		}
		s.ranges = append(s.ranges, [2]rune{members[k], members[k]})
	}
	return s, shut + 1
}

// text returns the text of a pattern without wildcards.
func (w wildcard) text() (string, bool) { return w[0].plain, len(w) == 1 && w[0].chars == nil }

// head returns the literal text at the beginning.
func (w wildcard) head() string {
	if w[0].chars == nil {
		return w[0].plain
	}
	var b strings.Builder
	for _, c := range w[0].chars {
		if c.any || c.set != nil {
			break
		}
		b.WriteRune(c.r)
	}
	return b.String()
}

func (w wildcard) match(label []byte) bool {
	rest, ok := w[0].cut(label)
	if !ok || len(w) == 1 {
		return ok && len(rest) == 0
	}
	for i := 1; i < len(w)-1; i++ {
		if rest, ok = w[i].find(rest); !ok {
			return false
		}
	}
	return w[len(w)-1].ends(rest)
}

// cut matches the segment at the beginning of a text, and returns what follows.
func (s *segment) cut(b []byte) ([]byte, bool) {
	if s.chars == nil {
		if !bytes.HasPrefix(b, []byte(s.plain)) {
			return nil, false
		}
		return b[len(s.plain):], true
	}
	for i := range s.chars {
		c := &s.chars[i]
		r, n := utf8.DecodeRune(b)
		if n == 0 || !c.any && (c.set != nil && !c.set.has(r) || c.set == nil && c.r != r) {
			return nil, false
		}
		b = b[n:]
	}
	return b, true
}

// find finds the segment in a text, as early as possible, and returns what follows.
func (s *segment) find(b []byte) ([]byte, bool) {
	if s.chars == nil {
		i := bytes.Index(b, []byte(s.plain))
		if i < 0 {
			return nil, false
		}
		return b[i+len(s.plain):], true
	}
	for {
		if rest, ok := s.cut(b); ok {
			return rest, true
		}
		_, n := utf8.DecodeRune(b)
		if n == 0 {
			return nil, false
		}
		b = b[n:]
	}
}

// ends reports whether a text ends with the segment.
func (s *segment) ends(b []byte) bool {
	if s.chars == nil {
		return bytes.HasSuffix(b, []byte(s.plain))
	}
	begin := len(b)
	for range s.chars {
		_, n := utf8.DecodeLastRune(b[:begin])
		if n == 0 {
			return false
		}
		begin -= n
	}
	rest, ok := s.cut(b[begin:])
	return ok && len(rest) == 0
}

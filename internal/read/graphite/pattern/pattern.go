package pattern

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/dlclark/regexp2"

	"github.com/shaledb/shale/internal/model"
)

const (
	// maxLength bounds the text of a regular expression.
	maxLength = 4096
	// matchTime bounds one match of the backtracking engine.
	matchTime = 100 * time.Millisecond
)

// Regex is a compiled regular expression. It is safe for concurrent use.
type Regex struct {
	text string
	// linear is nil if RE2 has no equal expression. asciiOnly says that it is equal only for ASCII text:
	// \w, \d, \s and \b mean Unicode in Python.
	linear    *regexp.Regexp
	asciiOnly bool
	// once says that the expression matches at most once in a text, or never the empty text. Then RE2 finds the
	// matches that Python replaces.
	once      bool
	backtrack *regexp2.Regexp
	// failed is why there is no backtracking form.
	failed error
}

// Compile compiles a regular expression of Python. Errors are of class [model.ErrInvalid].
func Compile(text string) (*Regex, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("%w: a regular expression has %d bytes, more than %d", model.ErrInvalid, len(text), maxLength)
	}
	r := &Regex{text: text}
	python := strings.NewReplacer(`\\`, `\\`, `\Z`, `\z`).Replace(text)
	var err error
	if r.linear, err = regexp.Compile(python); err == nil {
		r.asciiOnly = strings.Contains(text, "(?i") || hasClass(text)
		if tree, err := syntax.Parse(python, syntax.Perl); err == nil {
			r.once = anchored(tree) || minLength(tree) > 0
		}
		if !r.asciiOnly && r.once {
			return r, nil
		}
	}
	r.backtrack, r.failed = regexp2.Compile(dotNet(python), regexp2.None)
	if r.failed == nil {
		r.backtrack.MatchTimeout = matchTime
		return r, nil
	}
	if r.linear != nil {
		return r, nil
	}
	return nil, fmt.Errorf("%w: regular expression %q: %w", model.ErrInvalid, text, err)
}

// hasClass reports whether an expression has a class whose meaning depends on Unicode.
func hasClass(text string) bool {
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '\\' {
			if strings.IndexByte("wWdDsSbB", text[i+1]) >= 0 {
				return true
			}
			i++
		}
	}
	return false
}

// dotNet writes Python's named groups as those of the backtracking engine.
func dotNet(text string) string {
	text = strings.ReplaceAll(text, "(?P<", "(?<")
	for {
		i := strings.Index(text, "(?P=")
		if i < 0 {
			return text
		}
		end := strings.IndexByte(text[i:], ')')
		if end < 0 {
			return text
		}
		text = text[:i] + `\k<` + text[i+4:i+end] + ">" + text[i+end+1:]
	}
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

// linearFor reports whether RE2 gives Python's matches in a text.
func (r *Regex) linearFor(s string) bool {
	return r.linear != nil && (r.backtrack == nil || !r.asciiOnly || ascii(s))
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// Match reports whether the expression matches anywhere in a text. A match that takes longer than the time
// limit counts as none; use Find where that must be an error.
func (r *Regex) Match(s string) bool {
	found, err := r.Find(s)
	return found && err == nil
}

// Find is Match with an error if the time limit ends the search.
func (r *Regex) Find(s string) (bool, error) {
	if r.linearFor(s) {
		return r.linear.MatchString(s), nil
	}
	found, err := r.backtrack.MatchString(s)
	return found, r.late(err)
}

func (r *Regex) late(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: regular expression %q takes more than %v on one name", model.ErrInvalid, r.text, matchTime)
}

// match is a match with its groups, as pairs of offsets; -1 where a group took no part.
type match []int

// all returns the matches that Python replaces: from left to right, where an empty match may follow another
// match.
func (r *Regex) all(s string) ([]match, error) {
	if r.linearFor(s) && (r.once || r.backtrack == nil) {
		var out []match
		for _, m := range r.linear.FindAllStringSubmatchIndex(s, -1) {
			out = append(out, m)
		}
		return out, nil
	}
	// The engine counts in runes.
	runes := []rune(s)
	offset := make([]int, len(runes)+1)
	for i, c := range runes {
		offset[i+1] = offset[i] + len(string(c))
	}
	var out []match
	for at := 0; at <= len(runes); {
		m, err := r.backtrack.FindRunesMatchStartingAt(runes, at)
		if err != nil {
			return nil, r.late(err)
		}
		if m == nil {
			break
		}
		var one match
		for _, g := range m.Groups() {
			if len(g.Captures) == 0 {
				one = append(one, -1, -1)
			} else {
				one = append(one, offset[g.Index], offset[g.Index+g.Length])
			}
		}
		out = append(out, one)
		if at = m.Index + m.Length; m.Length == 0 {
			// A longer match may begin here, but the engine would find the empty one again.
			at++
		}
	}
	return out, nil
}

// group returns the number of a named group, or -1.
func (r *Regex) group(name string) int {
	if r.linear != nil {
		return r.linear.SubexpIndex(name)
	}
	return r.backtrack.GroupNumberFromName(name)
}

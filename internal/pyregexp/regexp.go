package pyregexp

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

const (
	// MatchTimeout bounds one match of the backtracking engine.
	MatchTimeout = 100 * time.Millisecond
	// maxPattern bounds the bytes of a pattern.
	maxPattern = 8 << 10
)

// Regexp is a compiled pattern. Several goroutines may use it.
type Regexp struct {
	pattern string
	literal *literal        // nil: the pattern needs an engine
	linear  *regexp.Regexp  // nil: RE2 lacks something that the pattern uses
	slow    *regexp2.Regexp // nil: RE2 is right for every text
	classes bool            // has a class such as \w, which in Python is one of Unicode
}

// Compile compiles a pattern as re.compile does. With fold, case is ignored.
func Compile(pattern string, fold bool) (*Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("pattern of %d bytes is too long: must be at most %d", len(pattern), maxPattern)
	}
	if !utf8.ValidString(pattern) {
		return nil, fmt.Errorf("pattern %q is not UTF-8", pattern)
	}
	r := &Regexp{pattern: pattern}
	text, classes, backtracks := translate(pattern)
	r.classes = classes
	flags := ""
	options := regexp2.None // not RE2, whose classes are those of ASCII
	if fold {
		flags, options = "(?i)", regexp2.IgnoreCase
	}
	var linearErr error
	if !backtracks {
		if r.linear, linearErr = regexp.Compile(flags + text); linearErr == nil {
			r.literal = literalOf(flags + text)
		}
	}
	if r.linear == nil || classes {
		slow, err := regexp2.Compile(dotnetGroups(text), regexp2.RegexOptions(options))
		if err != nil && r.linear == nil {
			if linearErr != nil {
				err = linearErr
			}
			return nil, fmt.Errorf("pattern %q is not a regular expression: %w", pattern, err)
		}
		if err == nil {
			slow.MatchTimeout = MatchTimeout
			r.slow = slow
		}
	}
	return r, nil
}

// String returns the pattern as it was given.
func (r *Regexp) String() string { return r.pattern }

// Search reports whether the pattern matches anywhere in a text, as re.search does. An error says that the
// match took too long.
func (r *Regexp) Search(text string) (bool, error) {
	if r.literal != nil {
		return r.literal.match(text), nil
	}
	if r.isLinear(text) {
		return r.linear.MatchString(text), nil
	}
	ok, err := r.slow.MatchString(text)
	return ok, r.timeout(err)
}

// isLinear reports whether RE2 gives the result of Python for a text.
func (r *Regexp) isLinear(text string) bool {
	return r.slow == nil || r.linear != nil && (!r.classes || isASCII(text))
}

func (r *Regexp) timeout(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pattern %q took longer than %s for one text: write it without nested repetition or lookaround", r.pattern, MatchTimeout)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// literal is a pattern that is compared, which is far faster than RE2: ^carbon\. or \.count$ or .*
type literal struct {
	text       string
	start, end bool
}

func (l *literal) match(text string) bool {
	switch {
	case l.start && l.end:
		return text == l.text
	case l.start:
		return strings.HasPrefix(text, l.text)
	case l.end:
		return strings.HasSuffix(text, l.text)
	default:
		return strings.Contains(text, l.text)
	}
}

// literalOf returns the literal that an expression of RE2 is, or nil.
func literalOf(text string) *literal {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil
	}
	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = re.Sub
	}
	l := &literal{}
	seen, open := false, false // open: .* has been seen
	for i, p := range parts {
		switch {
		case p.Op == syntax.OpBeginText && i == 0:
			l.start = true
		case p.Op == syntax.OpEndText && i == len(parts)-1 && !open:
			l.end = true
		case p.Op == syntax.OpLiteral && !seen && !open && p.Flags&syntax.FoldCase == 0:
			seen, l.text = true, string(p.Rune)
		case p.Op == syntax.OpStar && p.Sub[0].Op == syntax.OpAnyCharNotNL && i == len(parts)-1:
			open = true
		case p.Op == syntax.OpEmptyMatch:
		default:
			return nil
		}
	}
	return l
}

package pyregexp

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"github.com/shaledb/shale/internal/model"
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
	// once says that the pattern matches at most once in a text, or never the empty text. Then RE2 finds the
	// matches that Python replaces.
	once bool
	// groups is the number of groups, and names has the numbers of those with a name.
	groups int
	names  map[string]int
	// total bounds the time of all matches of the backtracking engine, and spent is what they took. 0: only
	// each match is bounded.
	total time.Duration
	spent atomic.Int64
	late  atomic.Pointer[patternError]
}

// patternError is an error of class [model.ErrInvalid] whose text does not say so.
type patternError struct {
	text  string
	cause error
}

func (e *patternError) Error() string   { return e.text }
func (e *patternError) Unwrap() []error { return []error{model.ErrInvalid, e.cause} }

func errorf(format string, args ...any) *patternError {
	err := fmt.Errorf(format, args...)
	return &patternError{err.Error(), err}
}

// Compile compiles a pattern as re.compile does. With fold, case is ignored. Errors of this package are of
// class [model.ErrInvalid].
func Compile(pattern string, fold bool) (*Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, errorf("pattern of %d bytes is too long: must be at most %d", len(pattern), maxPattern)
	}
	if !utf8.ValidString(pattern) {
		return nil, errorf("pattern %q is not UTF-8", pattern)
	}
	t, err := translate(pattern)
	if err != nil {
		return nil, err
	}
	r := &Regexp{pattern: pattern, classes: t.classes, groups: t.groups, names: t.names}
	flags := ""
	options := regexp2.None // not RE2, whose classes are those of ASCII
	if fold {
		flags, options = "(?i)", regexp2.IgnoreCase
	}
	var linearErr error
	if !t.backtracks {
		if r.linear, linearErr = regexp.Compile(flags + t.text); linearErr == nil {
			tree, err := syntax.Parse(flags+t.text, syntax.Perl)
			if err != nil {
				return nil, errorf("pattern %q is not a regular expression: %w", pattern, err)
			}
			r.literal, r.once = literalOf(tree), anchored(tree) || minLength(tree) > 0
		}
	}
	// Replacing needs the slow engine where RE2 finds other empty matches than Python.
	if r.linear == nil || r.classes || !r.once {
		slow, err := regexp2.Compile(t.text, regexp2.RegexOptions(options))
		if err != nil && r.linear == nil {
			if linearErr != nil {
				err = linearErr
			}
			return nil, errorf("pattern %q is not a regular expression: %w", pattern, err)
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

// LimitTotal bounds the time of all later matches that backtrack, together. It is for the pattern of a
// request, and is called before the pattern is used.
func (r *Regexp) LimitTotal(total time.Duration) { r.total = total }

// Search reports whether the pattern matches anywhere in a text, as re.search does. An error says that
// matches took too long.
func (r *Regexp) Search(text string) (bool, error) {
	if r.literal != nil {
		return r.literal.match(text), nil
	}
	if r.isLinear(text) {
		return r.linear.MatchString(text), nil
	}
	var ok bool
	err := r.backtrack(func() (err error) {
		ok, err = r.slow.MatchString(text)
		return err
	})
	return ok, err
}

// Err returns the first error of a match, or nil.
func (r *Regexp) Err() error {
	if err := r.late.Load(); err != nil {
		return err
	}
	return nil
}

// isLinear reports whether RE2 gives the result of Python for a text.
func (r *Regexp) isLinear(text string) bool {
	return r.slow == nil || r.linear != nil && (!r.classes || isASCII(text))
}

// backtrack runs a match of the backtracking engine within the limits.
func (r *Regexp) backtrack(match func() error) error {
	if r.total > 0 && r.spent.Load() > int64(r.total) {
		return r.fail(r.total, "all texts")
	}
	began := time.Now()
	err := match()
	r.spent.Add(int64(time.Since(began)))
	if err != nil {
		return r.fail(MatchTimeout, "one text")
	}
	return nil
}

func (r *Regexp) fail(limit time.Duration, what string) error {
	err := errorf("pattern %q took longer than %s for %s: write it without nested repetition or lookaround", r.pattern, limit, what)
	r.late.CompareAndSwap(nil, err)
	return err
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
func literalOf(re *syntax.Regexp) *literal {
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

package match

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/counts"
	logql "github.com/shaledb/shale/internal/read/logql/syntax"
)

// MaxRegexpSize bounds the program of a regular expression, in instructions of Go's matcher. The longest line
// times that is the most that the matcher can have to do.
const MaxRegexpSize = 1 << 13

// maxStrings bounds how many strings an expression may be replaced by.
const maxStrings = 64

// regexpTest is what an expression asks of a line that it is to match anywhere.
type regexpTest struct {
	test lineTest
	// needed are clauses that hold for each line that passes; if exact is set there is one, and it is the
	// whole test.
	needed []Clause
	exact  bool
}

// newRegexpTest finds the fastest test that is equal to matching the expression, and what a line must contain
// for it. As everywhere in LogQL's lines, the dot does not match newlines.
func newRegexpTest(expr string) (regexpTest, error) {
	re, err := parseRegexp(expr)
	if err != nil {
		return regexpTest{}, err
	}
	core := trim(re)
	if core.Op == syntax.OpEmptyMatch {
		return regexpTest{test: Always{}}, nil
	}
	if isAnything(core, syntax.OpPlus) {
		return regexpTest{test: nonEmpty{}}, nil
	}
	if set, ok := language(core); ok {
		if hasEmpty(set) {
			return regexpTest{test: Always{}}, nil
		}
		if c := newClause(set); c != nil {
			return regexpTest{c, []Clause{c}, true}, nil
		}
	}
	needed := Required(core)
	if t := anchored(core); t != nil {
		return regexpTest{test: t, needed: needed}, nil
	}
	compiled, err := compileRegexp(expr)
	if err != nil {
		return regexpTest{}, err
	}
	if t := sequence(core, compiled); t != nil {
		return regexpTest{test: t, needed: needed}, nil
	}
	return regexpTest{test: &guarded{Matcher{compiled, programSize(re)}, needed}, needed: needed}, nil
}

func compileRegexp(expr string) (*regexp.Regexp, error) {
	counts.Regexp()
	return regexp.Compile(expr)
}

func hasEmpty(set []foldable) bool {
	for _, s := range set {
		if s.text == "" {
			return true
		}
	}
	return false
}

// parseRegexp parses and refuses what is too large to be run over lines.
func parseRegexp(expr string) (*syntax.Regexp, error) {
	var budget logql.RegexpBudget
	re, err := budget.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if n := programSize(re); n > MaxRegexpSize {
		return nil, fmt.Errorf("%w: regular expression %.64q: its program has %d instructions, and at most %d are allowed", model.ErrLimit, expr, n, MaxRegexpSize)
	}
	return re.Simplify(), nil
}

// programSize counts about the instructions of an expression's program before it is made.
func programSize(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpRepeat:
		times := max(re.Min, re.Max, 1)
		if re.Max < 0 {
			times = re.Min + 1
		}
		return min(MaxRegexpSize+1, times*(1+programSize(re.Sub[0])))
	}
	for _, sub := range re.Sub {
		if n += 1 + programSize(sub); n > MaxRegexpSize {
			return MaxRegexpSize + 1
		}
	}
	return n
}

// trim takes off what can match nothing at either end: around .*foo.* there is always room for that, so foo
// is what counts.
func trim(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpCapture:
		return trim(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	case syntax.OpConcat:
		subs := re.Sub
		for len(subs) > 0 && optional(subs[0]) {
			subs = subs[1:]
		}
		for len(subs) > 0 && optional(subs[len(subs)-1]) {
			subs = subs[:len(subs)-1]
		}
		switch len(subs) {
		case 0:
			return &syntax.Regexp{Op: syntax.OpEmptyMatch}
		case 1:
			return trim(subs[0])
		}
		c := *re
		c.Sub = subs
		return &c
	}
	return re
}

func optional(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpStar, syntax.OpQuest, syntax.OpEmptyMatch:
		return true
	case syntax.OpCapture:
		return optional(re.Sub[0])
	}
	return false
}

// isAnything reports whether the expression is .* or .+, as the operator says.
func isAnything(re *syntax.Regexp, op syntax.Op) bool {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	return re.Op == op && re.Sub[0].Op == syntax.OpAnyCharNotNL
}

// foldable is a string that an expression matches, exactly or in any case.
type foldable struct {
	text string
	fold bool
}

// language returns all strings that an expression matches, if they are few and no place in the line matters.
func language(re *syntax.Regexp) ([]foldable, bool) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []foldable{{}}, true
	case syntax.OpCapture:
		return language(re.Sub[0])
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if r == utf8.RuneError { // it also matches invalid UTF-8
				return nil, false
			}
		}
		s := string(re.Rune)
		return []foldable{{s, re.Flags&syntax.FoldCase != 0 && hasLetter(s)}}, true
	case syntax.OpCharClass:
		return classStrings(re.Rune)
	case syntax.OpQuest:
		set, ok := language(re.Sub[0])
		return append(set[:len(set):len(set)], foldable{}), ok
	case syntax.OpAlternate:
		var all []foldable
		for _, sub := range re.Sub {
			set, ok := language(sub)
			if all = append(all, set...); !ok || len(all) > maxStrings {
				return nil, false
			}
		}
		return all, true
	case syntax.OpConcat:
		all := []foldable{{}}
		for _, sub := range re.Sub {
			set, ok := language(sub)
			if !ok {
				return nil, false
			}
			if all, ok = product(all, set); !ok {
				return nil, false
			}
		}
		return all, true
	}
	return nil, false
}

// classStrings returns the characters of a small class.
func classStrings(ranges []rune) ([]foldable, bool) {
	var all []foldable
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] >= 16 || len(all) > 16 {
			return nil, false
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if r == utf8.RuneError {
				return nil, false
			}
			all = append(all, foldable{text: string(r)})
		}
	}
	return all, len(all) > 0
}

// product joins each of a with each of b. Strings of which one part is folded and the other has letters that
// are not are neither; they are left alone.
func product(a, b []foldable) ([]foldable, bool) {
	if len(a)*len(b) > maxStrings {
		return nil, false
	}
	var all []foldable
	for _, x := range a {
		for _, y := range b {
			if x.fold && !y.fold && hasLetter(y.text) || y.fold && !x.fold && hasLetter(x.text) {
				return nil, false
			}
			all = append(all, foldable{x.text + y.text, x.fold || y.fold})
		}
	}
	return all, true
}

// anchored is the test of ^foo, foo$ and ^foo$, or nil.
func anchored(re *syntax.Regexp) lineTest {
	if re.Op == syntax.OpBeginText || re.Op == syntax.OpEndText {
		return Always{}
	}
	if re.Op != syntax.OpConcat {
		return nil
	}
	subs := re.Sub
	begin := subs[0].Op == syntax.OpBeginText
	if begin {
		subs = subs[1:]
	}
	end := len(subs) > 0 && subs[len(subs)-1].Op == syntax.OpEndText
	if end {
		subs = subs[:len(subs)-1]
	}
	if !begin && !end {
		return nil
	}
	set, ok := language(&syntax.Regexp{Op: syntax.OpConcat, Sub: subs})
	if !ok {
		return nil
	}
	var tests anyOf
	for _, s := range set {
		switch {
		case s.fold:
			return nil
		case begin && end:
			tests = append(tests, equals(s.text))
		case begin:
			tests = append(tests, hasBegin(s.text))
		default:
			tests = append(tests, hasEnd(s.text))
		}
	}
	return tests
}

// sequence is the test of literals with .* between them, or nil.
func sequence(re *syntax.Regexp, whole *regexp.Regexp) lineTest {
	if re.Op != syntax.OpConcat {
		return nil
	}
	t := &inOrder{whole: whole}
	for i, sub := range re.Sub {
		if i%2 == 1 {
			if !isAnything(sub, syntax.OpStar) {
				return nil
			}
			continue
		}
		set, ok := language(sub)
		if !ok || len(set) != 1 {
			return nil
		}
		n, ok := newNeedle(set[0].text, set[0].fold)
		if !ok || n.special { // the end of a special hit is not known
			return nil
		}
		t.parts = append(t.parts, n)
	}
	return t
}

// guarded matches an expression only where the line has what the expression needs.
type guarded struct {
	re     Matcher
	needed []Clause
}

func (t *guarded) Matches(line []byte) bool { return t.holdsUntil(line, nil) }

func (t *guarded) holdsUntil(line []byte, ended func() bool) bool {
	for i := range t.needed {
		if !t.needed[i].Matches(line) {
			return false
		}
	}
	return t.re.Matches(line, ended)
}

package syntax

import (
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// MaxRegexpCost bounds the cost of all regular expressions of a query together. The unit is an instruction of
// the compiled program, 40 bytes and at worst one step for each byte of each line; eight boundaries of
// character classes count as one. The text of a query alone cannot reach it: counted repetition can.
const MaxRegexpCost = 1 << 18

// costOfAny is what even the smallest expression costs once it is compiled: some 4 KiB.
const costOfAny = 100

// RegexpBudget is what is left of [MaxRegexpCost]. The zero value is all of it.
type RegexpBudget struct {
	spent int
}

// Parse parses a regular expression, as flags say, if it is valid and cheap enough to be compiled. Its error
// has the text of package regexp, or says what the limit is, and is of class [model.ErrInvalid].
func (b *RegexpBudget) Parse(pattern string, flags syntax.Flags) (*syntax.Regexp, error) {
	if b.spent += costOfAny + costBeforeParsing(pattern); b.spent > MaxRegexpCost {
		return nil, errExpensive
	}
	re, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, &RegexpError{err: err}
	}
	if b.spent += regexpCost(re); b.spent > MaxRegexpCost {
		return nil, errExpensive
	}
	return re, nil
}

// RegexpError says that a regular expression is invalid, in the words of package regexp.
type RegexpError struct {
	err error
}

// Error returns the text.
func (e *RegexpError) Error() string { return e.err.Error() }

// Unwrap gives the class.
func (e *RegexpError) Unwrap() error { return model.ErrInvalid }

var errExpensive = &RegexpError{err: fmt.Errorf("the regular expressions of the query are too large: together they compile to more than %d instructions; repeat less (x{n}), or use fewer of them and fewer classes", MaxRegexpCost)}

// costBeforeParsing bounds what parsing alone costs in time and memory, where that has nothing to do with the
// length of the text: Unicode classes have some 1,200 boundaries, and a range that ignores case is walked
// rune by rune, for milliseconds if it reaches far beyond ASCII.
func costBeforeParsing(pattern string) int {
	cost := 150 * (strings.Count(pattern, `\p`) + strings.Count(pattern, `\P`))
	if !mayFoldCase(pattern) {
		return cost
	}
	for rest := pattern; ; {
		_, after, found := strings.Cut(rest, "-")
		if !found || after == "" {
			return cost
		}
		if strings.HasPrefix(after, `\x{`) || after[0] >= 0x80 {
			cost += 1 << 14
		}
		rest = after
	}
}

// mayFoldCase reports whether a flag (?i) may be in the pattern.
func mayFoldCase(pattern string) bool {
	for rest := pattern; ; {
		_, after, found := strings.Cut(rest, "(?")
		if !found {
			return false
		}
		flags := after[:len(after)-len(strings.TrimLeft(after, "imsU-"))]
		if strings.Contains(flags, "i") {
			return true
		}
		rest = after
	}
}

// regexpCost estimates the instructions that an expression compiles to, without the work of expanding its
// repetitions. Package regexp bounds the depth of the tree.
func regexpCost(re *syntax.Regexp) int {
	cost := 1
	for _, sub := range re.Sub {
		cost += regexpCost(sub) + 1
	}
	switch re.Op {
	case syntax.OpLiteral:
		cost += len(re.Rune)
	case syntax.OpCharClass:
		cost += len(re.Rune) / 8
	case syntax.OpRepeat:
		cost *= max(re.Min, re.Max, 1)
	}
	return min(cost, MaxRegexpCost+1) // sums of few of these do not overflow, and each ends the work
}

// onlyLiterals reports whether Loki evaluates the expression of a label filter by looking for strings,
// without compiling it; it prints such expressions in double quotes and others in backquotes.
func onlyLiterals(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return true
	}
	return isLiteral(re.Simplify())
}

func isLiteral(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpLiteral:
		return true
	case syntax.OpStar, syntax.OpPlus:
		return re.Sub[0].Op == syntax.OpAnyCharNotNL
	case syntax.OpCapture:
		return isLiteral(re.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if !isLiteral(uncaptured(sub)) {
				return false
			}
		}
		return true
	case syntax.OpConcat:
		return isLiteralConcat(re, false)
	}
	return false
}

// isLiteralConcat says it of a concatenation, of at most one literal, choices that follow it, and .*; three
// pieces at most. prefixed says that a literal stands before it.
func isLiteralConcat(re *syntax.Regexp, prefixed bool) bool {
	pieces, literals, folded := 0, 0, false
	for _, sub := range re.Sub {
		if uncaptured(sub).Op != syntax.OpEmptyMatch {
			pieces++
		}
	}
	if pieces > 3 {
		return false
	}
	for _, sub := range re.Sub {
		sub = uncaptured(sub)
		switch {
		case sub.Op == syntax.OpEmptyMatch:
		case sub.Op == syntax.OpLiteral:
			if literals++; literals > 1 {
				return false
			}
			prefixed, folded = true, isFolded(sub)
		case sub.Op == syntax.OpAlternate && prefixed:
			if !isLiteralChoice(sub, folded) {
				return false
			}
		case sub.Op == syntax.OpStar && sub.Sub[0].Op == syntax.OpAnyCharNotNL:
		default:
			return false
		}
	}
	return prefixed
}

// isLiteralChoice says it of a choice of what follows a literal. One that ignores case cannot follow one that
// does not.
func isLiteralChoice(re *syntax.Regexp, folded bool) bool {
	for _, sub := range re.Sub {
		if !folded && isFolded(sub) {
			return false
		}
		switch sub.Op {
		case syntax.OpEmptyMatch, syntax.OpLiteral:
		case syntax.OpConcat:
			if !isLiteralConcat(sub, true) {
				return false
			}
		case syntax.OpStar:
			if sub.Sub[0].Op != syntax.OpAnyCharNotNL {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func isFolded(re *syntax.Regexp) bool { return re.Flags&syntax.FoldCase != 0 }

// uncaptured looks through one pair of parentheses.
func uncaptured(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpCapture {
		return re.Sub[0]
	}
	return re
}

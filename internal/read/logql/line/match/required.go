package match

import (
	"regexp/syntax"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// Clause says that a line contains at least one of some strings.
type Clause []needle

func (c Clause) Matches(line []byte) bool {
	for i := range c {
		if c[i].Matches(line) {
			return true
		}
	}
	return false
}

// weight is the length of the shortest string of a clause: the longer, the fewer lines satisfy it.
func (c Clause) weight() int {
	w := len(c[0].text)
	for i := range c {
		w = min(w, len(c[i].text))
	}
	return w
}

// Model gives the clause in the words of a source's filter.
func (c Clause) Model() model.TextClause {
	var out model.TextClause
	for i := range c {
		out.Any = append(out.Any, model.TextLiteral{Value: string(c[i].text), Fold: c[i].fold})
	}
	return out
}

// newClause makes a clause of what at least one string must be in a line. It returns nil where that says
// nothing.
func newClause(set []foldable) Clause {
	var c Clause
	for _, s := range set {
		n, ok := newNeedle(s.text, s.fold)
		if !ok || s.text == "" {
			return nil
		}
		c = append(c, n)
	}
	if len(c) > maxSingle && c.weight() == 1 {
		return nil
	}
	return c
}

// maxSingle is from how many characters on it says nothing that a line has one of them: a digit, say.
const maxSingle = 4

// Required finds clauses that hold for each line that an expression matches anywhere. It may find none.
func Required(re *syntax.Regexp) []Clause {
	switch re.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return Required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return Required(re.Sub[0])
		}
	case syntax.OpCharClass:
		if set, ok := language(re); ok {
			return clauses(newClause(set))
		}
	case syntax.OpLiteral:
		return clauses(newClause(longestKnown(re)))
	case syntax.OpAlternate:
		return requiredOfAny(re)
	case syntax.OpConcat:
		return requiredOfAll(re)
	}
	return nil
}

func clauses(c Clause) []Clause {
	if c == nil {
		return nil
	}
	return []Clause{c}
}

// longestKnown returns the longest stretch of a literal in which nothing matches more than itself: what is
// folded must be ASCII.
func longestKnown(re *syntax.Regexp) []foldable {
	fold := re.Flags&syntax.FoldCase != 0
	begin, best := 0, ""
	for i := 0; i <= len(re.Rune); i++ {
		if i < len(re.Rune) && re.Rune[i] != utf8.RuneError && (!fold || re.Rune[i] < utf8.RuneSelf) {
			continue
		}
		if s := string(re.Rune[begin:i]); len(s) > len(best) {
			best = s
		}
		begin = i + 1
	}
	return []foldable{{best, fold}}
}

// requiredOfAny joins the best clause of each side into one: a line must satisfy one of the sides.
func requiredOfAny(re *syntax.Regexp) []Clause {
	if set, ok := language(re); ok {
		return clauses(newClause(set))
	}
	var joined Clause
	for _, sub := range re.Sub {
		best := bestOf(Required(trim(sub)))
		if joined = append(joined, best...); best == nil || len(joined) > maxStrings {
			return nil
		}
	}
	return clauses(joined)
}

func bestOf(all []Clause) Clause {
	var best Clause
	for _, c := range all {
		if best == nil || c.weight() > best.weight() || c.weight() == best.weight() && len(c) < len(best) {
			best = c
		}
	}
	return best
}

// maxRun is how many strings neighbours are joined to. A page is searched for each of them.
const maxRun = 8

// requiredOfAll joins neighbours as long as the strings that they can be are few, and takes what the others
// need besides.
func requiredOfAll(re *syntax.Regexp) []Clause {
	var all []Clause
	run := []foldable{{}}
	flush := func() {
		all = append(all, clauses(newClause(run))...)
		run = []foldable{{}}
	}
	for _, sub := range re.Sub {
		switch sub.Op {
		case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
			continue
		}
		set, ok := language(sub)
		if !ok {
			flush()
			all = append(all, Required(sub)...)
			continue
		}
		longer, ok := product(run, set)
		if ok && (len(longer) <= maxRun || len(set) == 1) {
			run = longer
			continue
		}
		if flush(); len(set) <= maxRun {
			run = set
		}
	}
	flush()
	return all
}

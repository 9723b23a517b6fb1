package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxCommentColumns = 110
	maxSentenceWords  = 35
)

// dialect lists words that a reader has to decode, each with the plain form.
var dialect = []struct {
	key    string // a part of every match, in lower case and with single spaces
	word   *regexp.Regexp
	except *regexp.Regexp // an idiom that holds the word, or nil
	plain  string
}{
	{"who", word(`\w*\W*\bwho\b`), word(`^(people|persons?|users?|someone|anyone|everyone|those|operators?|engineers?|readers?|teams?)\s+who`), "name the sender, the caller or the function"},
	{" no ", word(`\w*\W*\b(is|are) no\s\w+`), word(`^(there|here)\s+|\sno\s+(longer|more|less|better|worse)$`), "has no, is not a"},
	{" none", word(`\w*\W*\b(is|are) none\b`), word(`^there\s`), "has no, is not"},
	{"behind", word(`\w*\W*\bbehind\b(\s\w+){0,3}`), word(`^(lag|fall|fell|stay|left|leave|far)\w*\s+behind|proxy|balancer|gateway|primary`), "after"},
	{"beside", word(`\bbeside\b`), nil, "next to, with, besides"},
	{"anew", word(`\banew\b`), nil, "again, from the start"},
	{"for ever", word(`\bfor ever\b`), nil, "forever, without end"},
	{"nobody", word(`\bnobody\b`), nil, "no caller, not used"},
	{"comes ", word(`\bcomes (to|of)\b`), nil, "amounts to, results from"},
	{"sees to it", word(`\bsees to it\b`), nil, "ensures"},
	{"at hand", word(`\bat hand\b`), nil, "available"},
	{"by the letter", word(`\bby the letter\b`), nil, "exactly"},
	{"dear", word(`\bdear(er|est)?\b`), nil, "expensive"},
	{"goes without", word(`\bgoes without\b`), nil, "has no"},
}

func word(pattern string) *regexp.Regexp {
	return regexp.MustCompile("(?i)" + strings.ReplaceAll(pattern, " ", `\s+`))
}

// finding is one place that breaks a rule of prose.
type finding struct {
	breach
	at, text string
}

// prose finds wide comments, words of the dialect and long sentences. The names of its breaches are packages
// and pages.
func prose(t *tree) ([]finding, error) {
	var found []finding
	add := func(name, unit, file string, line int, text string) {
		found = append(found, finding{breach{name, unit}, fmt.Sprintf("%s:%d", file, line), text})
	}
	for _, f := range t.files {
		for _, line := range wideComments(t, f) {
			add(f.dir(), "wide", f.path, line, fmt.Sprintf("a comment has at most %d columns", maxCommentColumns))
		}
		for _, p := range goProse(t, f) {
			if f.below("internal/archtest") {
				break // it names the words
			}
			for line, text := range p.dialect() {
				add(f.dir(), "words", f.path, line, text)
			}
		}
		if f.ast.Doc != nil {
			p := passage{t.fset.Position(f.ast.Doc.Pos()).Line, f.ast.Doc.Text()}
			for line, text := range p.longSentences() {
				add(f.dir(), "long", f.path, line, text)
			}
		}
	}
	pages, err := pages(t)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		p := passage{1, withoutCode(pages[name])}
		for line, text := range p.dialect() {
			add(name, "words", name, line, text)
		}
		for line, text := range p.longSentences() {
			add(name, "long", name, line, text)
		}
	}
	return found, nil
}

// overProse complains about every account that has more findings than the ratchet allows, and lists them.
func overProse(found []finding, allowed ratchet) []string {
	now := accounts(found, allowed)
	var bad []string
	for _, b := range allowed.raised(now) {
		lines := []string{fmt.Sprintf("%s: %d %s, %d allowed; see CONTRIBUTING.md:", b.name, now[b], b.unit, allowed[b])}
		for _, f := range found {
			if allowed.account(f.breach) == b {
				lines = append(lines, f.at+": "+f.text)
			}
		}
		bad = append(bad, strings.Join(lines, "\n\t"))
	}
	return bad
}

// accounts counts the findings by the row of the ratchet that they count against.
func accounts(found []finding, allowed ratchet) ratchet {
	now := ratchet{}
	for _, f := range found {
		now[allowed.account(f.breach)]++
	}
	return now
}

// wideComments returns the lines of comments that end beyond the last column. A tab counts as one.
func wideComments(t *tree, f *file) []int {
	lines := strings.Split(string(f.text), "\n")
	var wide []int
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:") {
				continue
			}
			for n := t.fset.Position(c.Pos()).Line; n <= t.fset.Position(c.End()).Line; n++ {
				if utf8.RuneCountInString(lines[n-1]) > maxCommentColumns {
					wide = append(wide, n)
				}
			}
		}
	}
	return wide
}

// goProse returns the comments of a file and, unless it is a test, its string literals of three words or
// more: errors, help texts, logs.
func goProse(t *tree, f *file) []passage {
	var found []passage
	for _, group := range f.ast.Comments {
		var b strings.Builder
		for _, c := range group.List {
			b.WriteString(strings.TrimLeft(c.Text, "/*") + "\n")
		}
		found = append(found, passage{t.fset.Position(group.Pos()).Line, b.String()})
	}
	if f.isTest() {
		return found
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Count(lit.Value, " ") >= 2 {
			found = append(found, passage{t.fset.Position(lit.Pos()).Line, lit.Value})
		}
		return true
	})
	return found
}

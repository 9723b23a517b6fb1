//go:build e2e

package badinput

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// golden is the text of one file in testdata: a title, then a block for each attack.
type golden struct {
	name   string
	blocks []string
	whole  []string // for each block, the text before it was cut: that may say why it differs
}

func newGolden(g group) *golden {
	title := "# " + g.title
	return &golden{name: filepath.Join("testdata", g.file+".txt"), blocks: []string{title}, whole: []string{title}}
}

// add appends a block: the input, then a line for each of the others that is not empty.
func (g *golden) add(input, outcome, text, counters string) {
	lines := []string{clean(input)}
	for _, f := range []struct{ name, value string }{{"outcome", outcome}, {"text", text}, {"counters", counters}} {
		if value := clean(f.value); value != "" {
			lines = append(lines, fmt.Sprintf("    %-9s %s", f.name+":", value))
		}
	}
	g.blocks = append(g.blocks, strings.Join(lines, "\n"))
	g.whole = append(g.whole, text)
}

// text returns the content of the file.
func (g *golden) text() string { return strings.Join(g.blocks, "\n\n") + "\n" }

// compare fails the test where the files differ from the goldens, or rewrites the files.
func compare(t *testing.T, goldens []*golden) {
	t.Helper()
	stale, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range goldens {
		stale = slices.DeleteFunc(stale, func(name string) bool { return name == g.name })
		if *rewrite {
			err = os.WriteFile(g.name, []byte(g.text()), 0o600)
		} else {
			err = g.compare(t)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for _, name := range stale {
		if !*rewrite {
			t.Errorf("%s belongs to no group of attacks", name)
		} else if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

// compare reports each block that differs from the file.
func (g *golden) compare(t *testing.T) error {
	t.Helper()
	b, err := os.ReadFile(g.name)
	if err != nil || string(b) == g.text() {
		return err
	}
	want, got := strings.Split(string(b), "\n\n"), strings.Split(g.text(), "\n\n")
	for i := range max(len(want), len(got)) {
		x, y, whole := "", "", ""
		if i < len(want) {
			x = want[i]
		}
		if i < len(got) {
			y, whole = got[i], g.whole[i]
		}
		if x != y {
			t.Errorf("%s, block %d:\n-%s\n+%s\nwhole text: %s", g.name, i+1, x, y, whole)
		}
	}
	return nil
}

// maxText is the number of characters of a text in a golden file.
const maxText = 240

// volatile lists texts that differ from run to run.
var volatile = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDR"},
	{regexp.MustCompile(`/[^\s":,]*/TestBadInput[^\s":,]*/\d{3}\b`), "DIR"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( \+0000 UTC|Z|\+00:00)?`), "TIME"},
	{regexp.MustCompile(`/nonexistent/x\.\d+`), "/nonexistent/x.N"},
	{regexp.MustCompile(`hold \d+ of`), "hold N of"},
	{regexp.MustCompile(`request needs \d+ bytes`), "request needs N bytes"}, // it depends on what pools keep
	{regexp.MustCompile(`i="\d+"`), `i="N"`},
	{regexp.MustCompile(`pid \d+`), "pid N"},
	{regexp.MustCompile(`\b1[78]\d{11} ms`), "TIME ms"},
	{regexp.MustCompile(`\b[0-9a-f]{16,64}\b`), "HEX"},
}

// clean fits a text on one line and replaces the parts that differ from run to run.
func clean(text string) string {
	text = strings.TrimSpace(text)
	for _, v := range volatile {
		text = v.find.ReplaceAllString(text, v.put)
	}
	text = strings.ToValidUTF8(text, "?")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " / ")
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) > maxText {
		text = string([]rune(text)[:maxText]) + "..."
	}
	return strings.TrimSpace(text)
}

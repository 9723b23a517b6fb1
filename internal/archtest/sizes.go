package archtest

import (
	"bufio"
	"fmt"
	"go/ast"
	"io"
	"sort"
	"strconv"
	"strings"
)

// The sizes that make a file one idea and a function one thought.
const (
	maxFileLines     = 500
	maxTestFileLines = 1000
	maxFuncLines     = 80
)

// oversized returns what is larger than allowed, by name: a path, or path:function. Functions of tests are not counted:
// a table is long and simple.
func oversized(t *tree) map[string]int {
	over := map[string]int{}
	for _, f := range t.files {
		limit := maxFileLines
		if f.isTest() {
			limit = maxTestFileLines
		}
		if f.lines > limit {
			over[f.path] = f.lines
		}
		if f.isTest() {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			n := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1
			if n > maxFuncLines {
				over[f.path+":"+fn.Name.Name] = n
			}
		}
	}
	return over
}

// sizes compares what is too large with the ratchet: the list of what is allowed to be, which may only shrink.
func sizes(t *tree, ratchet map[string]int) []string {
	over := oversized(t)
	var bad []string
	for name, n := range over {
		if allowed := ratchet[name]; n > allowed {
			bad = append(bad, fmt.Sprintf("%s: %d lines; a file has at most %d (a test file %d), a function %d", name, n, maxFileLines, maxTestFileLines, maxFuncLines))
		}
	}
	for name, allowed := range ratchet {
		if n := over[name]; n < allowed {
			bad = append(bad, fmt.Sprintf("%s: is down to %d lines; lower or remove its %d in testdata/sizes.txt", name, n, allowed))
		}
	}
	sort.Strings(bad)
	return bad
}

// readRatchet reads lines of a name and a number; # begins a comment.
func readRatchet(r io.Reader) (map[string]int, error) {
	m := map[string]int{}
	for s := bufio.NewScanner(r); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 {
			return nil, fmt.Errorf("ratchet: %q is not a name and a number", s.Text())
		}
		n, err := strconv.Atoi(f[1])
		if err != nil {
			return nil, fmt.Errorf("ratchet: %q: %w", s.Text(), err)
		}
		m[f[0]] = n
	}
	return m, nil
}

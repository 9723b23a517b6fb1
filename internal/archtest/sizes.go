package archtest

import (
	"fmt"
	"go/ast"
)

// The sizes that make a file one idea, a function one thought, and a package one list that fits a screen.
const (
	maxFileLines     = 500
	maxTestFileLines = 1000
	maxFuncLines     = 80
	maxPackageFiles  = 30
	maxPackageLines  = 5000
)

// oversized returns what exceeds its size: a file, a function (path:name), or a package. Tests count for
// files only: a table of cases is long and simple.
func oversized(t *tree) ratchet {
	over := ratchet{}
	add := func(name, unit string, n, limit int) {
		if n > limit {
			over[breach{name, unit}] = n
		}
	}
	files, lines := map[string]int{}, map[string]int{}
	for _, f := range t.files {
		if f.isTest() {
			add(f.path, "lines", f.lines, maxTestFileLines)
			continue
		}
		add(f.path, "lines", f.lines, maxFileLines)
		files[f.dir()]++
		lines[f.dir()] += f.lines
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				n := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1
				add(f.path+":"+fn.Name.Name, "lines", n, maxFuncLines)
			}
		}
	}
	for dir := range files {
		add(dir, "files", files[dir], maxPackageFiles)
		add(dir, "lines", lines[dir], maxPackageLines)
	}
	return over
}

// sizes complains about everything that is larger than its size and than the ratchet allows.
func sizes(t *tree, allowed ratchet) []string {
	over := oversized(t)
	var bad []string
	for _, b := range allowed.raised(over) {
		bad = append(bad, fmt.Sprintf("%s: %d %s; a file has at most %d lines (a test file %d), a function %d, a package %d in %d files without its tests",
			b.name, over[b], b.unit, maxFileLines, maxTestFileLines, maxFuncLines, maxPackageLines, maxPackageFiles))
	}
	return bad
}

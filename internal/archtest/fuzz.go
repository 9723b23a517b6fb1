package archtest

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"strings"
)

// fuzzSeeds checks that each fuzz target has seeds: an Add in its body or in a function that it hands f to,
// or files in testdata/fuzz/<name>. Without seeds an ordinary test run of the target tests nothing.
func fuzzSeeds(t *tree) []string {
	adders := map[string]bool{} // folder + function, of functions that call Add
	for _, f := range t.files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.isTest() && fn.Body != nil && callsAdd(fn.Body) {
				adders[f.dir()+"."+fn.Name.Name] = true
			}
		}
	}
	var bad []string
	for _, f := range t.files {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !f.isTest() || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Fuzz") || !takesF(fn) {
				continue
			}
			if adders[f.dir()+"."+fn.Name.Name] || handsToAdder(fn.Body, f.dir(), adders) {
				continue
			}
			dir := path.Join(f.dir(), "testdata/fuzz", fn.Name.Name)
			if seeds, err := fs.ReadDir(t.root, dir); err != nil || len(seeds) == 0 {
				bad = append(bad, fmt.Sprintf("%s: %s has no seeds: no f.Add, and nothing in %s", t.at(fn), fn.Name.Name, dir))
			}
		}
	}
	return bad
}

func takesF(fn *ast.FuncDecl) bool {
	if len(fn.Type.Params.List) != 1 {
		return false
	}
	star, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	sel, ok := star.X.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "F"
}

func callsAdd(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Add" {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "f" {
					found = true
				}
			}
		}
		return !found
	})
	return found
}

func handsToAdder(body *ast.BlockStmt, dir string, adders map[string]bool) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if fn, ok := call.Fun.(*ast.Ident); ok && adders[dir+"."+fn.Name] {
				found = true
			}
		}
		return !found
	})
	return found
}

package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// modulePath begins the import path of every package of ours.
const modulePath = "github.com/shaledb/shale"

// tree is the parsed source of the repository.
type tree struct {
	root  fs.FS
	fset  *token.FileSet
	files []*file
}

// file is one Go file.
type file struct {
	path  string // from the root, with slashes
	lines int
	text  []byte
	ast   *ast.File
}

func (f *file) dir() string  { return path.Dir(f.path) }
func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// below reports whether the file lies in a folder.
func (f *file) below(dir string) bool { return strings.HasPrefix(f.path, dir+"/") }

// load parses every Go file below the root, but for testdata and folders whose names begin with a dot.
func load(root fs.FS) (*tree, error) {
	t := &tree{root: root, fset: token.NewFileSet()}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != "." && (base == "testdata" || base == "node_modules" || base == "bin" || strings.HasPrefix(base, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(t.fset, name, text, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parsing: %w", err)
		}
		t.files = append(t.files, &file{path: name, lines: bytes.Count(text, []byte("\n")), text: text, ast: parsed})
		return nil
	})
	return t, err
}

// at returns the place of a node, as path:line.
func (t *tree) at(n ast.Node) string {
	p := t.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// imports returns the import paths of a file, with the places where they stand.
func (f *file) imports() map[string]ast.Node {
	m := map[string]ast.Node{}
	for _, i := range f.ast.Imports {
		m[strings.Trim(i.Path.Value, `"`)] = i
	}
	return m
}

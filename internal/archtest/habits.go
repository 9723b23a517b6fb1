package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"path"
	"sort"
	"strings"
)

// docs checks that each package below internal/, cmd/, test/ and bench has exactly one package doc, in
// doc.go, which begins with the package's name.
func docs(t *tree) []string {
	names := map[string]string{} // by folder
	has := map[string][]string{}
	var bad []string
	for _, f := range t.files {
		if !f.below("internal") && !f.below("cmd") && !f.below("test") && !f.below("bench") {
			continue
		}
		if _, seen := names[f.dir()]; !seen || !f.isTest() {
			names[f.dir()] = strings.TrimSuffix(f.ast.Name.Name, "_test")
		}
		if f.ast.Doc == nil {
			continue
		}
		has[f.dir()] = append(has[f.dir()], f.path)
		begin := "Package " + f.ast.Name.Name + " "
		if f.ast.Name.Name == "main" {
			begin = "Command " + path.Base(f.dir()) + " "
		}
		if !strings.HasPrefix(f.ast.Doc.Text(), begin) {
			bad = append(bad, fmt.Sprintf("%s: the package doc must begin with %q", t.at(f.ast.Doc), begin))
		}
		if path.Base(f.path) != "doc.go" {
			bad = append(bad, fmt.Sprintf("%s: the package doc belongs in doc.go", t.at(f.ast.Doc)))
		}
	}
	for dir := range names {
		if n := len(has[dir]); n != 1 {
			bad = append(bad, fmt.Sprintf("%s: has %d package docs; one is wanted, in doc.go: what the package is, what it owns, what it never does", dir, n))
		}
	}
	sort.Strings(bad)
	return bad
}

// names checks that no package has a name that says nothing.
func names(t *tree) []string {
	var bad []string
	for _, f := range t.files {
		switch strings.TrimSuffix(f.ast.Name.Name, "_test") {
		case "util", "utils", "common", "helper", "helpers", "base", "misc", "shared", "lib", "types":
			bad = append(bad, fmt.Sprintf("%s: the package name %s says nothing; name the thing", f.path, f.ast.Name.Name))
		}
	}
	return bad
}

// belowCmd checks what only cmd may do: read the environment and flags, end the process, and run before main.
func belowCmd(t *tree) []string {
	forbidden := map[string]string{
		"os.Getenv": "settings come through config", "os.LookupEnv": "settings come through config",
		"os.Environ": "cmd hands the environment to config", "os.ExpandEnv": "settings come through config",
		"os.Exit": "return an error", "log.Fatal": "return an error", "log.Fatalf": "return an error", "log.Fatalln": "return an error",
		"flag.String": "settings come through config", "flag.Int": "settings come through config", "flag.Bool": "settings come through config",
		"flag.Duration": "settings come through config", "flag.Parse": "settings come through config",
	}
	var bad []string
	for _, f := range t.files {
		if !f.below("internal") || f.isTest() {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				bad = append(bad, t.at(fn)+": func init hides what a program does before main; call it")
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Obj == nil {
				if why := forbidden[pkg.Name+"."+sel.Sel.Name]; why != "" {
					bad = append(bad, fmt.Sprintf("%s: %s.%s below cmd: %s", t.at(sel), pkg.Name, sel.Sel.Name, why))
				}
			}
			return true
		})
	}
	return bad
}

// promises checks that no Go file puts work off in a comment, where it is forgotten.
func promises(t *tree) []string {
	var bad []string
	for _, f := range t.files {
		for i, line := range bytes.Split(f.text, []byte("\n")) {
			for _, word := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"} {
				if at := bytes.Index(line, []byte(word)); at >= 0 && isComment(line[:at]) {
					bad = append(bad, fmt.Sprintf("%s:%d: %s; open an issue, or do it", f.path, i+1, word))
				}
			}
		}
	}
	return bad
}

func isComment(before []byte) bool {
	return bytes.Contains(before, []byte("//")) || bytes.HasPrefix(bytes.TrimSpace(before), []byte("*"))
}

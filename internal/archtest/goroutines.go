package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// goroutines checks that each goroutine of the server turns its panics into errors: by [model.Caught] or
// [model.Catching], or with a recover of its own, in the code that it runs or in a function of the package
// that this code calls. Else a panic ends the process, for all tenants. Exceptions are folders and files with
// the reason why that is right, or why no panic comes that far.
func goroutines(t *tree, exceptions map[string]string) []string {
	var bad []string
	used, catching := map[string]bool{}, map[string]bool{} // the latter are folder + function
	for _, f := range t.files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && catches(fn.Body) {
				catching[f.dir()+"."+fn.Name.Name] = true
			}
		}
	}
	for _, f := range t.files {
		if f.isTest() || !f.below("internal") && !f.below("cmd") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			run := startedBy(n)
			if run == nil || catches(run) || catching[f.dir()+"."+calledBy(run)] {
				return true
			}
			if in := exceptionFor(f.path, exceptions); in != "" {
				used[in] = true
				return true
			}
			bad = append(bad, t.at(n)+": a panic of this goroutine ends the process: use model.Caught and count and log the error, or give the reason in archtest/goroutines.go")
			return true
		})
	}
	for _, in := range slices.Sorted(maps.Keys(exceptions)) {
		if !used[in] {
			bad = append(bad, fmt.Sprintf("%s: starts no goroutine that needs an exception; remove it from archtest/goroutines.go", in))
		}
	}
	return bad
}

// startedBy returns what a node runs in a goroutine, or nil: the function of a go statement, or the argument
// of the method Go of a group.
func startedBy(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.GoStmt:
		return n.Call
	case *ast.CallExpr:
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(n.Args) == 1 {
			return n.Args[0]
		}
	}
	return nil
}

// calledBy returns the name of the one function that a goroutine runs, or "".
func calledBy(run ast.Node) string {
	switch n := run.(type) {
	case *ast.Ident:
		return n.Name
	case *ast.SelectorExpr:
		return n.Sel.Name
	case *ast.CallExpr:
		return calledBy(n.Fun)
	case *ast.FuncLit:
		if len(n.Body.List) == 1 {
			if only, ok := n.Body.List[0].(*ast.ExprStmt); ok {
				return calledBy(only.X)
			}
		}
	}
	return ""
}

// catches reports whether code catches panics.
func catches(code ast.Node) (does bool) {
	ast.Inspect(code, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name := ""
			switch fn := call.Fun.(type) {
			case *ast.Ident:
				name = fn.Name
			case *ast.SelectorExpr:
				if x, ok := fn.X.(*ast.Ident); ok && x.Name == "model" {
					name = fn.Sel.Name
				}
			}
			does = does || name == "Caught" || name == "Catching" || name == "recover"
		}
		return !does
	})
	return does
}

// exceptionFor returns the narrowest exception that has a file, or "".
func exceptionFor(name string, exceptions map[string]string) (narrowest string) {
	for in := range exceptions {
		if (name == in || strings.HasPrefix(name, in+"/")) && len(in) > len(narrowest) {
			narrowest = in
		}
	}
	return narrowest
}

// Reasons for which a panic may end the process.
const (
	aCommand  = "a command ends with its stack; what it has done is durable, and it goes on when it is run again"
	aTest     = "only tests use it"
	durable   = "the order of batches, or whether they are durable, would not be known; after a restart the journal tells"
	ofAHead   = "the head of a journal would have some rows of a batch, or some parts of an edit; after a restart the journal tells"
	receiving = "what the connection holds of the shared budgets, and which of its lines are taken, would not be known"
	oneState  = "what it was changing would be half changed, and all requests depend on that"
	elsewhere = "it only starts or awaits others, or they catch panics"
)

// uncaught are the folders and files whose goroutines may end the process.
func uncaught() map[string]string {
	return map[string]string{
		"cmd/shale": aCommand, "internal/load": aCommand, "internal/move": aCommand, "internal/plan": aCommand, "internal/bucket/check": aCommand,
		"internal/memcache/advise": aCommand, "internal/memcache/top": aCommand,
		"internal/cache/cachetest": aTest, "internal/bucket/buckettest": aTest, "internal/memcache/memcachetest": aTest,
		"internal/journal": durable, "internal/ingest": ofAHead, "internal/app/ingester": ofAHead, "internal/store/head/background.go": ofAHead,
		"internal/write/graphite": receiving, "internal/write/groups": oneState, "internal/app/gateway": oneState,
		"internal/memcache": oneState, "internal/cache": oneState,
		"internal/api/flight.go":  elsewhere,
		"internal/api/carbonlink": elsewhere,
		// Merges and the search for them are caught. What is left changes the catalogue: a change that is half done
		// would hide rows, or show them twice.
		"internal/store/compact": oneState,
		// A tenant's lines that cannot be mined, or counts that cannot be changed, are caught, and cost its counts.
		// What is left is the queue of lines and the account of memory, on which all tenants depend.
		"internal/read/logql/patterns/keeper.go": oneState,
		// The requests to the server are caught. What is left changes the ledger of windows.
		"internal/read/victorialogs/watch": oneState,
		"internal/app":                     oneState,
		"internal/auth":                    oneState,
	}
}

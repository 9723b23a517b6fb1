package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// metric is a metric of the product, as its source declares it.
type metric struct {
	name, help string
	labels     []string
}

// metrics collects the metrics that the source declares: composite literals with Name and Help, and calls
// whose first arguments are a name and a help text. A label list is the []string of the same call. A
// declaration in another form is a complaint, because the table would miss it. internal/load only reads the
// metrics of others.
func metrics(t *tree) (found []metric, bad []string) {
	ours := regexp.MustCompile(`^shale_[a-z0-9_]+$`)
	for _, f := range t.files {
		if f.isTest() || !f.below("internal") || f.below("internal/archtest") || f.below("internal/load") {
			continue
		}
		seen := map[*ast.BasicLit]bool{}
		add := func(name, help ast.Expr, labels []string) {
			lit, n := literal(name)
			_, h := literal(help)
			if lit == nil || seen[lit] || !ours.MatchString(n) {
				return
			}
			seen[lit] = true
			found = append(found, metric{n, h, labels})
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				labels := labelList(n.Args)
				if len(n.Args) > 1 {
					add(n.Args[0], n.Args[1], labels)
				}
				for _, arg := range n.Args {
					if c, ok := arg.(*ast.CompositeLit); ok {
						name, help := fields(c)
						add(name, help, labels)
					}
				}
			case *ast.CompositeLit:
				name, help := fields(n)
				add(name, help, nil)
			}
			return true
		})
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && !seen[lit] {
				if _, s := literal(lit); ours.MatchString(s) {
					bad = append(bad, fmt.Sprintf("%s: %s is declared in a form that internal/archtest/metrics.go does not read", t.at(lit), s))
				}
			}
			return true
		})
	}
	sort.Slice(found, func(i, j int) bool { return found[i].name < found[j].name })
	for _, m := range found {
		if m.help == "" || !strings.HasSuffix(m.help, ".") {
			bad = append(bad, fmt.Sprintf("%s: its help text %q is not a sentence", m.name, m.help))
		}
	}
	return found, bad
}

// literal returns a string literal and its value, or nil.
func literal(e ast.Expr) (*ast.BasicLit, string) {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return nil, ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return nil, ""
	}
	return lit, s
}

// fields returns the values of the keys Name and Help.
func fields(c *ast.CompositeLit) (name, help ast.Expr) {
	for _, e := range c.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Name" {
				name = kv.Value
			} else if ok && key.Name == "Help" {
				help = kv.Value
			}
		}
	}
	return name, help
}

func labelList(args []ast.Expr) (labels []string) {
	for _, a := range args {
		c, ok := a.(*ast.CompositeLit)
		if !ok {
			continue
		}
		if _, ok := c.Type.(*ast.ArrayType); !ok {
			continue
		}
		for _, e := range c.Elts {
			if _, s := literal(e); s != "" {
				labels = append(labels, s)
			}
		}
	}
	return labels
}

// metricTable writes the metrics for docs/operations.md.
func metricTable(list []metric) string {
	var b strings.Builder
	b.WriteString("| metric | labels | what it counts |\n|---|---|---|\n")
	for i, m := range list {
		if i > 0 && list[i-1].name == m.name {
			continue // declared for several constant labels
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.name, strings.Join(m.labels, ", "), strings.ReplaceAll(m.help, "|", "\\|"))
	}
	return b.String()
}

package prom

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// maxLabelGrowth bounds how many times longer a label of a result may be than the stored one. The engine
// counts samples, not bytes of labels: forty nested calls of label_join(x, "a", "", "a", "a") would need a
// terabyte.
const maxLabelGrowth = 4096

// maxLabelText bounds the constant text that one call of label_join or label_replace may put into each label.
// It is the bound of a stored label.
const maxLabelText = 4 << 10

// checkGrowth returns an error if nested calls of label_join and label_replace may let labels grow beyond
// maxLabelGrowth. Each call multiplies their length by the number of labels that it refers to.
func checkGrowth(expr parser.Expr) error {
	var err error
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		if text := callText(node); text > maxLabelText && err == nil {
			err = fmt.Errorf("label_join and label_replace may add at most %d bytes of text to a label, and here it is %d", maxLabelText, text)
		}
		growth := callGrowth(node)
		if growth == 1 || err != nil {
			return err
		}
		for _, outer := range path {
			if growth *= callGrowth(outer); growth > maxLabelGrowth {
				break
			}
		}
		if growth > maxLabelGrowth {
			err = fmt.Errorf("label_join and label_replace nest so that labels could become more than %d times as long", maxLabelGrowth)
		}
		return err
	})
	return err
}

func callGrowth(node parser.Node) int {
	call, ok := node.(*parser.Call)
	if !ok {
		return 1
	}
	switch {
	case call.Func.Name == "label_join" && len(call.Args) > 3: // vector, destination, separator, sources
		return min(len(call.Args)-3, maxLabelGrowth+1)
	case call.Func.Name == "label_replace" && len(call.Args) > 2:
		return min(max(1, strings.Count(call.Args[2].String(), "$")), maxLabelGrowth+1)
	}
	return 1
}

// callText returns the bytes of constant text that a call puts into a label: the replacement, or the
// separators between the sources.
func callText(node parser.Node) int {
	call, ok := node.(*parser.Call)
	if !ok || len(call.Args) < 3 {
		return 0
	}
	literal, ok := unwrapParens(call.Args[2]).(*parser.StringLiteral)
	if !ok {
		return 0
	}
	switch call.Func.Name {
	case "label_join":
		return len(literal.Val) * max(0, len(call.Args)-4)
	case "label_replace":
		return len(literal.Val)
	}
	return 0
}

func unwrapParens(e parser.Expr) parser.Expr {
	for {
		p, ok := e.(*parser.ParenExpr)
		if !ok {
			return e
		}
		e = p.Expr
	}
}

// namedLabels returns the labels that an expression names outside of selectors: those that it groups or joins
// by, and those that functions read.
func namedLabels(expr parser.Expr) (names []string) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.AggregateExpr:
			names = append(names, n.Grouping...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				names = append(append(names, n.VectorMatching.MatchingLabels...), n.VectorMatching.Include...)
			}
		case *parser.Call:
			for _, arg := range n.Args { // constants that name no label do no harm
				if s, ok := arg.(*parser.StringLiteral); ok && len(s.Val) > 0 && len(s.Val) <= maxNamedLabel {
					names = append(names, s.Val)
				}
			}
		}
		return nil
	})
	return names
}

// maxNamedLabel bounds a constant that is taken for a label name.
const maxNamedLabel = 200

package prom

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// maxLabelGrowth bounds how many times longer the labels of a result may become than those that are stored. The engine
// counts samples and not the bytes of labels, and forty calls of label_join(x, "a", "", "a", "a"), one in the other,
// would need a terabyte.
const maxLabelGrowth = 4096

// checkGrowth returns an error if functions that build labels out of labels nest so that these may grow beyond
// maxLabelGrowth: each call lets them grow by as many times as it names others.
func checkGrowth(expr parser.Expr) error {
	var err error
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
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
	case call.Func.Name == "label_join" && len(call.Args) > 3: // of a vector, a destination, a separator and the sources
		return min(len(call.Args)-3, maxLabelGrowth+1)
	case call.Func.Name == "label_replace" && len(call.Args) > 2:
		return min(max(1, strings.Count(call.Args[2].String(), "$")), maxLabelGrowth+1)
	}
	return 1
}

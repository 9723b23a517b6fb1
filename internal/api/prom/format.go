package prom

import (
	"fmt"
	"strconv"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/api"
)

// maxFormatWork bounds the formatting of an expression, in bytes of text times the square of the depth: the
// formatter prints every part twice for each level of nesting above it. The bound is about one second.
const maxFormatWork = 1 << 34

// formatQuery returns an expression in upstream's layout.
func (h *Handler) formatQuery(r *api.Request) (*api.Response, error) {
	expr, err := h.parse(r, badQuery)
	if err != nil {
		return nil, err
	}
	depth, nodes, length := measure(expr, len(r.Form.Get("query")))
	if depth*depth*length > maxFormatWork {
		return nil, badQuery(fmt.Errorf("the expression nests %d levels deep, which is too much to format one of its length", depth))
	}
	// The text with its indents, twice: the last level is built from a copy.
	if err := r.Quota.TakeBytes(2 * (length + 2*depth*nodes)); err != nil {
		return nil, err
	}
	pretty := expr.Pretty(0)
	return success(func(b *body) { b.Str(pretty) }), nil
}

// measure returns the depth of an expression, the number of its nodes, and an upper bound of its printed
// length: strings may need escapes, numbers all their digits, and operators, durations and commas their
// spaces.
func measure(expr parser.Expr, textLength int) (depth, nodes, length int64) {
	var digits []byte
	length = int64(4 * textLength)
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		if node == nil {
			return nil
		}
		nodes++
		depth = max(depth, int64(len(path)+1))
		length += 64
		if n, ok := node.(*parser.NumberLiteral); ok {
			digits = strconv.AppendFloat(digits[:0], n.Val, 'f', -1, 64)
			length += int64(len(digits))
		}
		return nil
	})
	return depth, nodes, length
}

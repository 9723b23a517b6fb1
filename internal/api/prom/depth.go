package prom

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"
)

// maxDepth bounds how deep an expression may nest. The engine prepares an expression by recursion, in time that grows
// with the square of its depth (about 50 ms for 1,000 levels, 2 s for 10,000) and that no timeout cuts short, and with
// about 4 KiB of stack a level: a form of 1 MiB could reach the size of stack at which Go ends the process.
const maxDepth = 2000

// checkDepth returns an error if the expression may nest deeper than maxDepth. It only counts words, before anything
// is parsed: parentheses nest, and every operator and every subquery may add a level of its own. What stands in braces
// does not nest. Text that is no expression passes; the parser will say what is wrong with it.
func checkDepth(text string) error {
	var item parser.Item
	open, deepest, operators := 0, 0, 0
	braces := false
	for lexer := parser.Lex(text); ; {
		lexer.NextItem(&item)
		switch {
		case item.Typ == parser.EOF || item.Typ == parser.ERROR:
			return nil
		case item.Typ == parser.LEFT_BRACE:
			braces = true
		case item.Typ == parser.RIGHT_BRACE:
			braces = false
		case braces:
		case item.Typ == parser.LEFT_PAREN:
			open++
			deepest = max(deepest, open)
		case item.Typ == parser.RIGHT_PAREN:
			open--
		case item.Typ == parser.COLON || item.Typ.IsOperator():
			operators++
		}
		if deepest+operators > maxDepth {
			return fmt.Errorf("the expression has more than %d nested parentheses and operators", maxDepth)
		}
	}
}

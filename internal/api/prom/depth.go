package prom

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"
)

// maxDepth bounds how deep an expression may nest. The engine prepares an expression by recursion. That takes
// time that grows with the square of the depth and that no timeout ends, and about 4 KiB of stack a level: a
// form of 1 MiB could exceed the stack at which Go ends the process.
const maxDepth = 2000

// checkDepth returns an error if the expression may nest deeper than maxDepth. It counts tokens before
// anything is parsed: parentheses nest, and every operator and every subquery may add a level. Braces do not
// nest. Text that is not an expression passes, and the parser reports its error.
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

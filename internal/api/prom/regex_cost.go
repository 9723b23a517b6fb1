package prom

import (
	"errors"
	"fmt"
	"regexp/syntax"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/strutil"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// Upstream's parser compiles the regular expressions of matchers while it parses, and the seven bytes .{1000}
// compile to
// 60 KB. So they are charged before anything is parsed, until the request ends.
const (
	// maxRegexes bounds the regular expressions of the matchers of one request.
	maxRegexes = 1000
	// patternBytes is the memory of the syntax tree for each byte of a pattern: in the worst case one node.
	patternBytes = 200
	// classBytes is the memory of a Unicode class such as \p{L}: its table has up to 1,400 range bounds,
	// which upstream prints and parses a second time.
	classBytes = 32 << 10
	// instructionBytes is the memory of an instruction of a program, doubled because an expression is parsed
	// once here and once by the engine.
	instructionBytes = 128
	// boundBytes is the memory of a range bound in an instruction for a class.
	boundBytes = 8
)

// regexCharge charges a request for the memory that parsing its texts will take.
type regexCharge struct {
	quota   *model.Quota
	regexes int
	bytes   int64 // of expressions and selectors
}

// text charges an expression or a selector for its tree and its regular expressions. It stops at the first
// syntax error, which the parser will report.
func (c *regexCharge) text(text string) error {
	c.bytes += int64(len(text))
	if err := c.quota.TakeBytes(treeBytes * int64(len(text))); errors.Is(err, model.ErrLimit) {
		return fmt.Errorf("%w: the text of the query has %d bytes, and query.max-bytes of %d is enough to parse about %d; write a shorter one",
			model.ErrLimit, c.bytes, c.quota.MaxBytes, c.quota.MaxBytes/(treeBytes+api.HeldPerByte))
	} else if err != nil {
		return err
	}
	var item parser.Item
	var before parser.ItemType
	braces := false
	for lexer := parser.Lex(text); ; before = item.Typ {
		comment := before
		lexer.NextItem(&item)
		switch item.Typ {
		case parser.EOF, parser.ERROR:
			return nil
		case parser.COMMENT:
			item.Typ = comment // the parser does not see it
		case parser.LEFT_BRACE:
			braces = true
		case parser.RIGHT_BRACE:
			braces = false
		case parser.STRING:
			matcher := before == parser.EQL_REGEX || before == parser.NEQ_REGEX
			if braces && !matcher {
				continue
			}
			pattern, err := strutil.Unquote(item.Val)
			if err != nil {
				continue
			}
			// Outside of braces a string may be the pattern of label_replace, which the engine compiles.
			if matcher {
				err = c.matcher(pattern)
			} else {
				err = c.pattern(pattern)
			}
			if err != nil {
				return err
			}
		}
	}
}

// matcher charges the pattern of a matcher.
func (c *regexCharge) matcher(pattern string) error {
	if c.regexes++; c.regexes > maxRegexes {
		return badData("more than %d regular expressions in matchers", maxRegexes)
	}
	return c.pattern(pattern)
}

func (c *regexCharge) pattern(pattern string) error {
	if err := c.quota.TakeBytes(patternBytes*int64(len(pattern)) + classBytes*unicodeClasses(pattern)); err != nil {
		return fmt.Errorf("the regular expression %.100q: %w", pattern, err)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl|syntax.DotNL)
	if err != nil {
		return nil // The parser will report it.
	}
	if err := c.quota.TakeBytes(programBytes(tree)); err != nil {
		return fmt.Errorf("the regular expression %.100q: %w", pattern, err)
	}
	return nil
}

// unicodeClasses returns an upper bound of the number of \p and \P in a pattern.
func unicodeClasses(pattern string) (n int64) {
	for i := 1; i < len(pattern); i++ {
		if pattern[i-1] == '\\' && pattern[i]|0x20 == 'p' {
			n++
		}
	}
	return n
}

// programBytes estimates the memory of the program of an expression, which contains a repeated expression as
// many times as it may repeat. Go's parser limits the depth of the tree, and the product of nested repeats,
// to 1,000.
func programBytes(re *syntax.Regexp) int64 {
	var subs int64
	for _, sub := range re.Sub {
		subs += programBytes(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return instructionBytes * int64(len(re.Rune))
	case syntax.OpCharClass:
		return instructionBytes + boundBytes*int64(len(re.Rune))
	case syntax.OpCapture:
		return subs + 2*instructionBytes
	case syntax.OpConcat:
		return subs
	case syntax.OpAlternate:
		return subs + instructionBytes*int64(len(re.Sub))
	case syntax.OpRepeat:
		return int64(max(re.Min, re.Max, 1)) * (subs + instructionBytes)
	}
	return subs + instructionBytes
}

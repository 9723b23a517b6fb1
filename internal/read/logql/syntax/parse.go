package syntax

import (
	"errors"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/counts"
)

const (
	// MaxQueryBytes is one more than the longest query has.
	MaxQueryBytes = 131072
	// MaxDepth bounds how deep a query is nested, so that whoever walks a tree may do it by recursion.
	MaxDepth = 4000
	// maxNesting bounds the recursion of the parser. The text of a tree nests at most twice for each of its
	// levels: an operand, and its parentheses.
	maxNesting = 2*MaxDepth + 8
)

// Parse parses a query. Its error is a [*ParseError].
func Parse(query string) (Expr, error) {
	e, err := parse(query, true)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// ParseLog parses a query for lines.
func ParseLog(query string) (*LogQuery, error) {
	e, err := Parse(query)
	if err != nil {
		return nil, err
	}
	q, ok := e.(*LogQuery)
	if !ok {
		return nil, errOnlyLog
	}
	return q, nil
}

// ParseMatchers parses a selector without stages. If it is loose, it need not select anything: {} is one.
func ParseMatchers(selector string, loose bool) ([]*Matcher, error) {
	e, err := parse(selector, !loose)
	if err != nil {
		return nil, err
	}
	q, ok := e.(*LogQuery)
	if !ok || len(q.Stages) > 0 {
		return nil, errOnlyMatchers
	}
	return q.Matchers, nil
}

// plainError has a text that is shown as it is, and is of class [model.ErrInvalid].
type plainError string

func (e plainError) Error() string { return string(e) }
func (plainError) Unwrap() error   { return model.ErrInvalid }

const (
	errOnlyLog      = plainError("only log selector is supported")
	errOnlyMatchers = plainError("only label matchers are supported")
)

func parse(query string, validated bool) (Expr, error) {
	counts.Parse()
	if len(query) >= MaxQueryBytes {
		return nil, wholeError("input size too long (%d > %d)", len(query), MaxQueryBytes)
	}
	p := &parser{lex: newLexer(query), late: map[Expr]*ParseError{}}
	e, err := p.query()
	if err == nil && validated {
		err = p.validate(e)
	}
	if err == nil && p.badNumber != nil {
		err = p.badNumber
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// parser descends recursively, with one token of look-ahead. Its errors are those of Loki's table-driven
// parser: which tokens were expected is listed where at most four are possible, and not after text that could
// be complete.
//
// Functions return *ParseError as error, so that nil stays nil.
type parser struct {
	lex   *lexer
	tok   token // the look-ahead, if have
	have  bool
	depth int
	// late holds the errors of nodes that count only once the whole query has been read.
	late map[Expr]*ParseError
	// badNumber is the first number of a label filter that cannot be represented. It counts at the end, too.
	badNumber *ParseError
	regexps   RegexpBudget
}

// peek returns the kind of the next token. It is read no earlier than needed: an error of an operand that was
// read comes before one of the token after it.
func (p *parser) peek() kind {
	if !p.have {
		p.tok, p.have = p.lex.next(), true
	}
	return p.tok.kind
}

// take consumes the next token.
func (p *parser) take() token {
	p.peek()
	p.have = false
	return p.tok
}

// accept consumes the next token if it is of the kind.
func (p *parser) accept(k kind) bool {
	if p.peek() != k {
		return false
	}
	p.have = false
	return true
}

// expect consumes the next token, which must be of the kind.
func (p *parser) expect(k kind, alternatives ...kind) (token, error) {
	if p.peek() != k {
		return token{}, p.unexpected(append([]kind{k}, alternatives...)...)
	}
	return p.take(), nil
}

// unexpected says that the next token fits nowhere. Alternatives are in the order of their declaration.
func (p *parser) unexpected(expected ...kind) error {
	p.peek()
	if p.lex.first != nil {
		return p.lex.first
	}
	msg := "syntax error: unexpected " + p.tok.name()
	for i, k := range expected {
		if i == 0 {
			msg += ", expecting "
		} else {
			msg += " or "
		}
		msg += k.String()
	}
	return &ParseError{Line: p.lex.sc.Line, Column: p.lex.sc.Column, Msg: msg}
}

// enter goes one level down; leave comes back.
func (p *parser) enter() error {
	if p.depth++; p.depth > maxNesting {
		return &ParseError{Line: p.lex.sc.Line, Column: p.lex.sc.Column, Msg: errDeep}
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

var errDeep = fmt.Sprintf("the query is nested too deeply (more than %d levels)", MaxDepth)

func (p *parser) query() (Expr, error) {
	e, err := p.expr()
	if err != nil {
		return nil, err
	}
	if p.peek() != kEOF {
		return nil, p.unexpected()
	}
	if p.lex.first != nil {
		return nil, p.lex.first
	}
	if height(e) > MaxDepth {
		return nil, wholeError("%s", errDeep)
	}
	return e, nil
}

// height returns the number of levels of a tree.
func height(n Node) int {
	h := 0
	if c, ok := n.(interface{ children(func(Node)) }); ok {
		c.children(func(child Node) { h = max(h, height(child)) })
	}
	return h + 1
}

// labels parses names in parentheses, of which the first was read.
func (p *parser) labels() ([]string, error) {
	if p.accept(kCloseParen) {
		return nil, nil
	}
	var names []string
	alternatives := []kind{kCloseParen}
	for {
		name, err := p.expect(kIdentifier, alternatives...)
		if err != nil {
			return nil, err
		}
		names, alternatives = append(names, name.text), nil
		switch p.peek() {
		case kComma:
			p.take()
		case kCloseParen:
			p.take()
			return names, nil
		default:
			return nil, p.unexpected(kComma, kCloseParen)
		}
	}
}

// regexpError is the error of a regular expression with what it stands in before it.
func regexpError(where string, err error) error {
	var bad *RegexpError
	if !errors.As(err, &bad) {
		return err
	}
	return wholeError("%s%s", where, bad)
}

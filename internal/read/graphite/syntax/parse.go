package syntax

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// maxDepth bounds nested calls. Dashboards nest about ten.
const maxDepth = 100

// TreeBytes returns the most memory that the tree of a target takes: its texts, its arguments and its calls.
func TreeBytes(target string) int64 {
	arguments := strings.Count(target, ",") + strings.Count(target, "|") + 1
	return 2*int64(len(target)) + 72*int64(arguments) + 128*int64(strings.Count(target, "("))
}

// Error says where a target cannot be parsed. It is of class [model.ErrInvalid].
type Error struct {
	Target string
	At     int // offset in bytes
	Want   string
}

// nearBytes is how much of a target an error quotes.
const nearBytes = 40

func (e *Error) Error() string {
	found := "the end of the target"
	if e.At < len(e.Target) {
		near := e.Target[e.At:]
		if len(near) > nearBytes {
			near = strings.ToValidUTF8(near[:nearBytes], "") + "..."
		}
		found = fmt.Sprintf("%q", near)
	}
	return fmt.Sprintf("cannot parse the target at position %d: expected %s, found %s", e.At+1, e.Want, found)
}

// Unwrap returns the class of the error.
func (e *Error) Unwrap() error { return model.ErrInvalid }

// Parse parses a target.
func Parse(target string) (Expr, error) {
	p := &parser{text: target}
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(p.text) {
		return nil, p.want("the end of the target or |")
	}
	return e, nil
}

// FirstPathOf returns the leftmost path of a name that may be a call, as graphite-web finds it: text after
// the first expression is ignored, and a name that cannot be parsed has no path.
func FirstPathOf(name string) string {
	p := &parser{text: name}
	e, err := p.expression()
	if err != nil {
		p = &parser{text: name}
		if p.space(); p.at == len(name) {
			return ""
		}
		// A call that cannot be parsed is read as the path in front of its parenthesis.
		path := p.path()
		if path == nil {
			return ""
		}
		return path.Text
	}
	return FirstPath(e)
}

// parser is a recursive descent with one token of lookahead, which is a byte.
type parser struct {
	text  string
	at    int
	depth int
}

func (p *parser) want(what string) error { return &Error{Target: p.text, At: p.at, Want: what} }

// space skips white space, which may stand between any two tokens.
func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n\r", p.text[p.at]) >= 0 {
		p.at++
	}
}

// next reports whether the next token is c. It skips the white space before it.
func (p *parser) next(c byte) bool {
	p.space()
	return p.at < len(p.text) && p.text[p.at] == c
}

// take consumes the next token if it is c.
func (p *parser) take(c byte) bool {
	if p.next(c) {
		p.at++
		return true
	}
	return false
}

// expression parses a template, a call or a path, and the calls that it is piped into.
func (p *parser) expression() (Expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.want(fmt.Sprintf("at most %d nested calls", maxDepth))
	}
	defer func() { p.depth-- }()
	e, err := p.term()
	if err != nil {
		return nil, err
	}
	for pipes := 0; p.take('|'); pipes++ {
		if pipes >= maxDepth {
			return nil, p.want(fmt.Sprintf("at most %d pipes", maxDepth))
		}
		p.space()
		begin := p.at
		name := p.word()
		if name == "" || !p.next('(') {
			p.at = begin
			return nil, p.want("a call after |")
		}
		call, err := p.call(begin, name)
		if err != nil {
			return nil, err
		}
		call.Args = append([]Expr{e}, call.Args...)
		e = call
	}
	return e, nil
}

// term parses a template, a call or a path.
func (p *parser) term() (Expr, error) {
	p.space()
	begin := p.at
	if name := p.word(); name != "" && p.next('(') {
		if name == "template" {
			return p.template(begin)
		}
		return p.call(begin, name)
	}
	p.at = begin
	if e := p.path(); e != nil {
		return e, nil
	}
	return nil, p.want("a path or a call")
}

// word consumes a name of a function or an argument, if there is one.
func (p *parser) word() string {
	begin := p.at
	for p.at < len(p.text) {
		c := p.text[p.at]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (p.at == begin || c < '0' || c > '9') {
			break
		}
		p.at++
	}
	return p.text[begin:p.at]
}

// call parses the arguments of a call, whose name has been consumed.
func (p *parser) call(begin int, name string) (*Call, error) {
	c := &Call{At: begin, Name: name}
	p.take('(')
	if p.take(')') {
		c.Raw = p.text[begin:p.at]
		return c, nil
	}
	for {
		key := p.keyword()
		if key == "" && len(c.Kwargs) > 0 {
			return nil, p.want("an argument with a name, as the one before it")
		}
		v, err := p.argument()
		if err != nil {
			return nil, err
		}
		if key != "" {
			c.Kwargs = append(c.Kwargs, Kwarg{Name: key, Value: v})
		} else {
			c.Args = append(c.Args, v)
		}
		switch {
		case p.take(')'):
			c.Raw = p.text[begin:p.at]
			return c, nil
		case !p.take(','):
			return nil, p.want(", or ) in the call of " + name)
		}
	}
}

// keyword consumes name= if that is next.
func (p *parser) keyword() string {
	p.space()
	begin := p.at
	if name := p.word(); name != "" && p.take('=') {
		return name
	}
	p.at = begin
	return ""
}

// argument parses a literal or an expression.
func (p *parser) argument() (Expr, error) {
	p.space()
	begin := p.at
	if l := p.literal(); l != nil {
		return l, nil
	}
	if p.at != begin {
		return nil, p.want("the end of the string")
	}
	return p.expression()
}

// template parses the arguments of a template.
func (p *parser) template(begin int) (Expr, error) {
	t := &Template{At: begin}
	p.take('(')
	if p.depth++; p.depth > maxDepth {
		return nil, p.want(fmt.Sprintf("at most %d nested calls", maxDepth))
	}
	defer func() { p.depth-- }()
	var err error
	if t.Body, err = p.term(); err != nil {
		return nil, err
	}
	if _, nested := t.Body.(*Template); nested {
		return nil, &Error{Target: p.text, At: t.Body.Pos(), Want: "a path or a call in template()"}
	}
	for !p.take(')') {
		if !p.take(',') {
			return nil, p.want(", or ) in template()")
		}
		name := p.keyword()
		if name == "" {
			name = fmt.Sprint(len(t.Values) + 1)
		}
		p.space()
		l := p.literal()
		if l != nil {
			switch l.Value.(type) {
			case int64, float64, string:
				t.Values = append(t.Values, Value{Name: name, Value: l.Value})
				continue
			}
			p.at = l.At
		}
		return nil, p.want("a number or a string in template()")
	}
	return t, nil
}

// symbols are the characters that a path contains only after a backslash.
const symbols = `(){},.'"\|`

// path parses a path, or returns nil. Braces may be nested and contain dots, which graphite-web refuses.
func (p *parser) path() *Path {
	begin, braces := p.at, 0
	var b strings.Builder
	for p.at < len(p.text) {
		r, n := utf8.DecodeRuneInString(p.text[p.at:])
		switch {
		case r == '\\':
			escaped := p.at + 1
			if escaped == len(p.text) || !strings.ContainsRune(symbols+"=", rune(p.text[escaped])) {
				return p.endPath(begin, braces, &b)
			}
			p.at = escaped
			r, n = rune(p.text[escaped]), 1
		case r == '{':
			braces++
		case r == '}' && braces > 0:
			braces--
		case r == ',' && braces > 0, r == '.' && p.at > begin:
		case strings.ContainsRune(symbols, r), unicode.IsSpace(r), r < ' ', r == 0x7f, r == utf8.RuneError && n <= 1:
			return p.endPath(begin, braces, &b)
		}
		b.WriteRune(r)
		p.at += n
	}
	return p.endPath(begin, braces, &b)
}

func (p *parser) endPath(begin, braces int, b *strings.Builder) *Path {
	text := b.String()
	if text == "" || braces > 0 || strings.HasSuffix(text, ".") || strings.Contains(text, "..") {
		return nil
	}
	return &Path{At: begin, Text: text}
}

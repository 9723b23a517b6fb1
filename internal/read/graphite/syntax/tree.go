package syntax

// Expr is a node of the tree: a *Path, *Call, *Template or *Literal. Nodes are not changed after parsing.
type Expr interface {
	// Pos is the offset of the node in the target, in bytes.
	Pos() int
}

// Path is a path expression: a name, or a glob over names.
type Path struct {
	At   int
	Text string // without the backslashes that escape symbols
}

// Call is a call of a function. A pipe a|f(b) is the call f(a, b).
type Call struct {
	At     int
	Name   string
	Args   []Expr
	Kwargs []Kwarg
	// Raw is the text of the call in the target. Of a piped call it is the part after the bar.
	Raw string
}

// Kwarg is an argument with a name.
type Kwarg struct {
	Name  string
	Value Expr
}

// Template is template(body, ...): in the body's paths, $name stands for a value.
type Template struct {
	At   int
	Body Expr // a *Path or a *Call
	// Values are the values by name. Values without a name are called 1, 2, ...
	Values []Value
}

// Value is a named value of a template.
type Value struct {
	Name  string
	Value any // int64, float64 or string
}

// Literal is a constant.
type Literal struct {
	At    int
	Value any // int64, float64, string, bool or nil
}

// Pos returns the offset in the target.
func (p *Path) Pos() int { return p.At }

// Pos returns the offset in the target.
func (c *Call) Pos() int { return c.At }

// Pos returns the offset in the target.
func (t *Template) Pos() int { return t.At }

// Pos returns the offset in the target.
func (l *Literal) Pos() int { return l.At }

// FirstPath returns the path at the leftmost place of a tree, which functions use for the nodes of a name
// that contains calls. It returns "" if there is none.
func FirstPath(e Expr) string {
	for {
		switch n := e.(type) {
		case *Path:
			return n.Text
		case *Call:
			if len(n.Args) == 0 {
				return ""
			}
			e = n.Args[0]
		default:
			return ""
		}
	}
}

package logql

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/plan"
	"github.com/shaledb/shale/internal/read/logql/selection"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// ErrMetric says in Loki's words that a query asks for numbers where only lines are possible. It is of class
// invalid.
var ErrMetric error = &refused{"only log selector is supported", model.ErrInvalid}

// ErrInstant says that a query for lines was to be answered at one instant, in Loki's words. It is of class
// invalid.
var ErrInstant error = &refused{"log queries are not supported as an instant query type, please change your query to a range query type", model.ErrInvalid}

// refused is an error of a class whose text is shown as it is.
type refused struct {
	text  string
	class error
}

func (e *refused) Error() string { return e.text }
func (e *refused) Unwrap() error { return e.class }

// Prepared is a query that was parsed and compiled, which happens once however it is used. It never changes.
type Prepared struct {
	expr syntax.Expr
	// Of a query for lines:
	log     *syntax.LogQuery
	program *selection.Program
	// Of a query for numbers:
	plan *plan.Plan
}

// Prepare parses a query and compiles its stages. Errors are of class invalid or limit and have Loki's texts.
func Prepare(text string) (*Prepared, error) {
	expr, err := syntax.Parse(text)
	if err != nil {
		return nil, err
	}
	return compile(expr)
}

// PrepareInstant prepares a query that is evaluated at one instant: [ErrInstant] refuses a query for lines,
// even one whose stages cannot be compiled.
func PrepareInstant(text string) (*Prepared, error) {
	expr, err := syntax.Parse(text)
	if err != nil {
		return nil, err
	}
	if _, ok := expr.(*syntax.LogQuery); ok {
		return nil, ErrInstant
	}
	return compile(expr)
}

// PrepareMatching prepares a query for lines with a further line filter, by a regular expression, at its end.
func PrepareMatching(text, regexp string) (*Prepared, error) {
	expr, err := syntax.Parse(text)
	if err != nil {
		return nil, err
	}
	q, ok := expr.(*syntax.LogQuery)
	if !ok {
		return nil, ErrMetric
	}
	with := *q
	with.Stages = append(with.Stages[:len(with.Stages):len(with.Stages)],
		&syntax.LineFilter{Op: syntax.LineMatches, Any: []syntax.LineOperand{{Value: regexp}}})
	return compile(&with)
}

// WantsLines reports whether the query asks for lines, not for numbers.
func (p *Prepared) WantsLines() bool { return p.log != nil }

// String returns the canonical text.
func (p *Prepared) String() string { return p.expr.String() }

func compile(e syntax.Expr) (*Prepared, error) {
	var err error
	p := &Prepared{expr: e}
	switch e := e.(type) {
	case *syntax.LogQuery:
		p.log = e
		p.program, err = selection.Compile(e.Stages)
	case syntax.MetricExpr:
		p.plan, err = plan.Compile(e)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Selector is a parsed selector of streams, such as {app="web"}.
type Selector struct {
	matchers []*syntax.Matcher
}

// ParseSelector parses a selector. One that selects streams without any label it names is an error.
func ParseSelector(text string) (Selector, error) {
	ms, err := syntax.ParseMatchers(text, false)
	return Selector{ms}, err
}

package logql

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/selection"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// ErrMetric says that a query asks for numbers, which cannot be answered yet. It is of class invalid.
var ErrMetric error = &unsupported{"metric queries are not supported yet"}

// ErrInstant says that a query for lines was to be answered at one instant, in Loki's words. It is of class
// invalid.
var ErrInstant error = &unsupported{"log queries are not supported as an instant query type, please change your query to a range query type"}

// unsupported is an error whose text is shown as it is.
type unsupported struct{ text string }

func (e *unsupported) Error() string { return e.text }
func (e *unsupported) Unwrap() error { return model.ErrInvalid }

// Prepared is a query that was parsed and compiled, which happens once however it is used. It never changes.
type Prepared struct {
	log     *syntax.LogQuery // nil: the query asks for numbers
	program *selection.Program
}

// Prepare parses a query and compiles its stages. Errors are of class invalid or limit and have Loki's texts.
func Prepare(text string) (*Prepared, error) {
	expr, err := syntax.Parse(text)
	if err != nil {
		return nil, err
	}
	q, ok := expr.(*syntax.LogQuery)
	if !ok {
		return &Prepared{}, nil
	}
	return compile(q)
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
	return &Prepared{}, nil
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

// String returns the canonical text of a query for lines.
func (p *Prepared) String() string { return p.log.String() }

func compile(q *syntax.LogQuery) (*Prepared, error) {
	p, err := selection.Compile(q.Stages)
	if err != nil {
		return nil, err
	}
	return &Prepared{q, p}, nil
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

package logql

import (
	"errors"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// ErrMetric says that a query asks for numbers, which cannot be answered yet. It is of class invalid.
var ErrMetric error = &unsupported{"metric queries are not supported yet"}

// ErrInstant says that a query for lines was to be answered at one instant, in Loki's words. It is of class invalid.
var ErrInstant error = &unsupported{"log queries are not supported as an instant query type, please change your query to a range query type"}

// unsupported is an error whose text is shown as it is.
type unsupported struct{ text string }

func (e *unsupported) Error() string { return e.text }
func (e *unsupported) Unwrap() error { return model.ErrInvalid }

// parseLines parses a query for lines.
func parseLines(text string) (*syntax.LogQuery, error) {
	expr, err := syntax.Parse(text)
	if err != nil {
		return nil, err
	}
	q, ok := expr.(*syntax.LogQuery)
	if !ok {
		return nil, ErrMetric
	}
	return q, nil
}

// IsLines reports whether the answer to a query is lines, and not numbers. Stages that cannot be carried out are errors too.
func (*Engine) IsLines(text string) (bool, error) {
	q, err := parseLines(text)
	if errors.Is(err, ErrMetric) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = compile(q)
	return true, err
}

// CheckInstant returns the error with which an instant query is refused, which every query is today.
func (e *Engine) CheckInstant(text string) error {
	lines, err := e.IsLines(text)
	switch {
	case err != nil:
		return err
	case lines:
		return ErrInstant
	}
	return ErrMetric
}

// WithRegexp returns a query for lines with a line filter by a regular expression behind it.
func (*Engine) WithRegexp(text, regexp string) (string, error) {
	q, err := parseLines(text)
	if err != nil {
		return "", err
	}
	with := *q
	with.Stages = append(with.Stages[:len(with.Stages):len(with.Stages)],
		&syntax.LineFilter{Op: syntax.LineMatches, Any: []syntax.LineOperand{{Value: regexp}}})
	if _, err := compile(&with); err != nil {
		return "", err
	}
	return with.String(), nil
}

// CheckSelector returns an error unless the text is a selector; one that may select everything is one only if empty is set.
func (*Engine) CheckSelector(text string, empty bool) error {
	_, err := syntax.ParseMatchers(text, empty)
	return err
}

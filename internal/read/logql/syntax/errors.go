package syntax

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// ParseError says what is wrong with a query. It is of class [model.ErrInvalid].
type ParseError struct {
	// Line and Column are where it was noticed: at the start of the last token that was read. Both are 0 for
	// what concerns the query as a whole. As in Loki, Line is 0 after a token that needed a look
	// ahead.
	Line, Column int
	Msg          string
}

// Error returns the text that Loki gives.
func (e *ParseError) Error() string {
	if e.Line == 0 && e.Column == 0 {
		return "parse error : " + e.Msg
	}
	return fmt.Sprintf("parse error at line %d, col %d: %s", e.Line, e.Column, e.Msg)
}

// Unwrap gives the class.
func (e *ParseError) Unwrap() error { return model.ErrInvalid }

// StageError says that a stage cannot be carried out: its template, pattern or address is invalid.
func StageError(s Stage, err error) *ParseError { return wholeError("stage '%s' : %s", s, err) }

// wholeError is an error without a place.
func wholeError(format string, args ...any) *ParseError {
	return &ParseError{Msg: fmt.Sprintf(format, args...)}
}

package loki

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// statusClientClosed is the status, known from nginx, of a request whose client did not wait for the answer. A query that
// was cancelled for another reason, a shutdown, is 503: the client may ask again.
const statusClientClosed = 499

// Loki's texts for what ends a request before its time.
const (
	textCanceled  = "the request was cancelled by the client"
	textTimeout   = "request timed out, decrease the duration of the request or add more label matchers (prefer exact match over regex match) to reduce the amount of data processed"
	textOnlyLines = "only log selector is supported"
	textLegacy    = "legacy endpoints only support streams result type"
)

// apiError is an error with its status.
type apiError struct {
	status int
	err    error
}

func (e *apiError) Error() string { return e.err.Error() }
func (e *apiError) Unwrap() error { return e.err }

// bad refuses a request that can never succeed.
func bad(err error) *apiError { return &apiError{http.StatusBadRequest, err} }

func badText(text string) *apiError { return bad(errors.New(text)) }

// maxErrorBytes bounds the text of an error: parsers show all of what they cannot read.
const maxErrorBytes = 8 << 10

// text is what the client is told.
func (e *apiError) text() string {
	// The class of what is wrong with a request is its status; Loki's texts do not have it.
	s := strings.TrimPrefix(e.err.Error(), model.ErrInvalid.Error()+": ")
	if len(s) <= maxErrorBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxErrorBytes], "") + " ..."
}

// errTurn marks a request whose turn did not come.
type errTurn struct{ error }

func (e errTurn) Unwrap() error { return e.error }

// classify finds the status of an error of the engine or the store.
func classify(err error) *apiError {
	var already *apiError
	var turn errTurn
	switch {
	case errors.As(err, &already):
		return already
	case errors.Is(err, context.Canceled):
		return &apiError{http.StatusServiceUnavailable, err}
	case errors.Is(err, context.DeadlineExceeded):
		return &apiError{http.StatusGatewayTimeout, errors.New(textTimeout + " (query.timeout)")}
	case errors.As(err, &turn):
		return &apiError{http.StatusTooManyRequests, fmt.Errorf("too many outstanding requests: %w", err)}
	case errors.Is(err, model.ErrLimit):
		return bad(err)
	case errors.Is(err, model.ErrTransient), errors.Is(err, model.ErrClosed):
		return &apiError{http.StatusServiceUnavailable, err}
	case errors.Is(err, model.ErrInvalid):
		return bad(err)
	}
	return &apiError{http.StatusInternalServerError, err}
}

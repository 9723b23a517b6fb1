package prom

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"

	"github.com/prometheus/prometheus/promql"

	"github.com/shaledb/shale/internal/model"
)

// errorType is the word for an error in the envelope.
type errorType string

// Upstream's error types.
const (
	typeBadData     errorType = "bad_data"
	typeExecution   errorType = "execution"
	typeTimeout     errorType = "timeout"
	typeCanceled    errorType = "canceled"
	typeInternal    errorType = "internal"
	typeUnavailable errorType = "unavailable"
	typeNotFound    errorType = "not_found"
)

// statusClientClosed is the status, known from nginx, of a request whose client did not wait for the answer. A query
// that was cancelled for another reason, a shutdown, is 503: the client may ask again.
const statusClientClosed = 499

// apiError is an error with its place in the protocol.
type apiError struct {
	kind   errorType
	status int
	err    error
}

func (e *apiError) Error() string { return e.err.Error() }
func (e *apiError) Unwrap() error { return e.err }

func badData(format string, args ...any) *apiError {
	return &apiError{typeBadData, http.StatusBadRequest, fmt.Errorf(format, args...)}
}

// plainBad says what is wrong without the name of a parameter.
func plainBad(err error) *apiError { return badData("%w", err) }

// badParam names the parameter, in upstream's words.
func badParam(name string, err error) *apiError {
	return badData("invalid parameter %q: %w", name, err)
}

// maxErrorBytes bounds the text of an error: upstream's parser shows all of a number that it cannot read.
const maxErrorBytes = 8 << 10

// text is what the client is told.
func (e *apiError) text() string {
	s := e.err.Error()
	if len(s) <= maxErrorBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxErrorBytes], "") + " ..."
}

// classify finds the type and the status of an error of the engine or the store.
func classify(err error) *apiError {
	var (
		already  *apiError
		canceled promql.ErrQueryCanceled
		timeout  promql.ErrQueryTimeout
		samples  promql.ErrTooManySamples
		stored   promql.ErrStorage
		panicked runtime.Error
	)
	if errors.As(err, &already) {
		return already
	}
	internal := false
	if errors.As(err, &stored) && stored.Err != nil {
		// Upstream's type shows the text of its cause and hides the cause itself.
		err, internal = stored.Err, true
	}
	switch {
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return &apiError{typeCanceled, http.StatusServiceUnavailable, err}
	case errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &timeout):
		return &apiError{typeTimeout, http.StatusServiceUnavailable, fmt.Errorf("%w (query.timeout)", err)}
	case errors.As(err, &timeout):
		return &apiError{typeTimeout, http.StatusServiceUnavailable, err}
	case errors.As(err, &samples):
		return &apiError{typeExecution, http.StatusUnprocessableEntity, fmt.Errorf("%w (query.max-samples)", err)}
	case errors.Is(err, model.ErrLimit):
		return &apiError{typeExecution, http.StatusUnprocessableEntity, err}
	case errors.Is(err, model.ErrTransient), errors.Is(err, model.ErrClosed):
		return &apiError{typeUnavailable, http.StatusServiceUnavailable, err}
	case errors.Is(err, model.ErrInvalid):
		return &apiError{typeBadData, http.StatusBadRequest, err}
	case errors.Is(err, model.ErrCorrupt), errors.As(err, &panicked), internal:
		return &apiError{typeInternal, http.StatusInternalServerError, err}
	}
	return &apiError{typeExecution, http.StatusUnprocessableEntity, err}
}

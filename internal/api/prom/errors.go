package prom

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"

	"github.com/prometheus/prometheus/promql"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// The error types of Prometheus.
const (
	typeBadData     = "bad_data"
	typeExecution   = "execution"
	typeTimeout     = "timeout"
	typeCanceled    = "canceled"
	typeInternal    = "internal"
	typeUnavailable = "unavailable"
	typeNotFound    = "not_found"
)

// typeOf returns the type of an error. Those of the pipeline have only a status.
func typeOf(e *api.Error) string {
	switch {
	case e.Kind != "":
		return e.Kind
	case e.Status == http.StatusInternalServerError:
		return typeInternal
	}
	return typeBadData
}

func internal(err error) *api.Error {
	return &api.Error{Kind: typeInternal, Status: http.StatusInternalServerError, Err: err}
}

func badData(format string, args ...any) *api.Error {
	return &api.Error{Kind: typeBadData, Status: http.StatusBadRequest, Err: fmt.Errorf(format, args...)}
}

// plainBad leaves out the name of the parameter.
func plainBad(err error) *api.Error { return badData("%w", err) }

// badParam names the parameter as upstream does.
func badParam(name string, err error) *api.Error {
	return badData("invalid parameter %q: %w", name, err)
}

// classify finds the type and the status of an error of the engine, the store or the pipeline.
func classify(err error, clientGone bool) *api.Error {
	e := classOf(err)
	switch {
	case e.Kind == typeCanceled && clientGone:
		e.Status = api.StatusClientClosed
	case e.Kind == typeTimeout:
		e.Final = true
	}
	return e
}

func classOf(err error) *api.Error {
	var (
		already  *api.Error
		form     *api.FormError
		canceled promql.ErrQueryCanceled
		timeout  promql.ErrQueryTimeout
		samples  promql.ErrTooManySamples
		stored   promql.ErrStorage
		panicked runtime.Error
	)
	if errors.As(err, &already) {
		return already
	}
	if errors.As(err, &form) {
		return badData("error parsing form values: %w", err)
	}
	fromStore := false
	if errors.As(err, &stored) && stored.Err != nil {
		// Upstream's type shows the text of its cause and does not unwrap to it.
		err, fromStore = stored.Err, true
	}
	switch {
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return &api.Error{Kind: typeCanceled, Status: http.StatusServiceUnavailable, Err: err}
	case errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &timeout):
		return &api.Error{Kind: typeTimeout, Status: http.StatusServiceUnavailable, Err: fmt.Errorf("%w (query.timeout)", err)}
	case errors.As(err, &timeout):
		return &api.Error{Kind: typeTimeout, Status: http.StatusServiceUnavailable, Err: err}
	case errors.As(err, &samples):
		return &api.Error{Kind: typeExecution, Status: http.StatusUnprocessableEntity, Err: fmt.Errorf("%w (query.max-samples)", err)}
	case errors.Is(err, model.ErrCorrupt): // whatever else it is
		return internal(err)
	case errors.Is(err, model.ErrLimit):
		return &api.Error{Kind: typeExecution, Status: http.StatusUnprocessableEntity, Err: err}
	case errors.Is(err, model.ErrTransient), errors.Is(err, model.ErrClosed):
		return &api.Error{Kind: typeUnavailable, Status: http.StatusServiceUnavailable, Err: err}
	case errors.Is(err, model.ErrInvalid), errors.As(err, &panicked), fromStore:
		// The checks of requests say bad_data themselves. What is invalid beyond them is not the client's fault.
		return internal(err)
	}
	return &api.Error{Kind: typeExecution, Status: http.StatusUnprocessableEntity, Err: err}
}

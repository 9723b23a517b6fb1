package loki

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// Loki's texts.
const (
	textCanceled = "the request was cancelled by the client"
	textTimeout  = "request timed out, decrease the duration of the request or add more label matchers " +
		"(prefer exact match over regex match) to reduce the amount of data processed"
	textOnlyLines = "only log selector is supported"
	textLegacy    = "legacy endpoints only support streams result type"
)

// errManyTenants refuses several tenants where only one is possible, in Loki's words.
var errManyTenants = errors.New("multiple org IDs present")

func failed(status int, err error) *api.Error { return &api.Error{Status: status, Err: err} }

// bad refuses a request that can never succeed.
func bad(err error) *api.Error { return failed(http.StatusBadRequest, err) }

func badText(text string) *api.Error { return bad(errors.New(text)) }

// errorText returns the text for the client. Loki tells the class of an error by the status alone, so the
// prefix of ours goes.
func errorText(e *api.Error) string {
	return api.Shorten(strings.TrimPrefix(e.Error(), model.ErrInvalid.Error()+": "))
}

// writeError writes an error as Loki does: the text and nothing else.
func writeError(b *api.Body, e *api.Error) { b.SendText(e.Status, errorText(e)) }

// classify finds the status of an error of the engine, the store or the pipeline.
func classify(err error, clientGone bool) *api.Error {
	var already *api.Error
	var form *api.FormError
	var turn *api.TurnError
	switch {
	case clientGone && errors.Is(err, context.Canceled):
		return failed(api.StatusClientClosed, errors.New(textCanceled))
	case errors.As(err, &already):
		return already
	case errors.As(err, &form):
		return bad(err)
	case errors.Is(err, context.Canceled):
		return failed(http.StatusServiceUnavailable, err)
	case errors.Is(err, context.DeadlineExceeded):
		return failed(http.StatusGatewayTimeout, errors.New(textTimeout+" (query.timeout)"))
	case errors.As(err, &turn):
		return failed(http.StatusTooManyRequests, fmt.Errorf("too many outstanding requests: %w", err))
	case errors.Is(err, model.ErrCorrupt): // whatever else it is
		return failed(http.StatusInternalServerError, err)
	case errors.Is(err, model.ErrLimit):
		return bad(err)
	case errors.Is(err, model.ErrTransient), errors.Is(err, model.ErrClosed):
		return failed(http.StatusServiceUnavailable, err)
	case errors.Is(err, model.ErrInvalid):
		return bad(err)
	}
	return failed(http.StatusInternalServerError, err)
}

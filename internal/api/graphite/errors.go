package graphite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

func failed(status int, err error) *api.Error { return &api.Error{Status: status, Err: err} }

// errorText returns the text for the client. The status tells the class of an error, so its prefix goes.
func errorText(e *api.Error) string {
	text := strings.TrimPrefix(e.Error(), model.ErrInvalid.Error()+": ")
	return api.Shorten(text)
}

func writeText(b *api.Body, e *api.Error) { b.SendText(e.Status, errorText(e)) }

// writeJSON writes an error as graphite-web's decorator jsonResponse does.
func writeJSON(b *api.Body, e *api.Error) {
	b.ContentType = "application/json"
	b.Raw(`{"error":`)
	b.Str(errorText(e))
	b.Raw("}")
	b.Flush(e.Status, true)
}

// classify finds the status of an error of an engine, the store or the pipeline.
func classify(err error, clientGone bool) *api.Error {
	var already *api.Error
	var form *api.FormError
	switch {
	case clientGone && errors.Is(err, context.Canceled):
		return failed(api.StatusClientClosed, err)
	case errors.As(err, &already):
		return already
	case errors.As(err, &form):
		return failed(http.StatusBadRequest, err)
	case errors.Is(err, context.DeadlineExceeded):
		return failed(http.StatusGatewayTimeout, fmt.Errorf("%w (query.timeout)", err))
	case errors.Is(err, model.ErrCorrupt): // whatever else it is
		return failed(http.StatusInternalServerError, err)
	case errors.Is(err, model.ErrLimit):
		return failed(http.StatusUnprocessableEntity, err)
	case errors.Is(err, model.ErrTransient), errors.Is(err, model.ErrClosed), errors.Is(err, context.Canceled):
		return failed(http.StatusServiceUnavailable, err)
	case errors.Is(err, model.ErrInvalid):
		return failed(http.StatusBadRequest, err)
	}
	return failed(http.StatusInternalServerError, err)
}

package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// Cache is what the endpoints below /api/v1/cache need.
type Cache interface {
	// Report returns what the cache has done, as a value for JSON.
	Report() any
	// WhatIf returns what the sizes in the parameters would do. An error of class invalid is about these.
	WhatIf(form url.Values) (any, error)
	// Record writes a trace of what queries ask for, for the time and up to the size in the parameters.
	Record(r *http.Request, w http.ResponseWriter) error
}

// cache answers with the report on the cache.
func (a *API) cache(r *api.Request) (*api.Response, error) {
	c := a.caches()
	if c == nil {
		return starting(r), nil
	}
	return document(r, c.Report())
}

// whatIf answers with what other sizes would do.
func (a *API) whatIf(r *api.Request) (*api.Response, error) {
	c := a.caches()
	if c == nil {
		return starting(r), nil
	}
	v, err := c.WhatIf(r.URL.Query())
	if err != nil {
		return refused(r, err), nil
	}
	return document(r, v)
}

// record sends a trace.
func (a *API) record(r *api.Request) (*api.Response, error) {
	c := a.caches()
	if c == nil {
		return starting(r), nil
	}
	if err := c.Record(r.Request, r.W); err != nil {
		return refused(r, err), nil
	}
	return &api.Response{Sent: true}, nil
}

// caches returns the cache, or nil as long as the store is not open.
func (a *API) caches() Cache {
	if a.o.Cache == nil {
		return nil
	}
	return a.o.Cache()
}

func starting(r *api.Request) *api.Response {
	r.W.Header().Set("Retry-After", "2")
	return text(r, http.StatusServiceUnavailable, "starting: the journal is being replayed\n")
}

// refused returns the response to an error: 400 if the request is wrong, and 503 if it may work later.
func refused(r *api.Request, err error) *api.Response {
	status := http.StatusServiceUnavailable
	if errors.Is(err, model.ErrInvalid) {
		status = http.StatusBadRequest
	}
	return text(r, status, err.Error()+"\n")
}

// document returns a response of JSON that no cache keeps.
func document(r *api.Request, v any) (*api.Response, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	response := text(r, http.StatusOK, string(b)+"\n")
	response.ContentType = "application/json"
	return response, nil
}

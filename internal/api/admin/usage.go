package admin

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// Usage is what the endpoint /api/v1/usage needs.
type Usage interface {
	// Report returns what tenants have used, as a value for JSON, and the same as CSV. An error of class
	// invalid is about the parameters.
	Report(ctx context.Context, form url.Values) (value any, csv func(*bytes.Buffer) error, err error)
}

// usage answers with what tenants have used.
func (a *API) usage(r *api.Request) (*api.Response, error) {
	var u Usage
	if a.o.Usage != nil {
		u = a.o.Usage()
	}
	if u == nil {
		return starting(r), nil
	}
	form := r.URL.Query()
	format := form.Get("format")
	if format != "" && format != "json" && format != "csv" {
		return refused(r, fmt.Errorf("%w: format: expected json or csv, got %.40q", model.ErrInvalid, format)), nil
	}
	value, csv, err := u.Report(r.Context(), form)
	switch {
	case err != nil:
		return refused(r, err), nil
	case format != "csv":
		return document(r, value)
	}
	var b bytes.Buffer
	if err := csv(&b); err != nil {
		return nil, err
	}
	response := text(r, http.StatusOK, b.String())
	response.ContentType = "text/csv; charset=utf-8"
	return response, nil
}

package apitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/api"
)

// Store is the store that an API reads.
type Store interface {
	// Load adds to a tenant the data that a line describes, in the notation of the dialect.
	Load(tenant, line string) error
	// Open returns how many cursors are open.
	Open() int64
}

// API is a dialect over a store.
type API struct {
	http.Handler
	store Store
}

// Serve mounts a dialect. When the test ends, stop, which may be nil, must leave no cursor of the store open.
func Serve(t testing.TB, routes func(api.Mux), s Store, stop func() error) *API {
	t.Helper()
	mux := http.NewServeMux()
	routes(mux)
	t.Cleanup(func() {
		if stop != nil {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if n := s.Open(); n != 0 {
			t.Errorf("%d cursors were not closed", n)
		}
	})
	return &API{mux, s}
}

// MustLoad adds lines to the store.
func (a *API) MustLoad(t testing.TB, tenant string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if err := a.store.Load(tenant, l); err != nil {
			t.Fatal(err)
		}
	}
}

// Get sends a GET request.
func (a *API) Get(path string, params ...string) *httptest.ResponseRecorder {
	return a.Do(http.MethodGet, path, params, nil)
}

// Do sends a request. Parameters are name=value, not escaped; headers are Name: value.
func (a *API) Do(method, path string, params, headers []string) *httptest.ResponseRecorder {
	form := url.Values{}
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		form.Add(name, value)
	}
	if method == http.MethodPost {
		r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return a.Send(r, headers)
	}
	if len(form) > 0 {
		path += "?" + form.Encode()
	}
	return a.Send(httptest.NewRequest(method, path, nil), headers)
}

// Send sends a request with headers, which are Name: value.
func (a *API) Send(r *http.Request, headers []string) *httptest.ResponseRecorder {
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	out := httptest.NewRecorder()
	a.ServeHTTP(out, r)
	return out
}

// Show returns the status and the body of a response.
func Show(r *httptest.ResponseRecorder) string {
	return fmt.Sprintf("%d %s\n", r.Code, r.Body)
}

package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

type fakeCache struct{}

func (fakeCache) Report() any { return map[string]int{"tiers": 3} }

func (fakeCache) WhatIf(form url.Values) (any, error) {
	switch form.Get("ssd") {
	case "":
		return nil, model.ErrTransient
	case "4x":
		return 7, nil
	}
	return nil, fmt.Errorf("%w: ssd", model.ErrInvalid)
}

func (fakeCache) Record(_ *http.Request, w http.ResponseWriter) error {
	_, err := w.Write([]byte("time,key"))
	return err
}

// TestCache: the report is JSON; before the store is open it is refused.
func TestCache(t *testing.T) {
	there := func() Cache { return fakeCache{} }
	for _, c := range []struct {
		path   string
		cache  func() Cache
		status int
		body   string
	}{
		{"", nil, http.StatusServiceUnavailable, "starting"},
		{"", func() Cache { return nil }, http.StatusServiceUnavailable, "starting"},
		{"", there, http.StatusOK, "{\n  \"tiers\": 3\n}\n"},
		{"/what-if", nil, http.StatusServiceUnavailable, "starting"},
		{"/what-if?ssd=4x", there, http.StatusOK, "7\n"},
		{"/what-if?ssd=x", there, http.StatusBadRequest, "invalid: ssd\n"},
		{"/what-if", there, http.StatusServiceUnavailable, ""},
		{"/record", nil, http.StatusServiceUnavailable, "starting"},
		{"/record", there, http.StatusOK, "time,key"},
	} {
		mux := http.NewServeMux()
		New(Options{Gatherer: prometheus.NewRegistry(), Cache: c.cache}).Routes(mux)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/cache"+c.path, nil))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("got %d %q, want %d %q", w.Code, w.Body, c.status, c.body)
		}
		if c.status == http.StatusOK && c.path != "/record" && w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("type %q", w.Header().Get("Content-Type"))
		}
	}
}

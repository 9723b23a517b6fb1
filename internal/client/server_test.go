package client

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// TestFailedRequests: the class of an error says whether a later attempt may succeed, and its text says why.
func TestFailedRequests(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/sub/envelope":
			http.Error(w, `{"status":"error","errorType":"bad_data","error":"no such thing"}`, http.StatusBadRequest)
		case "/sub/busy":
			http.Error(w, "later", http.StatusServiceUnavailable)
		case "/sub/slow":
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Second):
			}
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	s := &Server{URL: srv.URL + "/sub/", Timeout: 100 * time.Millisecond}
	for path, want := range map[string]struct {
		class error
		text  string
	}{
		"envelope": {model.ErrInvalid, "bad_data: no such thing (HTTP 400)"},
		"busy":     {model.ErrTransient, srv.URL + "/sub/busy: HTTP 503: later"},
		"none":     {model.ErrInvalid, "/sub/none: HTTP 404: 404 page not found"},
		"slow":     {model.ErrTransient, "requesting " + srv.URL + "/sub/: no response within 100ms"},
	} {
		if _, err := s.Get(t.Context(), path, url.Values{"a": {"b"}}); !errors.Is(err, want.class) || !strings.HasSuffix(err.Error(), want.text) {
			t.Errorf("%s: %v, want %s", path, err, want.text)
		}
	}
	srv.Close()
	if _, err := s.Get(t.Context(), "gone", nil); !errors.Is(err, model.ErrTransient) || errors.Is(err, model.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// TestRetries: requests are repeated until the server is back, and the body comes each time.
func TestRetries(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") != "up" || r.Header.Get("X-Scope-OrgID") != "t" || r.UserAgent() != "test" {
			http.Error(w, "not the request", http.StatusBadRequest)
		} else if asked.Add(1) < 3 {
			http.Error(w, "later", http.StatusBadGateway)
		}
	}))
	defer srv.Close()
	s := &Server{URL: srv.URL, Header: http.Header{"User-Agent": {"test"}}, Retry: &Retry{Patience: 10 * time.Second}}
	if _, err := s.As("t").PostForm(t.Context(), "query", url.Values{"query": {"up"}}); err != nil || asked.Load() != 3 {
		t.Errorf("%v after %d requests", err, asked.Load())
	}
	if len(s.Header) != 1 || s.Tenant != "" {
		t.Errorf("the server has changed: %+v", s)
	}
}

package graphite

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

func newHTTP(s *store, limits write.Limits, rules Rules) *HTTP {
	sink := write.New(write.Options{Seed: seed, Head: s, Journal: s, Limits: limits, Room: s.Room, Now: func() int64 { return testNow }})
	return NewHTTP(sink, rules, prometheus.NewRegistry())
}

func post(h http.Handler, body string, headers ...string) (status int, text string) {
	r := httptest.NewRequest(http.MethodPost, HTTPPath, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestHTTP(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, "z 1 1700000000\n")
	z.Close()
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		text       string
		stored     int
	}{
		{"lines", "a 1 1700000000\nb;c=d 2 -1\r\n\nlast 3 1700000000", nil, 204, "", 3},
		{"nothing", "", nil, 204, "", 0},
		{"gzip", packed.String(), []string{"Content-Encoding", "gzip"}, 204, "", 1},
		{"an unknown encoding", "a", []string{"Content-Encoding", "br"}, 415, httpSupported, 0},
		{"no gzip", "a 1 1700000000\n", []string{"Content-Encoding", "gzip"}, 400, "gzip", 0},
		{"a bad line", "a 1 1700000000\nbad\n", nil, 400,
			`1 point stored, 1 refused; bad_line: 1, such as expected 3 fields: name, value and time: "bad"`, 1},
		{"a time in milliseconds", "a 1 1700000000000000\n", nil, 400, "0 points stored, 1 refused; time_out_of_range: 1, such as the time is not between", 0},
		{"malformed tags", "a;b 1 1700000000\n", nil, 204, "", 1},
		{"what no sender is told", "a nan 1700000000\nblack 1 1700000000\n", nil, 204, "", 0},
		{"a bad tenant", "a 1 1700000000\n", []string{model.TenantHeader, "a/b"}, 400, "tenant", 0},
	} {
		s := newStore()
		h := newHTTP(s, write.Limits{}, byPath{"black": {"", write.ReasonBlacklisted}})
		status, text := post(h, c.body, c.headers...)
		if status != c.status || !strings.Contains(text, c.text) || s.stored() != c.stored {
			t.Errorf("%s: %d %q, %d stored, want %d %q, %d stored", c.name, status, text, s.stored(), c.status, c.text, c.stored)
		}
	}
}

// TestHTTPInChunks: a body of more points than a chunk holds is stored whole, under its tenant.
func TestHTTPInChunks(t *testing.T) {
	var body strings.Builder
	const n = 2*maxRows + 10
	for i := range n {
		fmt.Fprintf(&body, "m.%d 1 1700000000\n", i)
	}
	s := newStore()
	if status, text := post(newHTTP(s, write.Limits{}, nil), body.String(), model.TenantHeader, "team"); status != 204 || s.stored() != n {
		t.Errorf("%d %q, %d of %d stored", status, text, s.stored(), n)
	}
	if s.Appends != 3 || s.Rows[`team{__name__="m.7"}`] == nil {
		t.Errorf("%d appends, want 3", s.Appends)
	}
}

func TestHTTPFails(t *testing.T) {
	s := newStore()
	s.setFail(fmt.Errorf("%w: the disk is full", model.ErrTransient))
	h := newHTTP(s, write.Limits{}, nil)
	if status, text := post(h, "a 1 1700000000\n"); status != 503 || !strings.Contains(text, "the disk is full") {
		t.Errorf("%d %q, want a 503", status, text)
	}
	h = newHTTP(newStore(), write.Limits{MaxBodyBytes: 10}, nil)
	if status, text := post(h, "a.long.name 1 1700000000\n"); status != 413 {
		t.Errorf("a body beyond the limit: %d %q, want 413", status, text)
	}
	r := httptest.NewRequest(http.MethodGet, HTTPPath, nil)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
}

func FuzzHTTP(f *testing.F) {
	f.Add("a 1 1700000000\nb;c=d nan -1\n")
	f.Add("\xff \r\n\n;= 1 1")
	f.Add("a{b=\"c\"} 1e999 1e99")
	h := newHTTP(newStore(), write.Limits{}, nil)
	f.Fuzz(func(t *testing.T, body string) {
		if status, text := post(h, body); status != 204 && status != 400 {
			t.Errorf("%d %q", status, text)
		}
	})
}

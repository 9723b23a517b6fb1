package lokitest

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/model"
)

//go:embed testdata
var files embed.FS

// Recording is what a Loki said at a time, in Unix seconds: that of the first line.
type Recording struct {
	At       int64      `json:"at"`
	Requests []*Request `json:"requests"`
}

// Request is a request with Loki's response, without statistics.
type Request struct {
	Path   string     `json:"path"`
	Params url.Values `json:"params,omitempty"`
	// Tenant is anonymous if empty. Loki needs it in the request.
	Tenant     string `json:"tenant,omitempty"`
	Categorize bool   `json:"categorize,omitempty"`
	Status     int    `json:"status"`
	Type       string `json:"type"`
	Body       string `json:"body"`
}

func (r *Request) name() string {
	return fmt.Sprintf("%s %s %s %v", r.Path, r.Params.Encode(), r.Tenant, r.Categorize)
}

// Tenants are those that had the lines.
func Tenants() []string { return []string{model.DefaultTenant, "t1", "t2"} }

// Suite is a recording with the lines that Loki had.
type Suite struct {
	// Name is that of a file in testdata.
	Name string
	// Lines returns the lines of each tenant. The first is at a time in Unix seconds.
	Lines func(begin int64) []Line
	// Store returns the reason if the response of the store of a test differs on purpose; nil: none does.
	Store func(r *Request) string
	// different returns the same for every store; empty: it does not differ.
	different func(r *Request) string
	// sort orders what Loki returns in any order.
	sort func(body string) string
}

// Suites returns all suites.
func Suites() []Suite {
	unchanged := func(body string) string { return body }
	return []Suite{
		{"loki.json", storedLines, nil, different, unchanged},
		{"loki_numbers.json", storedLines, nil, different, unchanged},
		{"detected.json", detectedLines, nil, detectedDifference, sortDetected},
	}
}

// Read returns the recording.
func (s *Suite) Read(t testing.TB) *Recording {
	t.Helper()
	text, err := files.ReadFile("testdata/" + s.Name)
	if err != nil {
		t.Fatal(err)
	}
	r := &Recording{}
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// Compare sends the requests of a recording to a handler that has the lines. The responses are those of Loki,
// except where they differ on purpose.
func (s *Suite) Compare(t testing.TB, r *Recording, h http.Handler) {
	t.Helper()
	same := 0
	for _, q := range r.Requests {
		status, contentType, body, err := q.Do("", h)
		if err != nil {
			t.Fatal(err)
		}
		body, want := s.sort(body), s.sort(q.Body)
		equal := status == q.Status && strings.EqualFold(contentType, q.Type) && body == want
		reason := s.different(q)
		if reason == "" && s.Store != nil {
			reason = s.Store(q)
		}
		switch {
		case equal && reason != "":
			t.Errorf("%s: the response is the same, but is listed as different: %s", q.name(), reason)
		case equal:
			same++
		case reason == "":
			t.Errorf("%s: %d %s\n%s", q.name(), status, contentType, cmp.Diff(fmt.Sprintln(q.Status, q.Type, want), fmt.Sprintln(status, contentType, body)))
		}
	}
	if same < len(r.Requests)*3/4 {
		t.Error("most responses differ")
	}
	t.Logf("%d of %d responses are the same", same, len(r.Requests))
}

// Do sends the request to a server, or to the handler if server is empty.
func (r *Request) Do(server string, h http.Handler) (status int, contentType, body string, err error) {
	request, err := http.NewRequest(http.MethodGet, server+r.Path+"?"+r.Params.Encode(), nil)
	if err != nil {
		return 0, "", "", err
	}
	if r.Tenant == "" {
		r.Tenant = model.DefaultTenant
	}
	request.Header.Set("X-Scope-OrgID", r.Tenant)
	if r.Categorize {
		request.Header.Set("X-Loki-Response-Encoding-Flags", "categorize-labels")
	}
	if h != nil {
		out := httptest.NewRecorder()
		h.ServeHTTP(out, request)
		return out.Code, out.Header().Get("Content-Type"), withoutStats(out.Body.String()), nil
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header.Get("Content-Type"), withoutStats(string(text)), err
}

// withoutStats removes the statistics from a response and sorts its unordered parts. Text stays as it is.
func withoutStats(body string) string {
	var v map[string]any
	if json.Unmarshal([]byte(body), &v) != nil {
		return body
	}
	delete(v, "stats")
	sorted := func(list any) {
		if l, ok := list.([]any); ok {
			slices.SortFunc(l, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	if data, ok := v["data"].(map[string]any); ok {
		delete(data, "stats")
		sorted(data["result"])
	}
	sorted(v["data"])
	sorted(v["streams"])
	out, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return string(out)
}

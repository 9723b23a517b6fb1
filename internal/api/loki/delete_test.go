package loki

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// fakeDeletions note what they are asked for.
type fakeDeletions struct {
	asked []string
	err   error
	list  []DeleteRequest
}

func (f *fakeDeletions) Delete(_ context.Context, tenant, query string, start, end int64) error {
	f.asked = append(f.asked, fmt.Sprint("delete ", tenant, " ", query, " ", start, " ", end))
	return f.err
}

func (f *fakeDeletions) List(context.Context, string) ([]DeleteRequest, error) { return f.list, nil }

func (f *fakeDeletions) Cancel(_ context.Context, tenant, id string, force bool) error {
	f.asked = append(f.asked, fmt.Sprint("cancel ", tenant, " ", id, " ", force))
	return f.err
}

func (f *fakeDeletions) CacheGeneration() string { return "7" }

// TestDelete checks the requests for deletions: what they ask for, and Loki's texts. The clock is at 1000 s.
func TestDelete(t *testing.T) {
	const path = "/loki/api/v1/delete"
	second := int64(time.Second)
	for _, test := range []struct {
		method string
		params []string
		header string
		err    error
		want   string // status, text, and what was asked for
	}{
		{http.MethodPost, []string{"query={a=\"b\"}", "start=0000000100", "end=0000000200"}, "", nil, fmt.Sprint(`204  delete anonymous {a="b"} `, 100*second, " ", 200*second)},
		{http.MethodPut, []string{"query={a=\"b\"} |= \"x\" | json | level=\"info\"", "start=1970-01-01T00:00:01Z"}, "X-Scope-OrgID: t", nil, fmt.Sprint(`204  delete t {a="b"} |= "x" | json | level="info" `, second, " ", 1000*second)},
		{http.MethodPost, nil, "", nil, "400 query not set"},
		{http.MethodPost, []string{"query={a=\"b\"}"}, "", nil, "400 start time not set"},
		{http.MethodPost, []string{"query={a=\"b\"}", "start=1"}, "", nil, "400 invalid start time: require unix seconds or RFC3339 format"},
		{http.MethodPost, []string{"query={a=\"b\"}", "start=0000000001", "end=x"}, "", nil, "400 invalid end time: require unix seconds or RFC3339 format"},
		{http.MethodPost, []string{"query={a=\"b\"}", "start=0000000001", "end=0000002000"}, "", nil, "400 deletes in the future are not allowed"},
		{http.MethodPost, []string{"query={a=\"b\"}", "start=0000000009", "end=0000000008"}, "", nil, "400 start time can't be greater than end time"},
		{http.MethodPost, []string{"query={a=\"b\"} |= \"x\"", "start=0000000008", "end=0000000008"}, "", nil, "400 difference between start time and end time must be at least one second"},
		{http.MethodPost, []string{"query={a=\"b\"} |= \"x\"", "start=0000000001", "end=0000000009", "max_interval=1x"}, "", nil, "400 invalid max_interval: valid time units are 's', 'm', 'h'"},
		{http.MethodPost, []string{"query={a=\"b\"} |= \"x\"", "start=0000000001", "end=0000000009", "max_interval=1h"}, "", nil, "400 max_interval can't be greater than the interval to be deleted (8s)"},
		{http.MethodPost, []string{"query={a=\"b\"", "start=0000000001"}, "", nil, "400 invalid query expression: parse error"},
		{http.MethodPost, []string{"query=rate({a=\"b\"}[1m])", "start=0000000001"}, "", nil, "400 invalid query expression: only log selector is supported"},
		{http.MethodPost, []string{"query={a=\"b\"} | line_format \"x\"", "start=0000000001"}, "", nil, "400 invalid query expression: line_format and label_format"},
		{http.MethodPost, []string{"query={a=\"b\"}", "start=0000000001"}, "X-Scope-OrgID: a|b", nil, "400 multiple org IDs present"},
		{http.MethodPost, []string{"query={a=\"b\"}", "start=0000000001"}, "", &model.LimitError{Limit: "limits.deletions", Text: "too many"}, "503 "},
		{http.MethodDelete, []string{"request_id=r"}, "", nil, "204  cancel anonymous r false"},
		{http.MethodDelete, []string{"request_id=r", "force=true"}, "", ErrDeletionBegun, "400 deletion of request which is in process or already processed is not allowed"},
		{http.MethodDelete, []string{"request_id=r"}, "", ErrNoDeletion, "404 could not find delete request with given id"},
		{http.MethodPatch, nil, "", nil, "405 "},
	} {
		f := &fakeDeletions{err: test.err}
		w := newWorld(t, func(o *Options) { o.Deletions = f })
		var headers []string
		if test.header != "" {
			headers = append(headers, test.header)
		}
		res := w.Do(test.method, path, test.params, headers)
		got := fmt.Sprint(res.Code, " ", strings.TrimSpace(res.Body.String()))
		if res.Code == http.StatusNoContent {
			got += " " + strings.Join(f.asked, ", ")
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s %v:\n got %s\nwant %s", test.method, test.params, got, test.want)
		}
	}
}

// TestListDeletions pins the JSON of lists.
func TestListDeletions(t *testing.T) {
	f := &fakeDeletions{list: []DeleteRequest{
		{ID: "a", Query: `{a="b"}`, Start: 1_700_000_000_000_000_000, End: 1_700_000_000_500_000_000, Created: 1_700_000_001_000_000_001},
		{ID: "b", Query: `{a="b"} |= "x"`, Done: 1, Total: 3}, {ID: "c", Processed: true},
	}}
	w := newWorld(t, func(o *Options) { o.Deletions = f })
	res := w.Get("/loki/api/v1/delete")
	want := `[{"request_id":"a","start_time":1700000000,"end_time":1700000000.5,"query":"{a=\"b\"}","status":"received","created_at":1700000001},` +
		`{"request_id":"b","start_time":0,"end_time":0,"query":"{a=\"b\"} |= \"x\"","status":"33% Complete","created_at":0},` +
		`{"request_id":"c","start_time":0,"end_time":0,"query":"","status":"processed","created_at":0}]` + "\n"
	if res.Body.String() != want || res.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%s: %s", res.Header().Get("Content-Type"), res.Body)
	}
	if f.list = nil; w.Get("/loki/api/v1/delete").Body.String() != "[]\n" {
		t.Error("an empty list is not []")
	}
	if res := w.Get("/loki/api/v1/cache/generation_numbers"); res.Body.String() != "\"7\"\n" {
		t.Error(res.Body)
	}
	if res := newWorld(t, nil).Get("/loki/api/v1/delete"); res.Code != http.StatusForbidden || !strings.Contains(res.Body.String(), textNoDeletion) {
		t.Error(res.Code, res.Body)
	}
}

package app

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	graphiteapi "github.com/shaledb/shale/internal/api/graphite"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/events"
	"github.com/shaledb/shale/internal/read/logql"
	eventwrite "github.com/shaledb/shale/internal/write/graphite/events"
	"github.com/shaledb/shale/internal/write/logs"
)

// eventAPI returns the endpoints of events over an engine.
func eventAPI(s *setup) http.Handler {
	mux := http.NewServeMux()
	write := eventwrite.New(eventwrite.Options{Sink: s.Path(), Rules: logs.DefaultRules()})
	for _, path := range eventwrite.Paths() {
		mux.Handle(path, write)
	}
	now := func() time.Time { return time.Unix(0, s.now).UTC() }
	reader := &events.Reader{Lines: logql.New(logql.Options{Read: s.Querier(), Results: s.Results(), Now: now})}
	o := api.Options{Now: now, Registerer: prometheus.NewRegistry()}
	engine := graphite.New(graphite.Options{Read: s.Querier(), Events: eventTimes(reader)})
	graphiteapi.New(graphiteapi.Options{Options: o, Events: reader, Render: engine}).Routes(mux)
	return mux
}

// recordedEvent is a request about events with the response of graphite-web.
type recordedEvent struct {
	Method, Path, Query, Body string
	Status                    int
	Answer                    string
}

func askEvents(h http.Handler, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// withoutIDs reads the events of a response, whose ids graphite-web numbers from 1.
func withoutIDs(t *testing.T, text string) any {
	t.Helper()
	text = strings.TrimSuffix(strings.TrimPrefix(text, "draw("), ")")
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			delete(m, "id")
		}
	}
	return v
}

// TestEventsRecorded repeats requests to graphite-web 1.1.10 with its own table of events, which
// test/graphite-oracle/python/events_oracle.py has recorded. The events are asked for in buffers, in a part
// and in the bucket.
func TestEventsRecorded(t *testing.T) {
	f, err := os.Open("testdata/events.jsonl")
	must(t, err)
	defer f.Close()
	s := newSetup(t, nil)
	s.now = 1700000500e9
	h := eventAPI(s)
	var asked []recordedEvent
	check := func(q *recordedEvent) {
		t.Helper()
		status, body := askEvents(h, q.Method, q.Path+"?"+q.Query, q.Body)
		want := q.Status
		if want == http.StatusInternalServerError {
			want = http.StatusBadRequest
		}
		switch {
		case status != want:
			t.Errorf("%s %s %s %s: %d %s, want %d %s", q.Method, q.Path, q.Query, q.Body, status, body, want, q.Answer)
		case status == http.StatusOK:
			if got, want := withoutIDs(t, body), withoutIDs(t, q.Answer); !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s: %v\nwant %v", q.Path, q.Query, got, want)
			}
		}
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var q recordedEvent
		must(t, json.Unmarshal(lines.Bytes(), &q))
		if q.Method == http.MethodGet {
			asked = append(asked, q)
		} else {
			check(&q)
		}
	}
	if len(asked) < 20 {
		t.Fatalf("%d questions were recorded", len(asked))
	}
	for _, move := range []func() error{func() error { return nil }, s.Flush, s.Ship} {
		must(t, move())
		for i := range asked {
			check(&asked[i])
		}
	}
	must(t, s.Close())
	s.Engine, err = OpenEngine(context.Background(), s.o)
	must(t, err)
	h = eventAPI(s)
	for i := range asked {
		check(&asked[i])
	}
	must(t, s.Close())
}

// TestEvents: what is not in the recorded requests.
func TestEvents(t *testing.T) {
	s := newSetup(t, nil)
	s.now = 1700000500e9
	h := eventAPI(s)
	for _, body := range []string{
		`{"what":"now","tags":["a"]}`, `{"what":"then","tags":["a","b"],"when":1700000100}`, `{"what":"then","tags":["a","b"],"when":1700000100}`,
		`{"what":"edge","when":1700000110,"tags":"b"}`,
	} {
		if status, text := askEvents(h, "POST", "/graphite/events/", body); status != 200 || text != "" {
			t.Fatalf("%s: %d %s", body, status, text)
		}
	}
	for _, c := range []struct {
		path   string
		status int
		body   string
	}{
		{"/events/get_data?from=-1min", 200, `[{"when": 1700000500, "what": "now", "data": "", "tags": ["a"], "id": `},
		{"/events/get_data?tags=a+nosuch", 200, "[]"},
		{"/events/get_data?until=5min", 400, "for param until"},
		{"/events/get_data?jsonp=a(1)", 400, "jsonp"},
		{"/events/12", 404, "Event matching query does not exist"},
		{"/events/x", 404, "number"},
		{"/events/9223372036854775807", 404, "does not exist"},
		{"/render?target=events(%22a%22)&from=1700000099&until=1700000111&format=raw", 200,
			`events("a"),1700000099,1700000111,1|None,2.0,None,None,None,None,None,None,None,None,None,None` + "\n"},
		{"/render?target=events(*)&from=1700000099&until=1700000111&format=raw", 400, ""},
		{"/render?target=events('*')&from=1700000099&until=1700000111&format=raw", 200,
			`events("*"),1700000099,1700000111,1|None,2.0,None,None,None,None,None,None,None,None,None,1.0` + "\n"},
	} {
		status, body := askEvents(h, "GET", c.path, "")
		if status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%s: %d %s, want %d %s", c.path, status, body, c.status, c.body)
		}
	}
	var all []struct{ ID int64 }
	_, body := askEvents(h, "GET", "/events/get_data?tags=b", "")
	must(t, json.Unmarshal([]byte(body), &all))
	if len(all) != 3 || all[0].ID == all[1].ID {
		t.Fatalf("events: %s", body)
	}
	for _, e := range all {
		path := "/graphite/events/" + jsonOf(e.ID)
		if status, body := askEvents(h, "GET", path, ""); status != 200 || !strings.Contains(body, jsonOf(e.ID)) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, c := range []struct {
		method, body string
		status       int
	}{{"GET", "", 405}, {"PUT", "{}", 405}, {"POST", strings.Repeat(" ", 600<<10) + `{"what":"a"}`, 200}, {"POST", `{"what":"` + strings.Repeat("x", 300<<10) + `"}`, 400}} {
		if status, text := askEvents(h, c.method, "/events", c.body); status != c.status {
			t.Errorf("%s of %d bytes: %d %s, want %d", c.method, len(c.body), status, text, c.status)
		}
	}
	// All events are there, that without tags included.
	if status, body := askEvents(h, "GET", "/events/get_data?until=now", ""); status != 200 || strings.Count(body, "what") != 5 {
		t.Errorf("%d %s", status, body)
	}
	must(t, s.Close())
}

func jsonOf(n int64) string {
	text, _ := json.Marshal(n)
	return string(text)
}

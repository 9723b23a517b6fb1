package loki

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/readtest"
)

// stubbed is an engine whose results of queries for lines come from a test.
type stubbed struct {
	Engine
	lines func(ctx context.Context, q *logql.Query) (*logql.Lines, error)
}

func (s *stubbed) Lines(ctx context.Context, q *logql.Query) (*logql.Lines, error) {
	return s.lines(ctx, q)
}

// stub replaces the results of queries for lines.
func stub(lines func(context.Context, *logql.Query) (*logql.Lines, error)) func(*Options) {
	return func(o *Options) { o.Engine = &stubbed{o.Engine, lines} }
}

const queryPath = current + "query_range"

func TestStatuses(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		text   string
	}{
		{fmt.Errorf("%w: no such stream", model.ErrInvalid), 400, "no such stream"},
		{fmt.Errorf("%w: too much (query.max-bytes)", model.ErrLimit), 400, "limit exceeded: too much (query.max-bytes)"},
		{fmt.Errorf("select: %w: bucket", model.ErrTransient), 503, "select: temporarily unavailable: bucket"},
		{fmt.Errorf("%w: head", model.ErrClosed), 503, "closed: head"},
		{fmt.Errorf("%w: page", model.ErrCorrupt), 500, "corrupt: page"},
		{fmt.Errorf("%w: block b: %w", model.ErrCorrupt, model.ErrInvalid), 500, "corrupt: block b: invalid"},
		{fmt.Errorf("engine: %w", context.DeadlineExceeded), 504, textTimeout + " (query.timeout)"},
		{fmt.Errorf("engine: %w", context.Canceled), 503, "engine: context canceled"}, // the client is still there
		{fmt.Errorf("what is this"), 500, "what is this"},
		{fmt.Errorf("%s", strings.Repeat("ä", 8000)), 500, strings.Repeat("ä", api.MaxErrorBytes/2) + " ..."},
	} {
		w := newWorld(t, stub(func(context.Context, *logql.Query) (*logql.Lines, error) { return nil, c.err }))
		r := w.Get(queryPath, `query={app="a"}`)
		if r.Code != c.status || r.Body.String() != c.text {
			t.Errorf("%v: %d %.100s; want %d %.100s", c.err, r.Code, r.Body, c.status, c.text)
		}
		if again := r.Header().Get("Retry-After"); (again != "") != (c.status == 503) {
			t.Errorf("%v: Retry-After %q", c.err, again)
		}
	}
}

func TestClientLeaves(t *testing.T) {
	w := newWorld(t, stub(func(ctx context.Context, _ *logql.Query) (*logql.Lines, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := httptest.NewRecorder()
	w.ServeHTTP(r, httptest.NewRequestWithContext(ctx, "GET", queryPath+"?query="+`{app="a"}`, nil))
	if r.Code != api.StatusClientClosed || r.Body.String() != textCanceled {
		t.Error(apitest.Show(r))
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) {
			stub(func(ctx context.Context, _ *logql.Query) (*logql.Lines, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})(o)
			o.Limits.Timeout = time.Second
		})
		if r := w.Get(queryPath, `query={app="a"}`); r.Code != http.StatusGatewayTimeout || !strings.Contains(r.Body.String(), "query.timeout") {
			t.Error(apitest.Show(r))
		}
	})
}

func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		slots := api.NewSlots(1)
		w := newWorld(t, func(o *Options) {
			stub(func(context.Context, *logql.Query) (*logql.Lines, error) {
				<-leave
				return new(logql.Lines), nil
			})(o)
			o.Slots, o.Limits.MaxWait = slots, time.Second
		})
		var done sync.WaitGroup
		done.Go(func() {
			if r := w.Get(queryPath, `query={app="a"}`); r.Code != http.StatusOK {
				t.Error(apitest.Show(r))
			}
		})
		synctest.Wait()
		r := w.Get(current + "labels")
		if want := "too many outstanding requests: temporarily unavailable: 1 query running, and none ended within 1s (query.max-concurrent); try again later"; r.Code != http.StatusTooManyRequests || r.Body.String() != want || r.Header().Get("Retry-After") == "" {
			t.Error(apitest.Show(r))
		}
		// What needs no store needs no turn.
		if r := w.Get(current + "status/buildinfo"); r.Code != http.StatusOK {
			t.Error(apitest.Show(r))
		}
		close(leave)
		done.Wait()
		if r := w.Get(current + "labels"); r.Code != http.StatusOK {
			t.Error(apitest.Show(r))
		}
	})
}

func TestPanic(t *testing.T) {
	w := newWorld(t, stub(func(context.Context, *logql.Query) (*logql.Lines, error) { panic("a bug") }))
	if r := w.Get(queryPath, `query={app="a"}`); r.Code != 500 || r.Body.String() != "unexpected error: a bug" {
		t.Error(apitest.Show(r))
	}
	if r := w.Get(current + "labels"); r.Code != http.StatusOK {
		t.Error(apitest.Show(r))
	}
}

// A long response is sent in pieces, compressed if the client accepts that, with the same content.
func TestLongAnswer(t *testing.T) {
	long := &logql.Lines{}
	for i := range 20 {
		s := logql.Stream{Labels: model.LabelsOf("app", fmt.Sprint("a", i))}
		for j := range 200 {
			s.Entries = append(s.Entries, logql.Entry{Time: int64(j), Line: []byte(strings.Repeat("x", j))})
		}
		long.Streams = append(long.Streams, s)
	}
	w := newWorld(t, stub(func(context.Context, *logql.Query) (*logql.Lines, error) { return long, nil }))
	server := httptest.NewServer(w)
	defer server.Close()
	for _, compressed := range []bool{false, true} {
		r, _ := http.NewRequest("GET", server.URL+queryPath+`?query={app="a"}`, nil)
		if compressed {
			r.Header.Set("Accept-Encoding", "gzip")
		}
		response, err := (&http.Transport{DisableCompression: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var body io.Reader = response.Body
		if encoding := response.Header.Get("Content-Encoding"); (encoding == "gzip") != compressed {
			t.Errorf("encoding %q", encoding)
		} else if compressed {
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		var got struct {
			Data struct {
				Result []struct {
					Stream map[string]string
					Values [][2]string
				}
			}
		}
		if err := json.NewDecoder(body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if len(got.Data.Result) != 20 || len(got.Data.Result[19].Values) != 200 || got.Data.Result[19].Stream["app"] != "a19" || len(got.Data.Result[7].Values[150][1]) != 150 {
			t.Errorf("%d streams", len(got.Data.Result))
		}
		response.Body.Close()
	}
}

// A page of another origin gets access only if the origin is allowed.
func TestOrigins(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.CORSOrigin = regexp.MustCompile(`https?://good`) })
	for origin, want := range map[string]string{"https://good": "https://good", "https://good.evil": "", "": ""} {
		r := w.Do("GET", current+"labels", nil, []string{"Origin: " + origin})
		if got := r.Header().Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("%q: %q", origin, got)
		}
		if r := w.Do("GET", current+"tail", []string{`query={app="a"}`}, []string{"Origin: " + origin, "Upgrade: websocket"}); (r.Code == http.StatusForbidden) != (origin == "https://good.evil") {
			t.Errorf("%q: %s", origin, apitest.Show(r))
		}
	}
}

// A store that fails gives errors, and never a part of a result.
func TestFailingStore(t *testing.T) {
	broken := fmt.Errorf("%w: disk", model.ErrTransient)
	for _, f := range []readtest.Failure{{Select: broken}, {Next: broken}, {Rows: broken}, {Labels: broken}, {Text: broken}} {
		w := newWorld(t, nil)
		w.MustLoad(t, "anonymous", `{app="a"} 990 x`, `{app="b"} 991 y`)
		w.memory.Fail(f)
		failed := false
		for _, path := range []string{queryPath, legacy + "query", current + "labels", current + "label/app/values", current + "series", current + "index/stats"} {
			r := w.Get(path, `query={app=~".+"}`)
			if failed = failed || r.Code == 503; r.Code != 200 && r.Code != 503 {
				t.Errorf("%+v %s: %s", f, path, apitest.Show(r))
			}
		}
		if !failed {
			t.Errorf("%+v: nothing fails", f)
		}
	}
}

func TestMetrics(t *testing.T) {
	w := newWorld(t, nil)
	w.Get(queryPath, `query={app="a"}`)
	w.Get(queryPath, `query={app="a"}`)
	w.Get(queryPath)
	w.Get(legacy+"query", `query={app="a"}`)
	w.Get(current + "label/a/values")
	w.Get(current + "label/b/values")
	want := `
# HELP shale_api_loki_requests_total Requests to the Loki API, by handler and HTTP status; 101 is a tail connection that has ended.
# TYPE shale_api_loki_requests_total counter
shale_api_loki_requests_total{code="200",handler="label_values"} 2
shale_api_loki_requests_total{code="200",handler="query_range"} 3
shale_api_loki_requests_total{code="400",handler="query_range"} 1
`
	if err := testutil.GatherAndCompare(w.reg, strings.NewReader(want), "shale_api_loki_requests_total"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(w.reg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

package loki

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
)

// scripted is an engine whose lines are those of a test.
type scripted struct {
	Engine
	tail func(ctx context.Context, q *logql.TailQuery, emit func(*logql.Batch) error) error
}

func (s *scripted) Tail(ctx context.Context, q *logql.TailQuery, emit func(*logql.Batch) error) error {
	return s.tail(ctx, q, emit)
}

// silent follows nothing until the context ends.
func silent(ctx context.Context, _ *logql.TailQuery, _ func(*logql.Batch) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// tailServer serves the API over an engine that follows as the test says.
func tailServer(t *testing.T, follow func(context.Context, *logql.TailQuery, func(*logql.Batch) error) error, change func(*Options)) (*Handler, *httptest.Server) {
	t.Helper()
	o := Options{
		Engine:  &scripted{logql.New(logql.Options{}), follow},
		Options: api.Options{Registerer: prometheus.NewRegistry(), Now: func() time.Time { return time.Unix(0, at) }},
	}
	if change != nil {
		change(&o)
	}
	h := New(o)
	mux := http.NewServeMux()
	h.Routes(mux)
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		h.Close()
		s.Close()
	})
	return h, s
}

// guard bounds waits, so that a failing test does not hang.
const guard = time.Minute

// dial opens a websocket. Headers are Name: value.
func dial(t *testing.T, s *httptest.Server, path, params string, headers ...string) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	h := http.Header{}
	for _, x := range headers {
		name, value, _ := strings.Cut(x, ": ")
		h.Set(name, value)
	}
	ctx, cancel := context.WithTimeout(context.Background(), guard)
	defer cancel()
	conn, response, err := websocket.Dial(ctx, s.URL+path+"?"+params, &websocket.DialOptions{HTTPHeader: h})
	if err == nil {
		t.Cleanup(func() { conn.CloseNow() })
	}
	return conn, response, err
}

func mustDial(t *testing.T, s *httptest.Server, path, params string, headers ...string) *websocket.Conn {
	t.Helper()
	conn, _, err := dial(t, s, path, params, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// next returns the next frame, or the error that ended the connection.
func next(t *testing.T, conn *websocket.Conn) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), guard)
	defer cancel()
	_, frame, err := conn.Read(ctx)
	return string(frame), err
}

var selector = "query=" + url.QueryEscape(`{app="x"}`)

func TestTailFrames(t *testing.T) {
	a, b := model.LabelsOf("app", "x"), model.LabelsOf("app", "x", "host", `"é<`)
	batches := []*logql.Batch{
		{Streams: []logql.Stream{
			{Labels: a, Entries: []logql.Entry{{Time: 1, Line: []byte("one")}, {Time: 2, Line: []byte("two\n\x00\xff<")}}},
			{Labels: b, Entries: []logql.Entry{{Time: 3, Line: nil, Metadata: model.LabelsOf("trace", "t"), Parsed: model.LabelsOf("level", "info")}}},
		}},
		{
			Streams: []logql.Stream{{Labels: a, Entries: []logql.Entry{{Time: 1_700_000_000_000_000_001, Line: []byte("late")}}}},
			Dropped: []logql.Dropped{{Time: 4, Labels: a}, {Time: 5, Labels: b}},
		},
		{Dropped: []logql.Dropped{{Time: 6, Labels: a}}},
		{Streams: []logql.Stream{
			{Labels: a, Entries: []logql.Entry{{Time: 7, Line: []byte("first")}, {Time: 9, Line: []byte("third")}, {Time: 9, Line: []byte("fourth")}}},
			{Labels: b, Entries: []logql.Entry{{Time: 8, Line: []byte("second")}}},
		}},
		{},
	}
	follow := func(ctx context.Context, _ *logql.TailQuery, emit func(*logql.Batch) error) error {
		for _, b := range batches {
			if err := emit(b); err != nil {
				return err
			}
		}
		return silent(ctx, nil, nil)
	}
	_, s := tailServer(t, follow, nil)
	for _, c := range []struct {
		path, header string
		want         []string
	}{
		{current + "tail", "X: y", []string{
			`{"streams":[{"stream":{"app":"x"},"values":[["1","one"],["2","two\n\u0000\ufffd<"]]},{"stream":{"app":"x","host":"\"é<"},"values":[["3",""]]}]}`,
			`{"streams":[{"stream":{"app":"x"},"values":[["1700000000000000001","late"]]}],"dropped_entries":[{"timestamp":"4","labels":{"app":"x"}},{"timestamp":"5","labels":{"app":"x","host":"\"é<"}}]}`,
			`{"streams":[],"dropped_entries":[{"timestamp":"6","labels":{"app":"x"}}]}`,
			`{"streams":[{"stream":{"app":"x"},"values":[["7","first"]]},{"stream":{"app":"x","host":"\"é<"},"values":[["8","second"]]},{"stream":{"app":"x"},"values":[["9","third"],["9","fourth"]]}]}`,
		}},
		{current + "tail", "X-Loki-Response-Encoding-Flags: categorize-labels", []string{
			`{"streams":[{"stream":{"app":"x"},"values":[["1","one",{}],["2","two\n\u0000\ufffd<",{}]]},{"stream":{"app":"x","host":"\"é<"},"values":[["3","",{"structuredMetadata":{"trace":"t"},"parsed":{"level":"info"}}]]}],"encodingFlags":["categorize-labels"]}`,
		}},
		{legacy + "tail", "X: y", []string{
			`{"streams":[{"labels":"{app=\"x\"}","entries":[{"ts":"1970-01-01T00:00:00.000000001Z","line":"one"},{"ts":"1970-01-01T00:00:00.000000002Z","line":"two\n\u0000\ufffd<"}]},{"labels":"{app=\"x\", host=\"\\\"é<\"}","entries":[{"ts":"1970-01-01T00:00:00.000000003Z","line":"","parsed":{"level":"info"}}]}],"dropped_entries":null}`,
			`{"streams":[{"labels":"{app=\"x\"}","entries":[{"ts":"2023-11-14T22:13:20.000000001Z","line":"late"}]}],"dropped_entries":[{"Timestamp":"1970-01-01T00:00:00.000000004Z","Labels":"{app=\"x\"}"},{"Timestamp":"1970-01-01T00:00:00.000000005Z","Labels":"{app=\"x\", host=\"\\\"é<\"}"}]}`,
		}},
	} {
		conn := mustDial(t, s, c.path, selector, c.header)
		for i, want := range c.want {
			if got, err := next(t, conn); err != nil || got != want {
				t.Errorf("%s %s, frame %d: %v\n%s\nwant\n%s", c.path, c.header, i, err, got, want)
			}
		}
		conn.Close(websocket.StatusNormalClosure, "")
	}
}

func prepared(text string) *logql.Prepared {
	p, err := logql.Prepare(text)
	if err != nil {
		panic(err)
	}
	return p
}

func TestTailQuery(t *testing.T) {
	queries := make(chan logql.TailQuery, 1)
	_, s := tailServer(t, func(ctx context.Context, q *logql.TailQuery, _ func(*logql.Batch) error) error {
		queries <- *q
		return silent(ctx, nil, nil)
	}, nil)
	for params, want := range map[string]logql.TailQuery{
		selector: {Tenant: "anonymous", Prepared: prepared(`{app="x"}`), Start: at - 3600e9, Limit: 100},
		selector + "&start=5&limit=7&delay_for=5&end=9":  {Tenant: "anonymous", Prepared: prepared(`{app="x"}`), Start: 5e9, Limit: 7, Delay: 5e9},
		selector + "&start=5&limit=6000":                 {Tenant: "anonymous", Prepared: prepared(`{app="x"}`), Start: 5e9, Limit: 6000},
		selector + "&regexp=" + url.QueryEscape(`a"b\d`): {Tenant: "anonymous", Prepared: prepared(`{app="x"} |~ "a\"b\\d"`), Start: at - 3600e9, Limit: 100},
	} {
		conn := mustDial(t, s, current+"tail", params)
		got := <-queries
		if got.Past == nil {
			t.Error("the lines of the past are not bounded")
		}
		got.Quota, got.Cost, got.Past = nil, nil, nil
		if got.Prepared.String() != want.Prepared.String() {
			t.Errorf("%s: %s; want %s", params, got.Prepared, want.Prepared)
		}
		if got.Prepared = want.Prepared; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v; want %+v", params, got, want)
		}
		conn.Close(websocket.StatusNormalClosure, "")
	}
}

func TestTailRefusals(t *testing.T) {
	_, s := tailServer(t, silent, nil)
	for _, c := range []struct {
		params, header string
		status         int
		want           string
	}{
		{"", "X: y", 400, "parse error : syntax error: unexpected $end"},
		{"query={}", "X: y", 400, `parse error : queries require at least one regexp or equality matcher that does not have an empty-compatible value. For instance, app=~".*" does not meet this requirement, but app=~".+" will`},
		{"query=" + url.QueryEscape(`rate({a="b"}[1m])`), "X: y", 400, "only log selector is supported"},
		{selector + "&delay_for=6", "X: y", 400, "delay_for can't be greater than 5"},
		{selector + "&delay_for=-1", "X: y", 400, "delay_for value -1 is out of range [0, 5]"},
		{selector + "&delay_for=x", "X: y", 400, `strconv.Atoi: parsing "x": invalid syntax`},
		{selector + "&limit=0", "X: y", 400, "limit must be a positive value"},
		{selector + "&start=x", "X: y", 400, `could not parse 'start' parameter: strconv.ParseInt: parsing "x": invalid syntax`},
		{selector, "X-Scope-OrgID: a|b", 400, "multiple org IDs present"},
		{selector, "X-Scope-OrgID: a/b", 400, `tenant ID "a/b" contains the character '/'; letters, digits and !-_.*'() are allowed`},
	} {
		_, response, err := dial(t, s, current+"tail", c.params, c.header)
		if err == nil {
			t.Errorf("%s: a connection", c.params)
			continue
		}
		body, _ := io.ReadAll(response.Body)
		if response.StatusCode != c.status || string(body) != c.want {
			t.Errorf("%s %s: %d %s; want %s", c.params, c.header, response.StatusCode, body, c.want)
		}
	}
	response, err := http.Get(s.URL + current + "tail?" + selector)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != 400 || !strings.Contains(string(body), "websocket") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

func TestTailsOfATenant(t *testing.T) {
	_, s := tailServer(t, silent, func(o *Options) { o.MaxTails = 2 })
	first := mustDial(t, s, current+"tail", selector)
	mustDial(t, s, current+"tail", selector)
	_, response, err := dial(t, s, current+"tail", selector)
	if err == nil {
		t.Fatal("a third connection")
	}
	body, _ := io.ReadAll(response.Body)
	if want := "max concurrent tail requests limit exceeded, count > limit (3 > 2)"; response.StatusCode != 400 || string(body) != want {
		t.Errorf("%d %s; want %s", response.StatusCode, body, want)
	}
	mustDial(t, s, current+"tail", selector, "X-Scope-OrgID: other")
	first.Close(websocket.StatusNormalClosure, "")
	// The place is free once the server has noticed.
	for range 1000 {
		if _, _, err = dial(t, s, current+"tail", selector); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error(err)
}

// What ends a connection is said in the close frame.
func TestTailEnds(t *testing.T) {
	for name, c := range map[string]struct {
		follow func(context.Context, *logql.TailQuery, func(*logql.Batch) error) error
		time   time.Duration
		want   string
	}{
		"time":    {silent, time.Millisecond, "reached tail max duration limit"},
		"failure": {func(context.Context, *logql.TailQuery, func(*logql.Batch) error) error { return errors.New("no disk") }, 0, "no disk"},
		"long": {func(context.Context, *logql.TailQuery, func(*logql.Batch) error) error {
			return errors.New(strings.Repeat("é", 100))
		}, 0, strings.Repeat("é", 61)},
		"end":   {func(context.Context, *logql.TailQuery, func(*logql.Batch) error) error { return nil }, 0, "the lines ended"},
		"panic": {func(context.Context, *logql.TailQuery, func(*logql.Batch) error) error { panic("a bug") }, 0, "unexpected error: a bug"},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := tailServer(t, c.follow, func(o *Options) { o.MaxTailTime = c.time })
			_, err := next(t, mustDial(t, s, current+"tail", selector))
			var closed websocket.CloseError
			if !errors.As(err, &closed) || closed.Code != websocket.StatusInternalError || closed.Reason != c.want {
				t.Errorf("%v; want %s", err, c.want)
			}
		})
	}
}

// A server that ends cuts its connections, takes no new ones, and waits for all that ran.
func TestTailShutdown(t *testing.T) {
	var mu sync.Mutex
	ended := 0
	h, s := tailServer(t, func(ctx context.Context, _ *logql.TailQuery, _ func(*logql.Batch) error) error {
		<-ctx.Done()
		mu.Lock()
		defer mu.Unlock()
		ended++
		return ctx.Err()
	}, nil)
	var conns []*websocket.Conn
	for i := range 5 {
		conns = append(conns, mustDial(t, s, current+"tail", selector, fmt.Sprintf("X-Scope-OrgID: t%d", i)))
	}
	h.Close()
	mu.Lock()
	if ended != 5 {
		t.Errorf("%d of 5 have ended", ended)
	}
	mu.Unlock()
	for _, c := range conns {
		if _, err := next(t, c); err == nil || websocket.CloseStatus(err) != -1 {
			t.Errorf("%v; want a connection that was cut", err)
		}
	}
	if _, response, err := dial(t, s, current+"tail", selector); err == nil || response.StatusCode != 503 {
		t.Errorf("a new connection: %v", err)
	}
}

// A client that does not read delays only its own lines. When it leaves, the query ends.
func TestTailSlowClient(t *testing.T) {
	released := make(chan struct{})
	pool := &model.QueryPool{MaxBytes: 1 << 30}
	_, s := tailServer(t, func(ctx context.Context, _ *logql.TailQuery, emit func(*logql.Batch) error) error {
		defer close(released)
		line := make([]byte, 256<<10)
		for {
			if err := emit(&logql.Batch{Streams: []logql.Stream{{Labels: model.LabelsOf("app", "x"), Entries: []logql.Entry{
				{Line: line}, {Line: line}, {Line: line}, {Line: line}, {Line: line}, {Line: line},
			}}}}); err != nil {
				return err
			}
			if used := pool.Used(); used > 30<<20 {
				return fmt.Errorf("%d bytes wait for one client", used)
			}
		}
	}, func(o *Options) { o.Pool = pool })
	conn := mustDial(t, s, current+"tail", selector)
	time.Sleep(50 * time.Millisecond)
	conn.CloseNow()
	<-released
}

// Reading the lines of the past takes a turn and has the timeout of a query. Following new lines holds no
// turn.
func TestTailTurns(t *testing.T) {
	held, leave := make(chan struct{}), make(chan struct{})
	first := true
	var mu sync.Mutex
	_, s := tailServer(t, func(ctx context.Context, q *logql.TailQuery, emit func(*logql.Batch) error) error {
		past, done, err := q.Past(ctx)
		if err != nil {
			return err
		}
		if _, ok := past.Deadline(); !ok {
			t.Error("no timeout")
		}
		mu.Lock()
		wait := first
		first = false
		mu.Unlock()
		if wait {
			close(held)
			<-leave
		}
		done()
		if err := emit(&logql.Batch{Streams: []logql.Stream{{Labels: model.LabelsOf("app", "x"), Entries: []logql.Entry{{Time: 1}}}}}); err != nil {
			return err
		}
		return silent(ctx, nil, nil)
	}, func(o *Options) { o.Slots, o.Limits.MaxWait = api.NewSlots(1), 10*time.Millisecond })
	a := mustDial(t, s, current+"tail", selector)
	<-held
	_, err := next(t, mustDial(t, s, current+"tail", selector))
	var closed websocket.CloseError
	if !errors.As(err, &closed) || !strings.HasPrefix(closed.Reason, "too many outstanding requests") {
		t.Errorf("without a turn: %v", err)
	}
	close(leave)
	if _, err := next(t, a); err != nil {
		t.Error(err)
	}
	if _, err := next(t, mustDial(t, s, current+"tail", selector)); err != nil {
		t.Errorf("while another follows: %v", err)
	}
}

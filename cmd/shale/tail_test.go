package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	diff "github.com/google/go-cmp/cmp"
)

// TestTail follows a server that goes away after each frame.
func TestTail(t *testing.T) {
	var mu sync.Mutex
	var starts []int64
	frames := []string{
		`{"streams":[{"stream":{"app":"a"},"values":[["20","two"],["10","one"]]}]}`,
		`{"streams":[{"stream":{"app":"a"},"values":[["30","three"]]}],"dropped_entries":[{"labels":{},"timestamp":"25"}]}`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") == "{" {
			http.Error(w, "parse error", http.StatusBadRequest)
			return
		}
		if r.URL.Path != "/loki/api/v1/tail" {
			http.Error(w, "none of that", http.StatusNotFound)
			return
		}
		mu.Lock()
		start, _ := strconv.ParseInt(r.FormValue("start"), 10, 64)
		starts = append(starts, start)
		n := len(starts)
		mu.Unlock()
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		if n <= len(frames) {
			_ = conn.Write(r.Context(), websocket.MessageText, []byte(frames[n-1]))
			_ = conn.Close(websocket.StatusGoingAway, "bye")
			return
		}
		_, _, _ = conn.Read(r.Context()) // until the client goes
		_ = conn.CloseNow()
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs lockedBuffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"tail", `{app="a"}`, "--url", srv.URL, "-o", "raw", "--since", "99999d"}, &process{stdout: &out, stderr: &errs})
	}()
	deadline := time.Now().Add(20 * time.Second)
	for out.String() != "one\ntwo\nthree\n" && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	for mu.Lock(); len(starts) < 3 && time.Now().Before(deadline); mu.Lock() {
		mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
	if len(starts) < 3 {
		t.Errorf("asked %d times only", len(starts))
	}
	mu.Unlock()
	cancel()
	if code := <-done; code != exitOK || out.String() != "one\ntwo\nthree\n" {
		t.Errorf("code %d: %q, %s", code, out.String(), errs.String())
	}
	if !strings.Contains(errs.String(), "reconnecting") || !strings.Contains(errs.String(), "1 lines were dropped") ||
		!strings.Contains(errs.String(), "could not be replayed: ") || !strings.Contains(errs.String(), "none of that") {
		t.Errorf("%s", errs.String())
	}
	if code, _, errs := shale(t, nil, "tail", "{", "--url", srv.URL); code != exitFailed || !strings.Contains(errs, "HTTP 400: parse error") {
		t.Errorf("%d: %s", code, errs)
	}
}

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// followed is a server with lines, which are followed as Shale does it: first the newest ones since the
// start, then those that come.
type followed struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	lines    []followedLine                 // by time
	refuse   func(n int) (int, string)      // how query number n is refused, if it is
	queries  int                            // that were asked
	conns    int                            // that were made
	live     func(n int, send func(string)) // of connection n, which ends with it
	sentPast int                            // lines of the past that were sent to connections after the first one
}

type followedLine struct {
	at   int64
	text string
}

func newFollowed(t *testing.T) *followed {
	f := &followed{t: t}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, _ := strconv.ParseInt(r.FormValue("start"), 10, 64)
		limit, _ := strconv.Atoi(r.FormValue("limit"))
		if r.URL.Path == "/loki/api/v1/tail" {
			f.follow(w, r, start, limit)
			return
		}
		end, _ := strconv.ParseInt(r.FormValue("end"), 10, 64)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.queries++
		if f.refuse != nil {
			if status, text := f.refuse(f.queries); status != 0 {
				http.Error(w, text, status)
				return
			}
		}
		var found []followedLine
		for _, l := range f.lines {
			if l.at >= start && l.at < end && len(found) < limit {
				found = append(found, l)
			}
		}
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"streams","result":`+streamOf(found)+`}}`)
	}))
	t.Cleanup(srv.Close)
	f.url = srv.URL
	return f
}

func streamOf(lines []followedLine) string {
	var values []string
	for _, l := range lines {
		values = append(values, fmt.Sprintf(`["%d",%q]`, l.at, l.text))
	}
	return `[{"stream":{"app":"a"},"values":[` + strings.Join(values, ",") + `]}]`
}

// add is a push.
func (f *followed) add(at int64, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, followedLine{at, text})
	slices.SortStableFunc(f.lines, func(a, b followedLine) int { return cmp.Compare(a.at, b.at) })
}

func (f *followed) follow(w http.ResponseWriter, r *http.Request, start int64, limit int) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	send := func(frame string) { _ = conn.Write(r.Context(), websocket.MessageText, []byte(frame)) }
	f.mu.Lock()
	f.conns++
	n := f.conns
	var past []followedLine
	for _, l := range f.lines {
		if l.at >= start {
			past = append(past, l)
		}
	}
	past = past[max(0, len(past)-limit):]
	if n > 1 {
		f.sentPast += len(past)
	}
	f.mu.Unlock()
	if len(past) > 0 {
		send(`{"streams":` + streamOf(past) + `}`)
	}
	f.live(n, send)
	_ = conn.Close(websocket.StatusGoingAway, "bye")
}

// tail runs a tail until it has shown a line that is "end".
func (f *followed) tail(args ...string) (lines []string, errs string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 60*time.Second)
	defer cancel()
	var out, said lockedBuffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"tail", `{app="a"}`, "--url", f.url, "-o", "raw"}, args...), &process{stdout: &out, stderr: &said})
	}()
	for !strings.HasSuffix(out.String(), "end\n") && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	if ctx.Err() != nil {
		f.t.Errorf("the last line does not come; said is %s", said.String())
	}
	cancel()
	if code := <-done; code != exitOK {
		f.t.Errorf("code %d", code)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), said.String()
}

// gapOf follows over a connection that is lost, with n lines that come while there is none, after a line that
// is ahead of the clock.
func gapOf(t *testing.T, n int, refuse func(n int) (int, string)) (f *followed, want map[string]int) {
	f = newFollowed(t)
	f.refuse = refuse
	var now int64
	want = map[string]int{"before": 1, "ahead": 1, "twin": 2, "live": 1, "end": 1}
	for i := range n {
		want[fmt.Sprint("gap ", i)] = 1
	}
	f.live = func(conn int, send func(string)) {
		switch conn {
		case 1:
			now = time.Now().UnixNano()
			first := []followedLine{{now + 1, "before"}, {now + int64(30*time.Minute), "ahead"}}
			for _, l := range first {
				f.add(l.at, l.text)
			}
			send(`{"streams":` + streamOf(first) + `}`)
			time.Sleep(time.Millisecond)
			for i := range n {
				f.add(now+2+int64(i), fmt.Sprint("gap ", i))
			}
			f.add(now+5, "twin")
			f.add(now+5, "twin")
		case 2:
			send(`{"streams":` + streamOf([]followedLine{{now + 1e6, "live"}}) + `}`)
			send(`{"streams":` + streamOf([]followedLine{{now + 2e6, "end"}}) + `}`)
			time.Sleep(100 * time.Millisecond) // or until the test ends
		}
	}
	return f, want
}

func counts(lines []string) map[string]int {
	n := make(map[string]int)
	for _, line := range lines {
		n[line]++
	}
	return n
}

// TestTailGap: what comes while there is no connection is shown, whatever is ahead of the clock and however
// much it is, and nothing is shown twice.
func TestTailGap(t *testing.T) {
	f, want := gapOf(t, 2500, nil)
	lines, errs := f.tail()
	if d := diff.Diff(want, counts(lines)); d != "" {
		t.Errorf("%s%s", d, errs)
	}
	if f.sentPast < 1000 || !strings.Contains(errs, "replayed 2502 missed lines") {
		t.Errorf("%d lines were sent again, said is %s", f.sentPast, errs)
	}
}

// TestTailGapLater: a query that is refused for the moment is asked again.
func TestTailGapLater(t *testing.T) {
	f, want := gapOf(t, 2500, func(n int) (int, string) {
		if n%2 == 0 && n < 7 {
			return http.StatusServiceUnavailable, "too early"
		}
		return 0, ""
	})
	lines, errs := f.tail()
	if d := diff.Diff(want, counts(lines)); d != "" || !strings.Contains(errs, "too early") {
		t.Errorf("%s%s", d, errs)
	}
}

// TestTailGapRefused: if the gap cannot be filled, that is said, and tail goes on.
func TestTailGapRefused(t *testing.T) {
	f, _ := gapOf(t, 2500, func(int) (int, string) { return http.StatusBadRequest, "not with me" })
	lines, errs := f.tail()
	got := counts(lines)
	if got["before"] != 1 || got["ahead"] != 1 || got["live"] != 1 || got["gap 2499"] != 1 || got["gap 0"] != 0 {
		t.Errorf("%d lines", len(lines))
	}
	if !strings.Contains(errs, "could not be replayed: ") || !strings.Contains(errs, "not with me") || strings.Contains(errs, "replayed 2") {
		t.Errorf("%s", errs)
	}
}

// TestTailGapLimit: what --limit left out before a connection was lost is not shown after it.
func TestTailGapLimit(t *testing.T) {
	f, want := gapOf(t, 3, nil)
	now := time.Now().UnixNano()
	for i := range 10 {
		f.add(now-int64(i+1)*1e6, fmt.Sprint("past ", i))
	}
	want["past 0"], want["past 1"] = 1, 1
	lines, errs := f.tail("--since", "10m", "--limit", "2")
	if d := diff.Diff(want, counts(lines)); d != "" {
		t.Errorf("%s%s", d, errs)
	}
}

// TestTailDropped: a frame that names as many lines as it can may stand for more.
func TestTailDropped(t *testing.T) {
	for n, want := range map[int]string{1: "note: 1 lines were", 999: "note: 999 lines were", 1000: "note: at least 1000 lines were"} {
		f := newFollowed(t)
		f.live = func(_ int, send func(string)) {
			dropped := strings.Repeat(`{"timestamp":"1","labels":{}},`, n)
			send(`{"streams":[],"dropped_entries":[` + strings.TrimSuffix(dropped, ",") + `]}`)
			send(`{"streams":` + streamOf([]followedLine{{time.Now().UnixNano(), "end"}}) + `}`)
			time.Sleep(100 * time.Millisecond)
		}
		if _, errs := f.tail(); !strings.Contains(errs, want) {
			t.Errorf("%d: %s", n, errs)
		}
	}
}

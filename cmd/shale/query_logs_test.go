package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// lokiOf serves query_range over n lines, a second apart and two at each time, as Loki does: in pages, the end excluded.
func lokiOf(t *testing.T, n int) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		from, _ := strconv.ParseInt(r.FormValue("start"), 10, 64)
		to, _ := strconv.ParseInt(r.FormValue("end"), 10, 64)
		limit, _ := strconv.Atoi(r.FormValue("limit"))
		if r.FormValue("query") == "{" {
			http.Error(w, "parse error", http.StatusBadRequest)
			return
		}
		var values [][2]string
		for i := range n {
			if r.FormValue("direction") == "backward" {
				i = n - 1 - i
			}
			if at := int64(1_700_000_000+i/2) * 1e9; at >= from && at < to && len(values) < limit && r.URL.Path == "/loki/api/v1/query_range" {
				values = append(values, [2]string{strconv.FormatInt(at, 10), fmt.Sprintf("<line> %d of %s", i, r.Header.Get("X-Scope-OrgID"))})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{
			"resultType": "streams", "result": []any{map[string]any{"stream": map[string]string{"app": "a", "b": "c"}, "values": values}},
		}})
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

func TestQueryLogs(t *testing.T) {
	url, asked := lokiOf(t, 5000)
	query := func(args ...string) (int, string, string) {
		return shale(t, nil, append([]string{"query", "--logs", `{app="a"}`, "--url", url, "--tenant", "x", "--start", "1700000000", "--end", "1700009999"}, args...)...)
	}
	code, out, errs := query("--limit", "2")
	if want := "2023-11-14T22:54:59.000000000Z {app=\"a\", b=\"c\"} <line> 4999 of x\n2023-11-14T22:54:59.000000000Z {app=\"a\", b=\"c\"} <line> 4998 of x\n"; code != exitOK || out != want {
		t.Errorf("%d: %s%s", code, out, errs)
	}
	for direction, flag := range map[string]string{"forward": "--forward=true", "backward": "--forward=false"} {
		asked.Store(0)
		code, out, errs = query("--limit", "0", "-o", "raw", flag)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if code != exitOK || len(lines) != 5000 || asked.Load() < 5 {
			t.Fatalf("%s: %d: %d lines, %d queries, %s", direction, code, len(lines), asked.Load(), errs)
		}
		for i, line := range lines {
			if direction == "backward" {
				i = 4999 - i
			}
			if line != fmt.Sprintf("<line> %d of x", i) {
				t.Fatalf("%s: line %d: %s", direction, i, line)
			}
		}
	}
	code, out, _ = query("--limit", "1500", "--forward", "-o", "jsonl")
	if lines := strings.Count(out, "\n"); code != exitOK || lines != 1500 || !strings.HasPrefix(out, `{"time":"2023-11-14T22:13:20.000000000Z","labels":{"app":"a","b":"c"},"line":"<line> 0 of x"}`) {
		t.Errorf("%d: %d lines: %.300s", code, lines, out)
	}
	if code, out, _ = query("--limit", "1", "-o", "json"); code != exitOK || !strings.HasPrefix(out, `{"data":{"result`) {
		t.Errorf("%d: %.300s", code, out)
	}
	code, _, errs = shale(t, nil, "query", "--logs", "{", "--url", url)
	if code != exitFailed || !strings.Contains(errs, "HTTP 400: parse error") {
		t.Errorf("%d: %s", code, errs)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
	}))
	defer other.Close()
	if code, _, errs = shale(t, nil, "query", "--logs", "rate({}[1m])", "--url", other.URL); code != exitFailed || !strings.Contains(errs, "gives samples") {
		t.Errorf("%d: %s", code, errs)
	}
}

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
	if !strings.Contains(errs.String(), "asking again") || !strings.Contains(errs.String(), "1 lines were left out") {
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

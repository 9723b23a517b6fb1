package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/logtest"
)

// TestTail follows a server that goes away after each frame.
func TestTail(t *testing.T) {
	loki := newFakeLoki(t)
	loki.refuse = func(int) (int, string) { return http.StatusNotFound, "none of that" }
	frames := []string{
		`{"streams":[{"stream":{"app":"a"},"values":[["20","two"],["10","one"]]}]}`,
		`{"streams":[{"stream":{"app":"a"},"values":[["30","three"]]}],"dropped_entries":[{"labels":{},"timestamp":"25"}]}`,
	}
	loki.live = func(n int, send func(string)) {
		if n <= len(frames) {
			send(frames[n-1])
		} else {
			time.Sleep(lastFrame)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs logtest.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"tail", `{app="a"}`, "--url", loki.url, "-o", "raw", "--since", "99999d"}, &process{stdout: &out, stderr: &errs})
	}()
	deadline := time.Now().Add(20 * time.Second)
	for out.String() != "one\ntwo\nthree\n" && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	for loki.connections() < 3 && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	if n := loki.connections(); n < 3 {
		t.Errorf("only %d connections", n)
	}
	cancel()
	if code := <-done; code != exitOK || out.String() != "one\ntwo\nthree\n" {
		t.Errorf("code %d: %q, %s", code, out.String(), errs.String())
	}
	if !strings.Contains(errs.String(), "reconnecting") || !strings.Contains(errs.String(), "the server dropped 1 line because") ||
		!strings.Contains(errs.String(), "could not be replayed: ") || !strings.Contains(errs.String(), "none of that") {
		t.Errorf("%s", errs.String())
	}
	if code, _, errs := shale(t, nil, "tail", "{", "--url", loki.url); code != exitFailed || !strings.Contains(errs, "HTTP 400: parse error") {
		t.Errorf("%d: %s", code, errs)
	}
}

// tail runs a tail until it has shown a line that is "end".
func tail(t *testing.T, url string, args ...string) (lines []string, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var out, said logtest.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"tail", `{app="a"}`, "--url", url, "-o", "raw"}, args...), &process{stdout: &out, stderr: &said})
	}()
	for !strings.HasSuffix(out.String(), "end\n") && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Errorf("the last line does not come; said is %s", said.String())
	}
	cancel()
	if code := <-done; code != exitOK {
		t.Errorf("code %d", code)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), said.String()
}

// gapOf follows over a connection that is lost, with n lines that come while there is none, after a line that
// is ahead of the clock.
func gapOf(t *testing.T, n int, refuse func(n int) (int, string)) (f *fakeLoki, want map[string]int) {
	f = newFakeLoki(t)
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
			first := []fakeLine{{now + 1, "before"}, {now + int64(30*time.Minute), "ahead"}}
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
			send(`{"streams":` + streamOf([]fakeLine{{now + 1e6, "live"}}) + `}`)
			send(`{"streams":` + streamOf([]fakeLine{{now + 2e6, "end"}}) + `}`)
			time.Sleep(lastFrame)
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
	lines, errs := tail(t, f.url)
	if d := diff.Diff(want, counts(lines)); d != "" {
		t.Errorf("%s%s", d, errs)
	}
	if f.resent < 1000 || !strings.Contains(errs, "replayed 2502 missed lines") {
		t.Errorf("%d lines were sent again, said is %s", f.resent, errs)
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
	lines, errs := tail(t, f.url)
	if d := diff.Diff(want, counts(lines)); d != "" || !strings.Contains(errs, "too early") {
		t.Errorf("%s%s", d, errs)
	}
}

// TestTailGapRefused: if the gap cannot be filled, that is said, and tail goes on.
func TestTailGapRefused(t *testing.T) {
	f, _ := gapOf(t, 2500, func(int) (int, string) { return http.StatusBadRequest, "not with me" })
	lines, errs := tail(t, f.url)
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
	lines, errs := tail(t, f.url, "--since", "10m", "--limit", "2")
	if d := diff.Diff(want, counts(lines)); d != "" {
		t.Errorf("%s%s", d, errs)
	}
}

// TestTailDropped: a frame that names as many lines as it can may stand for more.
func TestTailDropped(t *testing.T) {
	for n, want := range map[int]string{1: "note: the server dropped 1 line because", 999: "dropped 999 lines because", 1000: "dropped at least 1000 lines because"} {
		f := newFakeLoki(t)
		f.live = func(_ int, send func(string)) {
			dropped := strings.Repeat(`{"timestamp":"1","labels":{}},`, n)
			send(`{"streams":[],"dropped_entries":[` + strings.TrimSuffix(dropped, ",") + `]}`)
			send(`{"streams":` + streamOf([]fakeLine{{time.Now().UnixNano(), "end"}}) + `}`)
			time.Sleep(lastFrame)
		}
		if _, errs := tail(t, f.url); !strings.Contains(errs, want) {
			t.Errorf("%d: %s", n, errs)
		}
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestQueryLogs(t *testing.T) {
	loki := newFakeLoki(t, secondsOf(5000)...)
	query := func(args ...string) (int, string, string) {
		return shale(t, nil, append([]string{"query", "--logs", `{app="a"}`, "--url", loki.url, "--tenant", "x", "--start", "1700000000", "--end", "1700009999"}, args...)...)
	}
	code, out, errs := query("--limit", "2")
	if want := "common labels: {app=\"a\", b=\"c\"}\n2023-11-14T22:54:59.000000000Z {} <line> 4999\n2023-11-14T22:54:59.000000000Z {} <line> 4998\n"; code != exitOK || out != want || loki.tenant != "x" {
		t.Errorf("%d: %s%s", code, out, errs)
	}
	for direction, flag := range map[string]string{"forward": "--forward=true", "backward": "--forward=false"} {
		loki.queries = 0
		code, out, errs = query("--limit", "0", "-o", "raw", flag)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if code != exitOK || len(lines) != 5000 || loki.queries < 5 {
			t.Fatalf("%s: %d: %d lines, %d queries, %s", direction, code, len(lines), loki.queries, errs)
		}
		for i, line := range lines {
			if direction == "backward" {
				i = 4999 - i
			}
			if line != fmt.Sprintf("<line> %d", i) {
				t.Fatalf("%s: line %d: %s", direction, i, line)
			}
		}
	}
	code, out, _ = query("--limit", "1500", "--forward", "-o", "jsonl")
	if lines := strings.Count(out, "\n"); code != exitOK || lines != 1500 || !strings.HasPrefix(out, `{"time":"2023-11-14T22:13:20.000000000Z","labels":{"app":"a","b":"c"},"line":"<line> 0"}`) {
		t.Errorf("%d: %d lines: %.300s", code, lines, out)
	}
	loki.more = `"warnings":["lines are missing\u001b"],`
	if code, out, errs = query("--limit", "3000", "-o", "raw"); code != exitOK || strings.Count(errs, "shale: note: lines are missing\\x1b\n") != 1 || strings.Contains(out, "missing") {
		t.Errorf("%d: %s", code, errs)
	}
	loki.more = ""
	if code, out, _ = query("--limit", "1", "-o", "json"); code != exitOK || !strings.Contains(out, `"data":{"resultType":"streams"`) {
		t.Errorf("%d: %.300s", code, out)
	}
	code, _, errs = shale(t, nil, "query", "--logs", "{", "--url", loki.url)
	if code != exitFailed || !strings.Contains(errs, "HTTP 400: parse error") {
		t.Errorf("%d: %s", code, errs)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
	}))
	defer other.Close()
	if code, _, errs = shale(t, nil, "query", "--logs", "rate({}[1m])", "--url", other.URL); code != exitFailed || !strings.Contains(errs, "returns samples") {
		t.Errorf("%d: %s", code, errs)
	}
}

// TestQueryLogsCrowded: many lines may have one time, as many as a server gives at once.
func TestQueryLogsCrowded(t *testing.T) {
	query := func(url string, args ...string) (int, []string, string) {
		code, out, errs := shale(t, nil, append([]string{"query", "--logs", `{app="a"}`, "--url", url, "--start", "1700000000", "--end", "1700009999", "-o", "raw"}, args...)...)
		return code, strings.SplitAfter(out, "\n"), errs
	}
	for _, c := range []struct {
		crowd, most int
		args        []string
		lines       int
		fails       string
	}{
		{4000, 5000, []string{"--limit", "0"}, 4002, ""},
		{4000, 5000, []string{"--limit", "0", "--forward"}, 4002, ""},
		{4999, 5000, []string{"--limit", "0", "--forward"}, 5001, ""},
		{4000, 5000, []string{"--limit", "3500"}, 3500, ""},
		{400, 500, []string{"--limit", "0"}, 402, ""},
		{6000, 5000, []string{"--limit", "0"}, 5001, "more than 4999 lines have the time 1700000001000000000"},
		{6000, 5000, []string{"--limit", "5500", "--forward"}, 5001, "narrow the query"},
	} {
		loki := newFakeLoki(t, crowdOf(c.crowd)...)
		loki.most = c.most
		code, lines, errs := query(loki.url, c.args...)
		if (code != exitOK) != (c.fails != "") || len(lines) != c.lines+1 || !strings.Contains(errs, c.fails) {
			t.Errorf("%+v: code %d, %d lines, %s", c, code, len(lines)-1, errs)
		}
		seen := make(map[string]bool)
		for _, line := range lines {
			if seen[line] {
				t.Errorf("%+v: %q comes twice", c, line)
			}
			seen[line] = true
		}
	}
}

// TestQueryLogsTooMuch: where the lines of one time need too much memory together, those that the server
// gives are shown, and the error has its reason.
func TestQueryLogsTooMuch(t *testing.T) {
	loki := newFakeLoki(t, crowdOf(6000)...)
	loki.most = 5000
	loki.refuse = func(n int) (int, string) {
		if n == 1 {
			return http.StatusBadRequest, "limit exceeded: the query needs more than 1 bytes of memory (query.max-bytes)"
		}
		return 0, ""
	}
	code, out, errs := shale(t, nil, "query", "--logs", `{app="a"}`, "--url", loki.url, "--start", "1700000000", "--end", "1700009999", "-o", "raw", "--limit", "0")
	if n := strings.Count(out, "\n"); code != exitFailed || n != 5001 || !strings.Contains(errs, "more than 4999 lines have the time 1700000001000000000") || !strings.Contains(errs, "query.max-bytes") {
		t.Errorf("code %d, %d lines, %s", code, n, errs)
	}
}

// TestQueryLogsCut: all lines before an error are shown, and the last one is whole.
func TestQueryLogsCut(t *testing.T) {
	loki := newFakeLoki(t, secondsOf(5000)...)
	loki.refuse = func(n int) (int, string) {
		if n > 2 {
			return http.StatusInternalServerError, "out of order"
		}
		return 0, ""
	}
	code, out, errs := shale(t, nil, "query", "--logs", `{app="a"}`, "--url", loki.url, "--start", "1700000000", "--end", "1700009999", "--limit", "0", "--forward", "-o", "raw")
	lines := strings.SplitAfter(out, "\n")
	if code != exitFailed || !strings.Contains(errs, "out of order") || len(lines) != 1996+1 || lines[1996] != "" || lines[1995] != "<line> 1995\n" {
		t.Errorf("code %d, %d lines, the last %q, %s", code, len(lines), lines[len(lines)-1], errs)
	}
}

// TestQueryLogsJSON: the response of the server is printed as one document.
func TestQueryLogsJSON(t *testing.T) {
	loki := newFakeLoki(t, crowdOf(4000)...)
	loki.most = 5000
	query := func(limit string) (int, string, string) {
		return shale(t, nil, "query", "--logs", `{app="a"}`, "--url", loki.url, "--start", "1700000000", "--end", "1700009999", "-o", "json", "--limit", limit)
	}
	code, out, errs := query("4500")
	if code != exitOK || strings.Count(out, "line 17.") != 1 || strings.Count(out, "\n") != 1 || !json.Valid([]byte(out)) {
		t.Errorf("code %d: %.300s %s", code, out, errs)
	}
	if code, out, errs := query("0"); code != exitUsage || out != "" || !strings.Contains(errs, "-o jsonl") {
		t.Errorf("code %d: %.300s %s", code, out, errs)
	}
	if code, out, errs := query("5001"); code != exitFailed || out != "" || !strings.Contains(errs, "to 5000 lines; use -o jsonl") {
		t.Errorf("code %d: %.300s %s", code, out, errs)
	}
}

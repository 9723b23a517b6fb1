package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// lokiOf serves query_range over n lines, a second apart and two at each time, as Loki does: in pages, the
// end excluded.
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
	if code, _, errs = shale(t, nil, "query", "--logs", "rate({}[1m])", "--url", other.URL); code != exitFailed || !strings.Contains(errs, "returns samples") {
		t.Errorf("%d: %s", code, errs)
	}
}

// crowded serves query_range over lines of which as many as crowd have one time, one is before and one after
// them, and allows at most most lines at once.
func crowded(t *testing.T, crowd, most int) (url string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.ParseInt(r.FormValue("start"), 10, 64)
		to, _ := strconv.ParseInt(r.FormValue("end"), 10, 64)
		limit, _ := strconv.Atoi(r.FormValue("limit"))
		if limit > most {
			http.Error(w, fmt.Sprintf("max entries limit per query exceeded, limit > max_entries_limit_per_query (%d > %d)", limit, most), http.StatusBadRequest)
			return
		}
		var values [][2]string
		for i := range crowd + 2 {
			if r.FormValue("direction") == "backward" {
				i = crowd + 1 - i
			}
			at := int64(1_700_000_001e9)
			switch i {
			case 0:
				at -= 1e9
			case crowd + 1:
				at += 1e9
			}
			if at >= from && at < to && len(values) < limit {
				values = append(values, [2]string{strconv.FormatInt(at, 10), fmt.Sprintf("line %d.", i)})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{
			"resultType": "streams", "result": []any{map[string]any{"stream": map[string]string{"app": "a"}, "values": values}},
		}})
	}))
	t.Cleanup(srv.Close)
	return srv.URL
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
		{6000, 5000, []string{"--limit", "0"}, 1, "more than 4999 lines have the time 1700000001000000000"},
		{6000, 5000, []string{"--limit", "5500", "--forward"}, 1, "narrow the query"},
	} {
		url := crowded(t, c.crowd, c.most)
		code, lines, errs := query(url, c.args...)
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

// TestQueryLogsCut: of what comes before an error all lines are shown, and whole.
func TestQueryLogsCut(t *testing.T) {
	url, _ := lokiOf(t, 5000)
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 2 {
			http.Error(w, "out of order", http.StatusInternalServerError)
			return
		}
		resp, err := http.PostForm(url+r.URL.Path, mustForm(t, r))
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(w, resp.Body)
	}))
	defer srv.Close()
	code, out, errs := shale(t, nil, "query", "--logs", `{app="a"}`, "--url", srv.URL, "--start", "1700000000", "--end", "1700009999", "--limit", "0", "--forward", "-o", "raw")
	lines := strings.SplitAfter(out, "\n")
	if code != exitFailed || !strings.Contains(errs, "out of order") || len(lines) != 1996+1 || lines[1996] != "" || lines[1995] != "<line> 1995 of \n" {
		t.Errorf("code %d, %d lines, the last %q, %s", code, len(lines), lines[len(lines)-1], errs)
	}
}

func mustForm(t *testing.T, r *http.Request) url.Values {
	if err := r.ParseForm(); err != nil {
		t.Error(err)
	}
	return r.Form
}

// TestQueryLogsJSON: an answer of the server is one document.
func TestQueryLogsJSON(t *testing.T) {
	url := crowded(t, 4000, 5000)
	query := func(limit string) (int, string, string) {
		return shale(t, nil, "query", "--logs", `{app="a"}`, "--url", url, "--start", "1700000000", "--end", "1700009999", "-o", "json", "--limit", limit)
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

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestQueryCounts: metric queries of LogQL are asked and printed as Loki takes and gives them.
func TestQueryCounts(t *testing.T) {
	const vector = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"app":"a","level":"error"},"value":[1767225600,"3"]},
		{"metric":{"app":"a","level":"in\u001bfo"},"value":[1767225600,"0.25"]}],"stats":{"summary":{"totalLinesProcessed":7,"splits":0},"index":{}}}}`
	const matrix = `{"status":"success","warnings":["maximum of series (500) reached for a single query; returning partial results"],
		"data":{"resultType":"matrix","result":[{"metric":{},"values":[[1767225600,"1"],[1767225660.5,"2"]]}],"stats":{}}}`
	const scalar = `{"status":"success","data":{"resultType":"scalar","result":[1767225600,"2"],"stats":{}}}`
	const count = `sum by (level) (count_over_time({app="a"}[1m]))`
	form := map[string]string{}
	path, response := "", ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		for _, name := range []string{"query", "time", "start", "end", "step", "limit", "stats"} {
			form[name] = r.FormValue(name)
		}
		fmt.Fprint(w, response)
	}))
	defer s.Close()
	for _, c := range []struct {
		name, response string
		args           []string
		path           string
		form           map[string]string
		out, errs      string
	}{
		{"table", vector, []string{count, "--time", "1767225600"}, "query", map[string]string{"query": count, "time": "1767225600000000000", "limit": ""},
			"common labels: {app=\"a\"}\nSERIES              TIME (UTC)                VALUE\n{level=\"error\"}     2026-01-01T00:00:00.000Z  3\n{level=\"in\\x1bfo\"}  2026-01-01T00:00:00.000Z  0.25\n", ""},
		{"csv and stats", vector, []string{count, "-o", "csv", "--stats"}, "query", map[string]string{"time": "", "stats": ""},
			"series,time,value\n\"{app=\"\"a\"\", level=\"\"error\"\"}\",2026-01-01T00:00:00.000Z,3\n\"{app=\"\"a\"\", level=\"\"in\\x1bfo\"\"}\",2026-01-01T00:00:00.000Z,0.25\n", "summary.totalLinesProcessed: 7\n"},
		{"range", matrix, []string{count, "--start", "1767225600", "--end", "1767229200"}, "query_range", map[string]string{"start": "1767225600000000000", "end": "1767229200000000000", "step": "60"},
			"SERIES  TIME (UTC)                VALUE\n{}      2026-01-01T00:00:00.000Z  1\n        2026-01-01T00:01:00.500Z  2\n", "shale: note: maximum of series (500) reached for a single query; returning partial results\n"},
		{"scalar", scalar, []string{"1+1"}, "query", nil, "SERIES  TIME (UTC)                VALUE\nscalar  2026-01-01T00:00:00.000Z  2\n", ""},
		{"a mistake", scalar, []string{"rate({", "--time", "1767225600"}, "query", nil, "SERIES  TIME (UTC)                VALUE\nscalar  2026-01-01T00:00:00.000Z  2\n", ""},
		{"json", scalar, []string{"1+1", "-o", "json"}, "query", nil, scalar + "\n", ""},
	} {
		response = c.response
		code, out, errs := shale(t, nil, append([]string{"query", "--logs", "--url", s.URL}, c.args...)...)
		if code != exitOK || out != c.out || errs != c.errs || path != "/loki/api/v1/"+c.path {
			t.Errorf("%s: exit %d, %s\n%q\nstderr: %q", c.name, code, path, out, errs)
		}
		for name, want := range c.form {
			if form[name] != want {
				t.Errorf("%s: %s = %q, want %q", c.name, name, form[name], want)
			}
		}
	}
	response = `{"status":"success","data":"none"}`
	if code, _, errs := shale(t, nil, "query", "--logs", "--url", s.URL, count); code != exitFailed || !strings.Contains(errs, "not of the Loki API") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestQueryPlot: a range result is drawn over the range, and all that is not drawn is said.
func TestQueryPlot(t *testing.T) {
	var asked string
	response := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path + " " + r.FormValue("step")
		if response != "" {
			fmt.Fprint(w, response)
			return
		}
		var series []string
		for i := range 14 {
			series = append(series, fmt.Sprintf(`{"metric":{"app":"a","level":"%d"},"values":[[1767225600,"%d"],[1767225630,"NaN"],[1767225660,"%d"]]}`, i, 100-i, 10-i))
		}
		series = append(series, `{"metric":{"app":"a","level":"h"},"histograms":[[1767225600,{}]]}`)
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, strings.Join(series, ","))
	}))
	defer s.Close()
	for _, logs := range []bool{false, true} {
		args := []string{"query", "up", "-o", "plot", "--start", "1767225600", "--end", "1767225700", "--url", s.URL}
		if logs {
			args = append(args[:1:1], append([]string{"--logs", `rate({app="a"}[1m])`}, args[2:]...)...)
		}
		code, out, errs := shale(t, []string{"COLUMNS=60", "LANG=C.UTF-8"}, args...)
		if code != exitOK || !strings.Contains(asked, "query_range 2") {
			t.Errorf("exit %d: %s: %s", code, asked, errs)
		}
		for _, want := range []string{"common labels: {app=\"a\"}\n", "100 ┤", "2026-01-01 00:00:00 to 2026-01-01 00:01:40 UTC, a point every 2s", "a   100    10  {level=\"0\"}\n", "l    89    -1  {level=\"11\"}\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q:\n%s", want, out)
			}
		}
		for _, want := range []string{"12 of 14 series are drawn, those with the highest averages", "the plot has gaps for NaN and infinite values (14)", "1 of 15 series left out: a plot cannot show native histograms"} {
			if !strings.Contains(errs, "shale: note: "+want) {
				t.Errorf("no %q:\n%s", want, errs)
			}
		}
		if strings.Contains(out, "level=\"12\"") || strings.Contains(out, "\x1b") {
			t.Errorf("%s", out)
		}
	}
	// Without a range it is the last hour. A plot of one series is braille, or ASCII without a locale of UTF-8.
	now := strconv.FormatInt(time.Now().Unix()-60, 10)
	response = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"app":"ä"},"values":[[` + now + `,"1"]]}]}}`
	if code, out, errs := shale(t, []string{"LC_ALL=C.UTF-8"}, "query", "up", "-o", "plot", "--url", s.URL); code != exitOK || !strings.Contains(asked, "query_range 45") || !strings.ContainsAny(out, "⠈⠁⠐⠂⠠⠄⢀⡀") || errs != "" {
		t.Errorf("exit %d: %s: %s%s", code, asked, out, errs)
	}
	if code, out, _ := shale(t, nil, "query", "up", "-o", "plot", "--url", s.URL); code != exitOK || !strings.Contains(out, `*     1     1  {app="\u00e4"}`) {
		t.Errorf("exit %d: %s", code, out)
	}
	response = `{"status":"success","data":{"resultType":"matrix","result":[]}}`
	if code, out, errs := shale(t, nil, "query", "vector(1) > 2", "-o", "plot", "--url", s.URL); code != exitOK || out != "no series\n" || !strings.Contains(errs, "note: no series of vector(1) > 2 from ") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	response = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"soup"]]}]}}`
	if code, _, errs := shale(t, nil, "query", "up", "-o", "plot", "--url", s.URL); code != exitFailed || !strings.Contains(errs, "soup") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestEmptyCounts: a metric query of LogQL without a result says what was asked, and which lines there are.
func TestEmptyCounts(t *testing.T) {
	volume := int64(0)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/loki/api/v1/query":
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
		case "/loki/api/v1/index/stats":
			start, _ := strconv.ParseInt(r.FormValue("start"), 10, 64)
			end, _ := strconv.ParseInt(r.FormValue("end"), 10, 64)
			if time.Duration(end-start) != 5*time.Minute {
				t.Errorf("asked for the lines of %v", time.Duration(end-start))
			}
			fmt.Fprintf(w, `{"streams":1,"entries":%d}`, volume)
		case "/loki/api/v1/series":
			fmt.Fprint(w, `{"status":"success","data":[]}`)
		case "/loki/api/v1/label/app/values":
			fmt.Fprint(w, `{"status":"success","data":["web"]}`)
		default:
			fmt.Fprint(w, `{"status":"success","data":[]}`)
		}
	}))
	defer s.Close()
	query := func(expr string) string {
		code, out, errs := shale(t, nil, "query", "--logs", expr, "--url", s.URL)
		if code != exitOK || out != "no series\n" {
			t.Errorf("%s: exit %d: %s", expr, code, out)
		}
		return errs
	}
	if errs := query(`rate({app="wep"}[5m])`); !strings.Contains(errs, `note: no series of rate({app="wep"}[5m]) at `) || !strings.Contains(errs, `the label app has no value "wep"; did you mean "web"?`) {
		t.Error(errs)
	}
	volume = 12
	if errs := query(`rate({app="web"} |= "x" [5m])`); !strings.Contains(errs, `the selector {app="web"} has 12 lines there; what the query does with that leaves no number`) {
		t.Error(errs)
	}
	if errs := query(`rate({app="web"}[5m]) / rate({app="web"} |= "x" [5m])`); !strings.Contains(errs, "each selector of the query has lines there") {
		t.Error(errs)
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/racetest"
)

// shale runs a command line and returns what it wrote.
func shale(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &process{environ: environ, stdout: &out, stderr: &errs})
	return code, out.String(), errs.String()
}

func TestEverySettingIsAFlag(t *testing.T) {
	racetest.SkipSerial(t)
	_, help, _ := shale(t, nil, "serve", "--help")
	for _, s := range config.Settings() {
		if !strings.Contains(help, "--"+s.Name+"=") {
			t.Errorf("serve --help lacks --%s", s.Name)
		}
		code, _, errs := shale(t, nil, "serve", "--print-config", "--"+s.Name+"="+s.Default)
		if code != exitOK {
			t.Errorf("--%s=%s: %s", s.Name, s.Default, errs)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"serve", "--help"}, {"query", "--help"}, {"inspect", "--help"}, {"version", "--help"}, {"load", "--help"}, {"load", "logs", "--help"}, {"tail", "--help"}, {"labels", "--help"}, {"series", "--help"}, {"volume", "--help"}, {"plan", "cache", "--help"}, {"help"}, {"help", "query"}} {
		code, out, errs := shale(t, nil, args...)
		if code != exitOK || !strings.Contains(out, "Usage: shale") || errs != "" {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
	}
}

// TestPlaceholders: a flag says what it takes, not of which type of Go it is, and defaults are in brackets.
func TestPlaceholders(t *testing.T) {
	goType := regexp.MustCompile(`=(STRING|U?INT(-\d+)?|FLOAT-\d+|DURATION|")|,\.\.\.,`)
	for _, args := range []string{"load remote-write", "load logs", "load graphite", "load target", "plan cache", "plan cluster", "token new", "memcached router", "import tsdb", "cache record"} {
		_, out, _ := shale(t, nil, append(strings.Fields(args), "--help")...)
		if found := goType.FindAllString(out, -1); found != nil {
			t.Errorf("%s --help: %q", args, found)
		}
		if args == "memcached router" && !strings.Contains(strings.Join(strings.Fields(out), " "), `["conf/nutcracker.yml"]`) {
			t.Errorf("%s --help: the default of --conf has no brackets: %s", args, out)
		}
	}
}

func TestWrongUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("retention: 30d\nmemory: lots\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		environ []string
		args    []string
		want    string
	}{
		{nil, []string{"query"}, "<query>"},
		{nil, []string{"query", "up", "--forward"}, "--forward is for log lines"},
		{nil, []string{"query", "up", "-o", "raw"}, "raw is for log lines"},
		{nil, []string{"query", "--logs", "{a=\"b\"}", "--format", "csv"}, "csv is for numbers"},
		{nil, []string{"query", "--logs", "{a=\"b\"}", "-o", "plot"}, "count them, such as count_over_time("},
		{nil, []string{"query", "--logs", "rate({a=\"b\"}[1m])", "-o", "raw"}, "raw is for log lines, and the query gives numbers"},
		{nil, []string{"query", "--logs", "rate({a=\"b\"}[1m])", "--limit", "5"}, "--limit is for log lines"},
		{nil, []string{"query", "--logs", "rate({a=\"b\"}[1m])", "--step", "1m"}, "needs --start"},
		{nil, []string{"query", "up", "-o", "plot", "--time", "now"}, "they exclude each other"},
		{nil, []string{"query", "--logs", "{a=\"b\"}", "--time", "now"}, "--time is for numbers"},
		{nil, []string{"query", "--logs", "{a=\"b\"}", "--step", "1m"}, "--step is for numbers"},
		{nil, []string{"query", "--logs", "{a=\"b\"}", "--limit=-1"}, "--limit"},
		{nil, []string{"query", "--logs", "{a=\"b\"}", "--url", "soup"}, "--url"},
		{nil, []string{"query", "--logs", "{a=\"b\"}", "--start", "now", "--end", "-1h"}, "is before --start"},
		{nil, []string{"query", "--logs", "{a=\"b\"}", "--start", "2026-11-23", "--end", "2026-11-23"}, "the range is empty"},
		{nil, []string{"query", "up", "--since", "1h", "--time", "now"}, "they exclude each other"},
		{nil, []string{"tail"}, "<logql>"},
		{nil, []string{"tail", "{a=\"b\"}", "--url", "soup"}, "--url"},
		{nil, []string{"tail", "{a=\"b\"}", "--delay", "10s"}, "--delay"},
		{nil, []string{"tail", "{a=\"b\"}", "--limit", "0"}, "--limit: want at least 1 line"},
		{nil, []string{"query", "--logs", "{a=\"b\"}", "-o", "json", "--limit", "0"}, "--limit 0: -o json prints one response"},
		{nil, []string{"quarry"}, "quarry"},
		{nil, []string{"serve", "--memroy", "1GiB"}, `did you mean "--memory"`},
		{nil, []string{"serve", "--memory", "lots"}, `--memory: "lots" is not a size`},
		{nil, []string{"serve", "--memory", "1MiB"}, "--memory: 1MiB is too small"},
		{nil, []string{"serve", "-c", file}, file + `:2:9: memory: "lots" is not a size`},
		{[]string{"SHALE_CONFIG=" + file}, []string{"serve"}, file + `:2:9: memory: "lots" is not a size`},
		{[]string{"SHALE_MAX_AGE=x"}, []string{"serve"}, `SHALE_MAX_AGE: max-age: "x" is not a duration`},
		{[]string{"SHALE_MAXAGE=7d"}, []string{"serve"}, "unknown variable SHALE_MAXAGE; did you mean SHALE_MAX_AGE?"},
		{nil, []string{"query", "up", "--time", "soon"}, `--time: "soon" is not a time`},
		{nil, []string{"query", "up", "--step", "1m"}, "needs --start"},
		{nil, []string{"query", "up", "--start", "-1h", "--time", "now"}, "they exclude each other"},
		{nil, []string{"query", "up", "--start", "now", "--end", "-1h"}, "is before --start"},
		{nil, []string{"query", "up", "--url", "localhost:9480"}, "--url"},
		{nil, []string{"query", "up", "--url", "ftp://localhost:9480"}, "--url"},
		{nil, []string{"inspect", "part", file, "--check", "--dump"}, "can't be used together"},
		{nil, []string{"query", "up", "--format", "xml"}, "--format"},
	} {
		code, out, errs := shale(t, c.environ, c.args...)
		if code != exitUsage || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%v %v: exit %d, stderr %q, stdout %q; want exit %d and %q", c.environ, c.args, code, errs, out, exitUsage, c.want)
		}
	}
}

func TestPrintConfig(t *testing.T) {
	code, out, _ := shale(t, []string{"SHALE_RETENTION=1d", "SHALE_MAX_AGE=2d"}, "serve", "--print-config", "--retention=3d")
	if code != exitOK || !strings.Contains(out, "retention: 3d # --retention\n") || !strings.Contains(out, "max-age: 2d # SHALE_MAX_AGE\n") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version", "-v"} {
		if code, out, _ := shale(t, nil, arg); code != exitOK || !strings.HasPrefix(out, "shale devel (commit ") {
			t.Errorf("%s: exit %d: %q", arg, code, out)
		}
	}
	if code, out, _ := shale(t, nil, "version", "--json"); code != exitOK || !strings.Contains(out, `"version": "devel"`) {
		t.Errorf("exit %d: %q", code, out)
	}
}

func TestQuery(t *testing.T) {
	const vector = `{"status":"success","data":{"resultType":"vector","result":[
		{"metric":{"__name__":"up","job":"a"},"value":[1767225600.123,"1"]},
		{"metric":{"job":"b\"c"},"value":[1767225600,"NaN"]}],"stats":{"shale":{"blocks":3},"timings":{"evalTotalTime":0.5},"samples":{"perStep":[[1,2]]}}}}`
	const shared = `{"status":"success","warnings":["care\u001bful"],"data":{"resultType":"vector","result":[
		{"metric":{"__name__":"up","job":"a","dc":"eu\u001b[2J","instance":"1"},"value":[1767225600,"1"]},
		{"metric":{"__name__":"demo.x\n","job":"a","dc":"eu\u001b[2J","instance":"2\u009b"},"value":[1767225600,"2"]}]}}`
	const matrix = `{"status":"success","warnings":["careful"],"data":{"resultType":"matrix","result":[{"metric":{"__name__":"up"},"values":[[1767225600,"0.1"],[1767225660,"+Inf"]]}]}}`
	const scalar = `{"status":"success","data":{"resultType":"scalar","result":[1767225600,"2"]}}`
	const failed = `{"status":"error","errorType":"bad_data","error":"1:3: parse error: unexpected end of input"}`
	for _, c := range []struct {
		name      string
		status    int
		answer    string
		args      []string
		path      string
		form      map[string]string
		code      int
		out, errs string
	}{
		{"table", 200, vector, []string{"up", "--time", "2026-01-01T00:00:00Z"}, "/api/v1/query", map[string]string{"query": "up", "time": "1767225600.000"}, 0,
			"SERIES        TIME (UTC)                VALUE\nup{job=\"a\"}   2026-01-01T00:00:00.123Z  1\n{job=\"b\\\"c\"}  2026-01-01T00:00:00.000Z  NaN\n", ""},
		{"common labels", 200, shared, []string{"up"}, "/api/v1/query", nil, 0,
			"common labels: {dc=\"eu\\x1b[2J\", job=\"a\"}\n" +
				"SERIES                            TIME (UTC)                VALUE\nup{instance=\"1\"}                  2026-01-01T00:00:00.000Z  1\n" +
				"{\"demo.x\\n\", instance=\"2\\u009b\"}  2026-01-01T00:00:00.000Z  2\n", "shale: note: care\\x1bful\n"},
		{"string", 200, `{"status":"success","data":{"resultType":"string","result":[1767225600,"\u001b[31m"]}}`, []string{`"x"`}, "/api/v1/query", nil, 0,
			"SERIES  TIME (UTC)                VALUE\nstring  2026-01-01T00:00:00.000Z  \\x1b[31m\n", ""},
		{"csv", 200, vector, []string{"up", "--format", "csv"}, "/api/v1/query", map[string]string{"time": ""}, 0,
			"series,time,value\n\"up{job=\"\"a\"\"}\",2026-01-01T00:00:00.123Z,1\n\"{job=\"\"b\\\"\"c\"\"}\",2026-01-01T00:00:00.000Z,NaN\n", ""},
		{"stats", 200, vector, []string{"up", "--stats", "--format=csv"}, "/api/v1/query", map[string]string{"stats": "all"}, 0,
			"", "shale.blocks: 3\ntimings.evalTotalTime: 0.5\n"},
		{"range", 200, matrix, []string{"up", "--start", "1767225600", "--end", "2026-01-01T00:01:00Z", "--step", "1m"}, "/api/v1/query_range",
			map[string]string{"start": "1767225600.000", "end": "1767225660.000", "step": "60"}, 0,
			"SERIES  TIME (UTC)                VALUE\nup      2026-01-01T00:00:00.000Z  0.1\n        2026-01-01T00:01:00.000Z  +Inf\n", "shale: note: careful\n"},
		{"scalar", 200, scalar, []string{"1+1"}, "/api/v1/query", nil, 0, "SERIES  TIME (UTC)                VALUE\nscalar  2026-01-01T00:00:00.000Z  2\n", ""},
		{"nothing", 200, `{"status":"success","data":{"resultType":"vector","result":[]}}`, []string{"x"}, "/api/v1/query", nil, 0, "no series\n", "shale: note: no series of x at "},
		{"json", 200, scalar, []string{"1+1", "--format", "json"}, "/api/v1/query", nil, 0, scalar + "\n", ""},
		{"bad query that moves the cursor", 400, "\x1b[2J", []string{"up{"}, "/api/v1/query", nil, 1, "", `: HTTP 400: \x1b[2J`},
		{"bad query", 400, failed, []string{"up{"}, "/api/v1/query", nil, 1, "", "shale: bad_data: 1:3: parse error: unexpected end of input (HTTP 400)\n"},
		{"not ours", 502, "<html>", []string{"up"}, "/api/v1/query", nil, 1, "", ": HTTP 502: <html>"},
		{"not JSON", 200, "hello", []string{"up"}, "/api/v1/query", nil, 1, "", "not of the Prometheus API"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/v1/labels" || strings.HasPrefix(r.FormValue("query"), "count(last_over_time(") {
					http.NotFound(w, r) // what explains an empty result
					return
				}
				if r.URL.Path != c.path || r.Header.Get("X-Scope-OrgID") != "team" {
					t.Errorf("asked %s as %q", r.URL.Path, r.Header.Get("X-Scope-OrgID"))
				}
				for k, v := range c.form {
					if got := r.FormValue(k); got != v {
						t.Errorf("%s = %q, want %q", k, got, v)
					}
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.answer))
			}))
			defer s.Close()
			code, out, errs := shale(t, nil, append([]string{"query", "--url", s.URL, "--tenant", "team"}, c.args...)...)
			if code != c.code || c.out != "" && out != c.out || !strings.Contains(errs, c.errs) || c.errs == "" && errs != "" {
				t.Errorf("exit %d\n%s\nstderr: %q", code, out, errs)
			}
		})
	}
}

func TestQueryEndsWithTheContext(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"query", "--url", s.URL, "up"}, &process{stdout: &out, stderr: &errs}); code != exitFailed {
		t.Errorf("exit %d, %s", code, errs.String())
	}
}

func TestQueryWithoutAnswer(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	code, _, errs := shale(t, nil, "query", "--url", s.URL, "--timeout", "20ms", "up")
	if want := "shale: requesting " + s.URL + ": no response within 20ms (--timeout)\n"; code != exitFailed || errs != want {
		t.Errorf("exit %d, %s", code, errs)
	}
	close(release)
	s.Close()
	code, _, errs = shale(t, nil, "query", "--url", s.URL, "up")
	if code != exitFailed || !strings.HasPrefix(errs, "shale: requesting "+s.URL+": dial tcp") || strings.Contains(errs, "Post") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

func TestPointTime(t *testing.T) {
	for seconds, want := range map[string]string{"-1.5": "1969-12-31T23:59:58.500Z", "1767225600.123": "2026-01-01T00:00:00.123Z", "0": "1970-01-01T00:00:00.000Z", "1795467506773000.123": "1795467506773000.123"} {
		if got := (&point{seconds: json.Number(seconds)}).time(); got != want {
			t.Errorf("%s: %s, want %s", seconds, got, want)
		}
	}
}

//go:build e2e

package badinput

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// prepare writes the 2,000 series that queries read.
func (s *server) prepare(t *testing.T) {
	t.Helper()
	var b []byte
	for i := range 2000 {
		b = append(b, series(good("bi_data"), label("i", fmt.Sprint(i)), label("path", strings.Repeat("a", 200)+"!"), one())...)
	}
	if status, text := s.post(nil, message(b)); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, text)
	}
}

// ask sends a form, by POST if it is long.
func (s *server) ask(path string, form url.Values) (string, string) {
	var resp *http.Response
	var err error
	if text := form.Encode(); len(text) < 4000 {
		resp, err = client.Get("http://" + s.httpAddr + path + "?" + text)
	} else {
		resp, err = client.PostForm("http://"+s.httpAddr+path, form)
	}
	if err != nil {
		return "failed", err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Sprint(resp.StatusCode), err.Error()
	}
	text := errorText(string(body))
	if resp.StatusCode == http.StatusOK && (strings.Contains(text, "TIME") || len(text) > 120 || strings.Contains(text, "value")) {
		text = "JSON"
	}
	return fmt.Sprint(resp.StatusCode), text
}

func query() group {
	g := group{file: "prometheus-queries", title: "Prometheus API: queries"}
	add := func(path, input string, form url.Values) {
		g.attacks = append(g.attacks, attack{input: path + ": " + input, do: ending(func(s *server) (string, string) {
			return s.ask("/api/v1/"+path, form)
		})})
	}
	q := func(input, text string) { add("query", input, url.Values{"query": {text}}) }
	add("query", "no query", nil)
	q("empty", "")
	for _, value := range []string{"true", "yes", "1", "TRUE", "true\x00", strings.Repeat("true", 10_000)} {
		add("query", fmt.Sprintf("explain=%.20q", value), url.Values{"query": {"up"}, "explain": {value}})
	}
	add("query", "explain=true and a syntax error", url.Values{"query": {"up{"}, "explain": {"true"}})
	add("query_range", "explain=true and no range", url.Values{"query": {"up"}, "explain": {"true"}})
	add("labels", "explain=true", url.Values{"explain": {"true"}})
	add("format_query", "explain=true", url.Values{"query": {"up"}, "explain": {"true"}})
	q("blank", "   ")
	q("a syntax error", "up{")
	q("an unknown function", "nosuch(up)")
	q("NUL", "up\x00")
	q("invalid UTF-8", "up{a=\"\xff\"}")
	q("a string that does not end", `up{a="`)
	q("matches everything: {}", "{}")
	q(`matches everything: {__name__=~".*"}`, `{__name__=~".*"}`)
	q(`selects all: {__name__=~".+"}`, `count({__name__=~".+"})`)
	q("a bad regular expression", `up{a=~"("}`)
	q("a regular expression with a backreference", `up{a=~"(a)\\1"}`)
	q("(a+)+$ on 2,000 values of 200 a", `count(bi_data{path=~"(a+)+$"})`)
	q("(a|aa|aaa)*b on the same values", `count(bi_data{path=~"(a|aa|aaa)*b"})`)
	q("(.*)(.*)(.*)(.*)(.*)(.*)x on the same values", `count(bi_data{path=~"(.*)(.*)(.*)(.*)(.*)(.*)x"})`)
	q("a{1000}{1000}", `up{a=~"a{1000}{1000}"}`)
	q("a regular expression of 1,000 times .{1000}", `bi_data{path=~"`+strings.Repeat(".{1000}", 1000)+`"}`)
	q("a regular expression of 20,000 times .{30}", `bi_data{path=~"`+strings.Repeat(".{30}", 20_000)+`"}`)
	q("a regular expression of 100,000 times \\pL", `bi_data{path=~"`+strings.Repeat(`\\pL`, 100_000)+`"}`)
	q("a regular expression of 100,000 words", `bi_data{path=~"`+strings.TrimSuffix(strings.Repeat("abcdefg|", 100_000), "|")+`"}`)
	q("a regular expression of 50,000 nested groups", `bi_data{path=~"`+strings.Repeat("(", 50_000)+strings.Repeat(")", 50_000)+`"}`)
	q("label_replace with .{1000} 1,000 times", `label_replace(bi_data, "x", "y", "path", "`+strings.Repeat(".{1000}", 1000)+`")`)
	q("100,000 opening parentheses", strings.Repeat("(", 100_000))
	q("100,000 nested parentheses", strings.Repeat("(", 100_000)+"1"+strings.Repeat(")", 100_000))
	q("100,000 closing parentheses", strings.Repeat(")", 100_000))
	q("100,000 minus signs", strings.Repeat("-", 100_000)+"1")
	q("100,000 additions", strings.Repeat("1+", 100_000)+"1")
	q("100,000 braces", strings.Repeat("{", 100_000))
	q("100,000 nested sums", strings.Repeat("sum(", 100_000)+"up"+strings.Repeat(")", 100_000))
	q("50,000 matchers", "up{"+strings.Repeat(`a!="b",`, 50_000)+"}")
	q("300 or", strings.Repeat("bi_data or ", 300)+"bi_data")
	q("1 MB of spaces", strings.Repeat(" ", 1_000_000))
	q("1 MB of one name", strings.Repeat("n", 1_000_000))
	q("1 MB of one string", `"`+strings.Repeat("s", 1_000_000)+`"`)
	q("a form of 2 MB", strings.Repeat("n", 2_000_000))
	q("a comparison of all with all", `bi_data * on() group_left bi_data`)
	q("a range vector without a range", "rate(bi_data)")
	q("a range of 1e18 years", "bi_data[1000000000000000000y]")
	q("a negative range", "bi_data[-5m]")
	q("an offset of 290 years", "bi_data offset 290y")
	q("@ 1e300", "bi_data @ 1e300")
	q("@ NaN", "bi_data @ NaN")
	q("a subquery of a year by a millisecond", "max_over_time(bi_data[1y:1ms])")
	q("a subquery with step 0", "max_over_time(bi_data[1h:0s])")
	q("nested subqueries", "max_over_time(max_over_time(max_over_time(bi_data[1d:1s])[1d:1s])[1d:1s])")
	q("a number of 100,000 digits", strings.Repeat("9", 100_000))
	q("0x and 400 f", "0x"+strings.Repeat("f", 400))
	q("topk(1e18, ...)", "count(topk(1e18, bi_data))")
	q("topk(NaN, ...)", "count(topk(NaN, bi_data))")
	q("count_values on a bad label name", "count_values(\"\\xff\", bi_data)")
	q("label_join that doubles", nested(`label_join(%s, "x", "", "x", "x")`, `label_replace(vector(1), "x", "aaaaaaaaaa", "", "")`, 40))
	q("label_replace that doubles", nested(`label_replace(%s, "x", "$1$1", "x", "(.*)")`, `label_replace(vector(1), "x", "aaaaaaaaaa", "", "")`, 40))
	for _, bad := range []string{"NaN", "Inf", "1e300", "-1e300", "yesterday", "2026-13-45T00:00:00Z", "0x10"} {
		add("query", "time="+bad, url.Values{"query": {"bi_data"}, "time": {bad}})
	}
	for _, bad := range []string{"-1", "1e300", "NaN", "x", "0", "1e-9"} {
		add("query", "timeout="+bad, url.Values{"query": {"bi_data{i=\"none\"}"}, "timeout": {bad}})
	}
	for _, bad := range []string{"-1", "x", "1e3", "99999999999999999999"} {
		add("query", "limit="+bad, url.Values{"query": {"bi_data"}, "limit": {bad}})
	}
	for _, bad := range []string{"-1h", "1e300", "x", "100000y"} {
		add("query", "lookback_delta="+bad, url.Values{"query": {"bi_data{i=\"none\"}"}, "lookback_delta": {bad}})
	}
	add("query", "a bad tenant", nil)
	g.attacks[len(g.attacks)-1].do = func(t *testing.T, s *server) (string, string) {
		return s.exchange(strings.NewReader("GET /api/v1/query?query=up HTTP/1.1\r\nHost: s\r\nConnection: close\r\nX-Scope-OrgID: ../x\r\n\r\n"), 10*time.Second)
	}

	r := func(input string, pairs ...string) {
		form := url.Values{"query": {"sum(bi_data)"}, "start": {"1700000000"}, "end": {"1700003600"}, "step": {"60"}}
		for i := 0; i < len(pairs); i += 2 {
			if form.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
				form.Del(pairs[i])
			}
		}
		add("query_range", input, form)
	}
	r("no start", "start", "")
	r("no end", "end", "")
	r("no step", "step", "")
	r("end before start", "end", "1699999999")
	r("step=0", "step", "0")
	r("step=-1", "step", "-1")
	r("step=1e-9", "step", "1e-9")
	r("step=NaN", "step", "NaN")
	r("step=1e300", "step", "1e300")
	r("step=9223372036", "step", "9223372036")
	r("11,001 points", "end", "1700011001", "step", "1")
	r("start=-1e300, end=1e300", "start", "-1e300", "end", "1e300", "step", "9e9")
	r("start=-1e300, end=1e300, step=9.2e9", "start", "-1e300", "end", "1e300", "step", "9.2e9")
	r("a range vector as the result", "query", "bi_data[5m]")
	r("a string as the result", "query", `"x"`)
	r("11,000 points of 111 series")
	g.attacks[len(g.attacks)-1].do = func(t *testing.T, s *server) (string, string) {
		now := time.Now().Unix()
		return s.ask("/api/v1/query_range", url.Values{"query": {`last_over_time(bi_data{i=~"1..?"}[1d])`},
			"start": {fmt.Sprint(now - 10)}, "end": {fmt.Sprint(now + 10900)}, "step": {"1"}})
	}

	for _, path := range []string{"series", "labels", "label/i/values"} {
		for _, c := range []struct {
			input string
			form  url.Values
		}{
			{"nothing", nil},
			{"match[]= empty", url.Values{"match[]": {""}}},
			{"match[]={}", url.Values{"match[]": {"{}"}}},
			{"match[]=up{", url.Values{"match[]": {"up{"}}},
			{"match[]=sum(up)", url.Values{"match[]": {"sum(up)"}}},
			{`match[]={a=""}`, url.Values{"match[]": {`{a=""}`}}},
			{"10,000 match[]", url.Values{"match[]": strings.Split(strings.Repeat("up,", 9999)+"up", ",")}},
			{"start=x", url.Values{"match[]": {"up"}, "start": {"x"}}},
			{"start=NaN", url.Values{"match[]": {"up"}, "start": {"NaN"}}},
			{"end before start", url.Values{"match[]": {"up"}, "start": {"10"}, "end": {"5"}}},
			{"start=-1e300, end=1e300", url.Values{"match[]": {"up"}, "start": {"-1e300"}, "end": {"1e300"}}},
			{"limit=-1", url.Values{"match[]": {"up"}, "limit": {"-1"}}},
			{"limit=9223372036854775807", url.Values{"match[]": {"up"}, "limit": {"9223372036854775807"}}},
		} {
			if path == "labels" && c.form == nil {
				continue
			}
			add(path, c.input, c.form)
		}
	}
	for _, name := range []string{"", "%FF", "..%2F..%2Fetc", "../../../etc/passwd", "%00", "a%20b", "U__", "U___zz_", "U__" + strings.Repeat("_ffffffff_", 10), strings.Repeat("n", 10_000)} {
		input := name
		if len(input) > 100 {
			input = input[:20] + "... (long)"
		}
		add("label/"+input+"/values", "nothing", nil)
		g.attacks[len(g.attacks)-1].do = func(t *testing.T, s *server) (string, string) {
			return s.exchange(strings.NewReader("GET /api/v1/label/"+name+"/values HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n"), 10*time.Second)
		}
	}
	for _, request := range []string{
		"PUT /api/v1/query?query=1", "DELETE /api/v1/series?match[]=up", "POST /api/v1/status/buildinfo", "TRACE /api/v1/query?query=1",
		"BREW /api/v1/labels", "GET /api/v1/query?query=%zz", "GET /api/v1/query?query=1;x=2", "GET /api/v1/", "GET /api/v1/nosuch", "GET /api/v2/query", "GET /api/v1/query/",
		"GET //api/v1/query?query=1", "GET /api/v1/../v1/query?query=1", "GET /api/v1/admin/tsdb/delete_series", "POST /api/v1/admin/tsdb/delete_series",
		"POST /prometheus/api/v1/admin/tsdb/delete_series?match[]=up{", "PUT /api/v1/admin/tsdb/delete_series?match[]=up&start=x", "POST /api/v1/admin/tsdb/delete_series?match[]=up&start=2&end=1",
		"DELETE /api/v1/admin/tsdb/clean_tombstones", "POST /api/v1/admin/tsdb/snapshot", "GET /api/v1/targets", "GET /federate", "GET /debug/pprof/",
		"GET /../../../etc/passwd", "OPTIONS *", "CONNECT shale:80", "GET http://elsewhere/api/v1/query?query=vector(1)",
	} {
		g.attacks = append(g.attacks, attack{input: request, do: func(t *testing.T, s *server) (string, string) {
			outcome, text := s.exchange(strings.NewReader(request+" HTTP/1.1\r\nHost: s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), 10*time.Second)
			if outcome == "200" && len(text) > 10 {
				text = "JSON"
			}
			return outcome, text
		}})
	}
	raw := func(input, send string) {
		g.attacks = append(g.attacks, attack{input: input, do: func(t *testing.T, s *server) (string, string) {
			outcome, text := s.exchange(strings.NewReader(send), 15*time.Second)
			if strings.Contains(text, `"success"`) {
				text = "JSON"
			}
			return outcome, text
		}})
	}
	raw("POST of a form with a bad escape", "POST /api/v1/query HTTP/1.1\r\nHost: s\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\nquery=%zz")
	raw("POST of JSON", "POST /api/v1/query HTTP/1.1\r\nHost: s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"query\":1}")
	raw("two different Content-Length", "POST /api/v1/query HTTP/1.1\r\nHost: s\r\nContent-Length: 7\r\nContent-Length: 8\r\n\r\nquery=1GET /ready HTTP/1.1\r\n\r\n")
	raw("Content-Length and chunked, with a second request inside", "POST /api/v1/query?query=1 HTTP/1.1\r\nHost: s\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n")
	raw("a header of 200 KB", "GET /api/v1/query?query=1 HTTP/1.1\r\nHost: s\r\nX-Big: "+strings.Repeat("x", 200_000)+"\r\n\r\n")
	raw("20,000 headers", "GET /api/v1/query?query=1 HTTP/1.1\r\nHost: s\r\n"+strings.Repeat("X-Many: 1\r\n", 20_000)+"\r\n")
	raw("a URL of 100 KB", "GET /api/v1/query?query="+strings.Repeat("1", 100_000)+" HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n")
	raw("a URL of 200 KB", "GET /api/v1/query?query="+strings.Repeat("1", 200_000)+" HTTP/1.1\r\nHost: s\r\n\r\n")
	raw("no Host", "GET /api/v1/query?query=1 HTTP/1.1\r\n\r\n")
	raw("HTTP/0.9", "GET /api/v1/query?query=1\r\n\r\n")
	raw("HTTP/9.9", "GET /api/v1/query?query=1 HTTP/9.9\r\nHost: s\r\n\r\n")
	raw("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	raw("Graphite lines on the HTTP port", "a.b.c 1 1700000000\na.b.c 1 1700000001\n")
	raw("a TLS hello on the HTTP port", "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\n\n")
	return g
}

// nested wraps an expression n times with a format.
func nested(form, expr string, n int) string {
	for range n {
		expr = fmt.Sprintf(form, expr)
	}
	return expr
}

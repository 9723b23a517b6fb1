//go:build e2e

package badinput

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// prepareLines writes the lines that log queries read: 1,000 lines of 200 times a, and 1,000 of JSON, in two
// streams.
func (s *server) prepareLines(t *testing.T) {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"streams":[`)
	for i, app := range []string{"a", "json"} {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"stream":{"app":%q},"values":[`, app)
		for n := range 1000 {
			if n > 0 {
				b.WriteString(",")
			}
			line := fmt.Sprintf("%d %s!", n, strings.Repeat("a", 200))
			if app == "json" {
				line = fmt.Sprintf(`{\"n\":%d,\"path\":\"%s\",\"nested\":%s1%s}`, n, strings.Repeat("a", 200), strings.Repeat(`{\"x\":`, 50), strings.Repeat("}", 50))
			}
			fmt.Fprintf(&b, `["%d","%s"]`, time.Now().UnixNano()-int64(n)*1e6, line)
		}
		b.WriteString("]}")
	}
	b.WriteString("]}")
	if status, _, text := s.send("/loki/api/v1/push", []byte(b.String()), "Content-Type", "application/json"); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, text)
	}
}

// lokiQuery sends a query to the Loki API. A successful response is described, unless it is short.
func (s *server) lokiQuery(path string, form url.Values) (outcome, text string) {
	outcome, text = s.ask(path, form)
	if outcome == "200" && strings.Contains(text, `"streams"`) {
		if text = "JSON"; strings.Contains(text, `"result":[]`) {
			text = "no lines"
		}
	}
	return outcome, text
}

func loki() group {
	g := group{file: "loki-queries", title: "Loki API"}
	add := func(path, input string, form url.Values) {
		what := path
		if len(what) > 30 {
			what = what[:30] + "..."
		}
		if input != "" {
			what += ": " + input
		}
		g.attacks = append(g.attacks, attack{input: what, do: ending(func(s *server) (string, string) {
			return s.lokiQuery("/loki/api/v1/"+path, form)
		})})
	}
	q := func(input, text string) { add("query_range", input, url.Values{"query": {text}}) }
	add("query_range", "no query", nil)
	q("empty", "")
	q("a syntax error", `{app="a"`)
	q("{}", "{}")
	q("matches everything", `{app=~".*"}`)
	q("NUL", "{app=\"a\"}\x00")
	q("invalid UTF-8", "{app=\"\xff\"}")
	q("a string that does not end", `{app="a`)
	q("a metric query", `rate({app="a"}[1m])`)
	q("a bad regular expression", `{app=~"("}`)
	q("a bad line filter", `{app="a"} |~ "("`)
	q("a backreference", `{app="a"} |~ "(a)\\1"`)
	q("(a+)+$ on lines of 200 a", `{app="a"} |~ "(a+)+$"`)
	q("(a|aa|aaa)*b on the same lines", `{app="a"} |~ "(a|aa|aaa)*b"`)
	q("(.*)(.*)(.*)(.*)(.*)(.*)x on the same lines", `{app="a"} |~ "(.*)(.*)(.*)(.*)(.*)(.*)x"`)
	q("a{1000}{1000}", `{app="a"} |~ "a{1000}{1000}"`)
	q("a line filter of 1,000 times .{1000}", `{app="a"} |~ "`+strings.Repeat(".{1000}", 1000)+`"`)
	q("a label of 1,000 times .{1000}", `{app=~"`+strings.Repeat(".{1000}", 1000)+`"}`)
	q("5,000 nested groups", `{app="a"} |~ "`+strings.Repeat("(", 5000)+strings.Repeat(")", 5000)+`"`)
	q("5,000 line filters", `{app="a"}`+strings.Repeat(` |= "a"`, 5000))
	q("5,000 alternatives of a line filter", `{app="a"} |= "a"`+strings.Repeat(` or "b"`, 5000))
	q("5,000 matchers", `{app="a"`+strings.Repeat(`,b!="c"`, 5000)+`}`)
	q("100,000 parentheses", strings.Repeat("(", 100_000))
	q("3,000 nested parentheses", strings.Repeat("(", 3000)+`{app="a"}`+strings.Repeat(")", 3000))
	q("50,000 nested conditions", `{app="a"} | `+strings.Repeat("(", 50_000)+`a="b"`+strings.Repeat(")", 50_000))
	q("131,072 bytes", `{app="a"} |= "`+strings.Repeat("x", 131_056)+`"`)
	q("1 MB", `{app="a"} |= "`+strings.Repeat("x", 1_000_000)+`"`)
	q("a form of 2 MB", strings.Repeat("x", 2_000_000))
	q("a pattern without captures", `{app="a"} | pattern "aaa"`)
	q("a bad address", `{app="a"} |= ip("999.1.1.1")`)
	q("a bad template", `{app="a"} | line_format "{{.a"`)
	q("an unknown function", `{app="a"} | line_format "{{nosuch .a}}"`)
	q("a template that never ends", `{app="a"} | line_format "{{define \"x\"}}{{template \"x\"}}{{end}}{{template \"x\"}}"`)
	q("a template that repeats 1,000,000,000 times", `{app="a"} | line_format "{{repeat 1000000000 \"a\"}}"`)
	q("a template that doubles 40 times", `{app="a"}`+strings.Repeat(` | line_format "{{__line__}}{{__line__}}"`, 40))
	q("a template that indents by 1,000,000,000", `{app="a"} | line_format "{{indent 1000000000 __line__}}"`)
	q("a template that aligns to 1,000,000,000", `{app="a"} | line_format "{{alignLeft 1000000000 __line__}}"`)
	q("a template with printf %1000000000d", `{app="a"} | line_format "{{printf \"%1000000000d\" 1}}"`)
	q("a template that divides by zero", `{app="a"} | line_format "{{div 1 0}}"`)
	q("a label that doubles 40 times", `{app="a"} | label_format x=app`+strings.Repeat(" | label_format x=\"{{.x}}{{.x}}\"", 40))
	q("json", `{app="json"} | json`)
	q("json on lines that are not JSON", `{app="a"} | json`)
	q("json with an invalid path", `{app="json"} | json x="a[["`)
	q("unpack on lines that are not JSON", `{app="a"} | unpack`)
	q("logfmt --strict on lines that are not logfmt", `{app="a"} | logfmt --strict`)
	q("500 parsers", `{app="json"}`+strings.Repeat(" | json", 500))
	p := func(input string, pairs ...string) {
		form := url.Values{"query": {`{app="a"}`}}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		add("query_range", input, form)
	}
	for _, bad := range []string{"x", "-1", "0", "5001", "4294967296", "1e3"} {
		p("limit="+bad, "limit", bad)
	}
	p("a limit of 20 digits", "limit", strings.Repeat("9", 20))
	p("direction=up", "direction", "up")
	for _, bad := range []string{"x", "NaN", "1e300.", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z"} {
		p("end: "+bad, "end", bad)
	}
	p("an end of 20 digits", "end", strings.Repeat("9", 20))
	p("start=10, end=5", "start", "10", "end", "5")
	p("from int64 min to int64 max", "start", "-9223372036854775808", "end", "9223372036854775807")
	p("from int64 max to int64 min", "start", "9223372036854775807", "end", "-9223372036854775808")
	for _, bad := range []string{"x", "0", "-1", "NaN", "1e300", "0.0001"} {
		p("step="+bad, "step", bad)
	}
	for _, bad := range []string{"x", "-1", "Inf"} {
		p("interval="+bad, "interval", bad)
	}
	p("since=x", "since", "x")
	p("since=300y", "since", "300y")
	for _, path := range []string{"query", "query_range", "series", "index/volume", "labels", "index/stats", "patterns"} {
		form := url.Values{"query": {`{app="a"}`}, "match[]": {`{app="a"}`}, "start": {"1"}, "end": {"2"}, "explain": {"true"}}
		add(path, "explain=true", form)
	}
	add("query_range", "explain=maybe", url.Values{"query": {`{app="a"}`}, "explain": {"maybe"}})
	add("query_range", "explain=true and no query", url.Values{"explain": {"true"}})
	add("query", "lines", url.Values{"query": {`{app="a"}`}})
	add("query", "a metric query", url.Values{"query": {`sum(rate({app="a"}[1m]))`}})
	add("query", "an invalid metric query", url.Values{"query": {`sum(rate({app="a"}))`}})
	add("query", "50,000 additions", url.Values{"query": {strings.Repeat("1+", 50_000) + "1"}})
	add("labels", "not a selector", url.Values{"query": {`{app="a"} |= "x"`}})
	add("label/"+strings.Repeat("x", 3000)+"/values", "a name of 3,000 bytes", nil)
	add("label/%ff%00/values", "", nil)
	add("series", "257 selectors", url.Values{"match[]": distinct(257)})
	add("series", "an invalid selector", url.Values{"match[]": {`{app="a"}`, "{"}})
	add("index/stats", "no selector", nil)
	add("index/stats", "a pipeline", url.Values{"query": {`{app="a"} |= "x"`}})
	g.attacks = append(g.attacks, lokiNumbers()...)
	deletes := func(input string, params ...string) {
		form := url.Values{}
		for i := 0; i < len(params); i += 2 {
			form.Add(params[i], params[i+1])
		}
		g.attacks = append(g.attacks, attack{input: "POST delete: " + input, do: ending(func(s *server) (string, string) {
			return s.exchange(strings.NewReader("POST /loki/api/v1/delete?"+form.Encode()+" HTTP/1.1\r\nHost: s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), 10*time.Second)
		})})
	}
	deletes("no query")
	deletes("no start", "query", `{app="a"}`)
	deletes("a bad start", "query", `{app="a"}`, "start", "1e9")
	deletes("a bad end", "query", `{app="a"}`, "start", "1700000000", "end", "yesterday")
	deletes("a time in the future", "query", `{app="a"}`, "start", "1700000000", "end", "9999999999")
	deletes("an end before the start", "query", `{app="a"}`, "start", "1700000001", "end", "1700000000")
	deletes("a syntax error", "query", `{app="a"`, "start", "1700000000")
	deletes("a metric query", "query", `rate({app="a"}[1m])`, "start", "1700000000")
	deletes("everything", "query", `{}`, "start", "1700000000")
	deletes("a template", "query", `{app="a"} | line_format "x"`, "start", "1700000000")
	deletes("a bad max_interval", "query", `{app="a"} |= "x"`, "start", "1700000000", "max_interval", "1y")
	deletes("a query of 70 KB", "query", `{app="a"} |= "`+strings.Repeat("x", 70<<10)+`"`, "start", "1700000000")
	for _, request := range []string{"DELETE /loki/api/v1/delete", "DELETE /loki/api/v1/delete?request_id=nosuch", "PATCH /loki/api/v1/delete", "POST /loki/api/v1/cache/generation_numbers?%zz"} {
		g.attacks = append(g.attacks, attack{input: request, do: ending(func(s *server) (string, string) {
			return s.exchange(strings.NewReader(request+" HTTP/1.1\r\nHost: s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), 10*time.Second)
		})})
	}
	format := func(input, text string) { add("format_query", input, url.Values{"query": {text}}) }
	format("no query", "")
	format("a syntax error", "{")
	format("3,000 nested parentheses", strings.Repeat("(", 3000)+`{app="a"}`+strings.Repeat(")", 3000))
	format("3,000 nested sums", strings.Repeat("sum(", 3000)+`rate({app="a"}[1m])`+strings.Repeat(")", 3000))
	format("30,000 additions", strings.Repeat("1+", 30_000)+"1")
	add("tail", "no websocket", url.Values{"query": {`{app="a"}`}})
	add("tail", "delay_for=6", url.Values{"query": {`{app="a"}`}, "delay_for": {"6"}})
	add("nosuch", "", nil)
	for _, tenant := range []string{"../x", "a|", "|", strings.Repeat("x", 151), strings.Repeat("a|", 100) + "a"} {
		input := tenant
		if len(input) > 20 {
			input = input[:20] + "..."
		}
		g.attacks = append(g.attacks, attack{input: "labels: X-Scope-OrgID: " + input, do: func(_ *testing.T, s *server) (string, string) {
			return s.exchange(strings.NewReader("GET /loki/api/v1/labels HTTP/1.1\r\nHost: s\r\nConnection: close\r\nX-Scope-OrgID: "+tenant+"\r\n\r\n"), 10*time.Second)
		}})
	}
	upgrade := "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
	for _, h := range [][2]string{
		{"no key", upgrade}, {"a bad key", upgrade + "Sec-WebSocket-Key: x\r\n"},
		{"version 99", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 99\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"},
	} {
		g.attacks = append(g.attacks, attack{input: "tail: a websocket with " + h[0], do: func(_ *testing.T, s *server) (string, string) {
			return s.exchange(strings.NewReader("GET /loki/api/v1/tail?query=%7Bapp%3D%22a%22%7D HTTP/1.1\r\nHost: s\r\n"+h[1]+"\r\n"), time.Second)
		}})
	}
	return g
}

// lokiNumbers are requests for numbers.
func lokiNumbers() (all []attack) {
	add := func(path, input string, form url.Values) {
		all = append(all, attack{input: path + ": " + input, do: ending(func(s *server) (string, string) {
			return s.lokiQuery("/loki/api/v1/"+path, form)
		})})
	}
	with := func(query string, pairs ...string) url.Values {
		form := url.Values{"query": {query}}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		return form
	}
	const metric = `vector(1)`
	for _, bad := range []string{"x", "0", "-1", "NaN", "1e300", "0.0005"} {
		add("query_range", "numbers, step="+bad, with(metric, "step", bad, "since", "1s"))
	}
	add("query_range", "11,001 steps", with(metric, "start", "0", "end", "11001", "step", "1"))
	add("query_range", "numbers from int64 min to int64 max", with(metric, "start", "-9223372036854775808", "end", "9223372036854775807"))
	add("query_range", "numbers at the last nanosecond", with(metric, "start", "9223372036854775807", "end", "9223372036854775807", "step", "1h"))
	add("query_range", "numbers at the first nanosecond", with(metric, "start", "-9223372036854775808", "end", "-9223372036854775808", "step", "1h"))
	for _, bad := range []string{"x", "NaN", "-9223372036854775808", "9223372036854775807", strings.Repeat("9", 20)} {
		add("query", "time="+bad, with(metric, "time", bad))
	}
	add("query", "limit=0", with(metric, "limit", "0"))
	add("query", "3,000 nested sums", with(strings.Repeat("sum(", 3000)+metric+strings.Repeat(")", 3000)))
	add("query", "3,000 nested powers", with(strings.Repeat("2^(", 3000)+"2"+strings.Repeat(")", 3000)))
	add("query", "1/0", with("1/0"))
	for _, path := range []string{"index/volume", "index/volume_range"} {
		const selector = `{app=~".+"}`
		add(path, "no query", nil)
		add(path, "{}", with("{}", "start", "1", "end", "2"))
		add(path, "a query that is not a selector", with(`{app="a"} |= "x"`))
		add(path, "numbers", with(`rate({app="a"}[1m])`))
		add(path, "matches everything", with(`{app=~".*"}`))
		for _, bad := range []string{"x", "-1", "0", strings.Repeat("9", 20)} {
			add(path, "limit="+bad, with(selector, "limit", bad, "start", "1", "end", "2"))
		}
		add(path, "aggregateBy=x", with(selector, "aggregateBy", "x"))
		add(path, "257 target labels", with(selector, "targetLabels", strings.Join(distinct(257), ",")))
		add(path, "target labels of NUL", with(selector, "targetLabels", "\x00,\xff,,", "start", "1", "end", "2"))
		add(path, "start=10, end=5", with(selector, "start", "10", "end", "5"))
		add(path, "from int64 min to int64 max", with(`{app="none"}`, "start", "-9223372036854775808", "end", "9223372036854775807"))
	}
	for _, bad := range []string{"x", "0", "-1", "NaN", "1e300", "0.0001"} {
		add("index/volume_range", "step="+bad, with(`{app="a"}`, "step", bad))
	}
	add("index/volume_range", "a step of a nanosecond", with(`{app="a"}`, "start", "1000000000000000000", "end", "1000000000000011000", "step", "0.000000001"))
	return all
}

// distinct returns n selectors.
func distinct(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{app="%d"}`, i)
	}
	return all
}

//go:build e2e

package badinput

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// graphiteHTTP posts lines.
func graphiteHTTP() group {
	g := group{file: "graphite-http", title: "Graphite lines by HTTP"}
	post := func(input string, samples int, body func() []byte, headers ...string) {
		g.attacks = append(g.attacks, attack{input: input, samples: samples, do: func(_ *testing.T, s *server) (string, string) {
			status, _, text := s.send("/api/v1/write/graphite", body(), headers...)
			return fmt.Sprint(status), text
		}})
	}
	lines := func(input string, samples int, text string) {
		post(input, samples, func() []byte { return []byte(stamped(text)) })
	}
	lines("no body", 0, "")
	lines("newlines", 0, "\n\n\r\n\n")
	lines("text", 0, "hello world, this is no line")
	lines("a value that is no number", 1, "bi.http x -1\n")
	lines("a decimal comma", 1, "bi.http 1,5 -1\n")
	lines("NaN and infinities", 3, "bi.http.nan nan -1\nbi.http.inf inf -1\nbi.http.minf -inf -1\n")
	lines("no time", 1, "bi.http 1\n")
	lines("a time that is no number", 1, "bi.http 1 soon\n")
	lines("a time in milliseconds", 1, "bi.http 1 1795868137000\n")
	lines("a time before the oldest that is taken", 1, "bi.http 1 OLD\n")
	lines("a time after the newest that is taken", 1, "bi.http 1 NEW\n")
	lines("four fields", 1, "bi.http 1 -1 2\n")
	lines("a good line and a bad one", 2, "bi.http.good 1 -1\nbi.http x -1\n")
	lines("a last line without a newline", 1, "bi.http.last 1 -1")
	lines("NUL in the path", 1, "bi.h\x00ttp 1 -1\n")
	lines("invalid UTF-8 in the path", 1, "bi.h\xffttp 1 -1\n")
	lines("an empty path", 1, " 1 -1\n")
	lines("dots alone", 1, "... 1 -1\n")
	lines("a path of 100,000 bytes", 1, strings.Repeat("x", 100_000)+" 1 -1\n")
	lines("a path of 10,000 nodes", 1, strings.Repeat("x.", 10_000)+"y 1 -1\n")
	lines("a tag without a value", 1, "bi.http;a= 1 -1\n")
	lines("a tag without a name", 1, "bi.http;=b 1 -1\n")
	lines("a tag twice", 1, "bi.http;a=b;a=c 1 -1\n")
	lines("1,000 tags", 1, "bi.http"+manyTags(1000)+" 1 -1\n")
	lines("100,000 bad lines", 100_000, strings.Repeat("bi.http x -1\n", 100_000))
	good := func() []byte { return []byte(stamped("bi.http.good 1 -1\n")) }
	post("gzip announced, and none", 0, good, "Content-Encoding", "gzip")
	post("zstd announced, and none", 0, good, "Content-Encoding", "zstd")
	post("an unknown encoding", 0, good, "Content-Encoding", "br")
	post("a gzip cut in the middle", 0, func() []byte { b := zipped(good()); return b[:len(b)/2] }, "Content-Encoding", "gzip")
	post("a gzip of more than limits.decoded-bytes", 0, func() []byte { return zipped(make([]byte, decodedMiB<<20+1)) }, "Content-Encoding", "gzip")
	post("a body of more than limits.body-bytes", 0, func() []byte { return bytes.Repeat([]byte("x"), bodyMiB<<20+1) })
	post("a pickle", 0, func() []byte { return []byte(frame(list(point(text("bi.http.pickle"), number(1), number(1))))) })
	post("a tenant with a slash", 0, good, "X-Scope-OrgID", "a/b")
	return g
}

// graphiteQueries asks for what cannot be drawn or found.
func graphiteQueries() group {
	g := group{file: "graphite-queries", title: "Graphite API"}
	ask := func(path, input string, form url.Values) {
		g.attacks = append(g.attacks, attack{input: path + ": " + input, do: ending(func(s *server) (string, string) {
			outcome, text := s.ask(path, form)
			if outcome == "200" {
				text = "a response"
			}
			return outcome, text
		})})
	}
	target := func(input, text string) { ask("/render", input, url.Values{"target": {text}, "format": {"json"}}) }
	target("an open parenthesis", "sumSeries(good.*")
	target("a closed parenthesis", "good.*)")
	target("an open quote", "alias(good.*,'x)")
	target("an open brace", "good.{a,b")
	target("an open bracket", "good.[a-")
	target("an unknown function", "noSuchFunction(good.*)")
	target("an argument too few", "scale(good.*)")
	target("an argument too many", "absolute(good.*,1)")
	target("an argument of another kind", "scale(good.*,'x')")
	target("an argument by a name that does not exist", "scale(good.*,factr=2)")
	target("a pipe to nothing", "good.*|")
	target("NUL", "good.\x00")
	target("invalid UTF-8", "good.\xff")
	target("an interval that is none", "summarize(good.*,'soon')")
	target("an interval of a billion years", "timeShift(good.*,'1000000000y')")
	target("a window of no points", "movingAverage(good.*,0)")
	target("100,000 parentheses", strings.Repeat("abs(", 100_000)+"good.*"+strings.Repeat(")", 100_000))
	target("100,000 open parentheses", strings.Repeat("(", 100_000))
	target("100,000 pipes", "good.*"+strings.Repeat("|abs()", 100_000))
	target("a pattern of 100 nodes", strings.Repeat("*.", 100)+"x")
	target("a pattern of a billion alternatives", "good."+strings.Repeat("{a,b,c,d,e,f,g,h,i,j}", 9))
	target("a regular expression that backtracks", "aliasSub(aliasSub(good.*,'.*','"+strings.Repeat("a", 200)+"'),'(?=(a+)+$)(a+)+b','x')")
	target("a regular expression that is none", "grep(good.*,'(')")
	// Few values have this tag. All names of the store took about as long as the limit, or longer.
	target("a tag expression that backtracks", "seriesByTag('name=good.a','dc=~(a+)+(?=b)$')")
	target("a tag expression that is none", "seriesByTag('name')")
	target("no tag expression", "seriesByTag()")
	target("1 MB", strings.Repeat("x", 1_000_000))
	target("a form of 2 MB", strings.Repeat("x", 2_000_000))
	target("a template without its variable", "template(good.$x)")
	target("a format text that is none", "aliasQuery(good.*,'g','g','%q %q %')")
	target("a number beyond a float", "constantLine(1e999)")
	render := func(pairs ...string) {
		form := url.Values{"target": {"good.*"}, "format": {"json"}}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		ask("/render", strings.Join(pairs, " "), form)
	}
	ask("/render", "no target", url.Values{"format": {"json"}})
	for _, bad := range []string{"soon", "-1parsec", "99:99_20260101", "20261399", strings.Repeat("9", 30), "-999999999999999999y", "noon yesterday tomorrow", "\x00"} {
		render("from", bad)
		render("until", bad)
	}
	render("from", "100", "until", "50")
	render("tz", "Mars/Base")
	render("format", "xls")
	render("format", "png", "width", "1000000", "height", "1000000")
	render("format", "png", "width", "-1")
	render("format", "png", "bgcolor", "nothing at all")
	render("format", "svg", "lineWidth", "1e300")
	render("format", "png", "yMin", "NaN", "yMax", "-Inf")
	for _, bad := range []string{"x", "-1", "0", strings.Repeat("9", 20)} {
		render("maxDataPoints", bad)
	}
	render("xFilesFactor", "x")
	find := func(input, pattern string) { ask("/metrics/find", input, url.Values{"query": {pattern}}) }
	ask("/metrics/find", "no query", nil)
	find("an open brace", "good.{a")
	find("an open bracket", "[")
	find("100 nodes", strings.Repeat("*.", 100)+"*")
	find("10,000 stars in a node", strings.Repeat("*", 10_000)+"x")
	find("a billion alternatives", strings.Repeat("{a,b,c,d,e,f,g,h,i,j}", 9))
	find("1 MB", strings.Repeat("x", 1_000_000))
	ask("/metrics/find", "an unknown format", url.Values{"query": {"*"}, "format": {"xls"}})
	ask("/metrics/find", "a bad time", url.Values{"query": {"*"}, "from": {"soon"}})
	ask("/metrics/expand", "no query", nil)
	ask("/metrics/expand", "a bad number", url.Values{"query": {"*"}, "leavesOnly": {"x"}})
	ask("/tags/findSeries", "no expression", nil)
	ask("/tags/findSeries", "an expression without an operator", url.Values{"expr": {"name"}})
	ask("/tags/findSeries", "a regular expression that is none", url.Values{"expr": {"name=~("}})
	ask("/tags/autoComplete/values", "no tag", nil)
	ask("/tags/autoComplete/tags", "a bad limit", url.Values{"limit": {"x"}})
	ask("/events/get_data", "a bad time", url.Values{"from": {"soon"}})
	ask("/functions/noSuchFunction", "an unknown function", nil)
	return g
}

//go:build e2e

package badinput

import (
	"net/url"
	"strings"
)

// lokiDetected asks for detected labels, fields and values, and for patterns.
func lokiDetected() group {
	g := group{file: "loki-detected", title: "Loki API: detected labels and fields, patterns"}
	for _, path := range []string{"detected_labels", "detected_fields", "detected_field/n/values", "patterns"} {
		ask := func(input string, form url.Values) {
			g.attacks = append(g.attacks, attack{input: path + ": " + input, do: ending(func(s *server) (string, string) {
				outcome, text := s.ask("/loki/api/v1/"+path, form)
				if outcome == "200" {
					text = "JSON"
				}
				return outcome, text
			})})
		}
		q := func(input, text string) { ask(input, url.Values{"query": {text}}) }
		p := func(pairs ...string) {
			form := url.Values{"query": {`{app=~"a|json"}`}}
			for i := 0; i < len(pairs); i += 2 {
				form.Set(pairs[i], pairs[i+1])
			}
			ask(strings.Join(pairs, " "), form)
		}
		ask("no query", nil)
		q("empty", "")
		q("a syntax error", `{app="a"`)
		q("{}", "{}")
		q("matches everything", `{app=~".*"}`)
		q("NUL", "{app=\"a\"}\x00")
		q("invalid UTF-8", "{app=\"\xff\"}")
		q("a metric query", `rate({app="a"}[1m])`)
		q("a bad line filter", `{app="a"} |~ "("`)
		q("(a+)+$ on lines of 200 a", `{app="a"} |~ "(a+)+$"`)
		q("a template that doubles 40 times", `{app="a"}`+strings.Repeat(` | line_format "{{__line__}}{{__line__}}"`, 40))
		q("a label that doubles 40 times", `{app="a"} | label_format x=app`+strings.Repeat(" | label_format x=\"{{.x}}{{.x}}\"", 40))
		q("500 parsers", `{app="json"}`+strings.Repeat(" | json", 500))
		q("5,000 matchers", `{app="a"`+strings.Repeat(`,b!="c"`, 5000)+`}`)
		q("100,000 parentheses", strings.Repeat("(", 100_000))
		q("1 MB", `{app="`+strings.Repeat("x", 1_000_000)+`"}`)
		q("a form of 2 MB", strings.Repeat("x", 2_000_000))
		for _, name := range []string{"limit", "field_limit", "line_limit", "step"} {
			for _, bad := range []string{"x", "-1", "0", "5001", "4294967296", "1e3", "NaN", strings.Repeat("9", 20)} {
				p(name, bad)
			}
		}
		for _, bad := range []string{"x", "NaN", "1e300.", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z", strings.Repeat("9", 20)} {
			p("end", bad)
		}
		p("start", "10", "end", "5")
		p("start", "-9223372036854775808", "end", "9223372036854775807")
		p("start", "9223372036854775807", "end", "-9223372036854775808")
		p("start", "0", "end", "11000", "step", "1")
		p("since", "x")
		p("since", "300y")
	}
	return g
}

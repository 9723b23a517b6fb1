package syntax

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// hostile are queries that are built to cost time or memory, with what their error says; "" if they are
// right.
func hostile() map[string][2]string {
	selector := `{a="b"}`
	repeat := strings.Repeat
	words := make([]string, 15000)
	for i := range words {
		words[i] = fmt.Sprintf("w%05d", i)
	}
	fill := func(begin, part, end string) string {
		return begin + repeat(part, (MaxQueryBytes-1-len(begin)-len(end))/len(part)) + end
	}
	const large, deep = "regular expressions of the query are too large", "nested too deeply"
	return map[string][2]string{
		"too long":                   {repeat(" ", MaxQueryBytes), "input size too long (131072 > 131072)"},
		"long":                       {fill(selector, " ", ""), ""},
		"open parentheses":           {fill("", "(", ""), deep},
		"open parentheses of a sum":  {fill("", "sum(", ""), deep},
		"open parentheses of ranges": {fill("rate", "(", ""), deep},
		"open conditions":            {fill(selector+"|", "(", ""), deep},
		"long chain":                 {fill("vector(1)", "+vector(1)", ""), deep},
		"long chain of powers":       {fill("vector(1)", "^vector(1)", ""), deep},
		"long chain of numbers":      {fill("1", "+1", ""), ""},
		"long chain of or":           {fill(selector+"|a=1", " or a=1", ""), deep},
		"long chain of nothing":      {fill(selector+"|a=1", " a=1", ""), deep},
		"many line filters":          {fill(selector, `|="x"`, ""), ""},
		"long or":                    {fill(selector+`|="x"`, ` or "x"`, ""), ""},
		"long negated or":            {fill(selector+`!="x"`, ` or "x"`, ""), ""},
		"many stages":                {fill(selector, "|json", ""), ""},
		"many matchers":              {fill(`{a="b"`, `,a=~"b+"`, "}"), large},
		"quite many matchers":        {`{a="b"` + repeat(`,a=~"b+"`, 2000) + "}", ""},
		"functions that are names":   {fill(selector+"|drop sum", ",sum", ""), ""},
		"number of points":           {fill("", ".5", ""), "unexpected NUMBER"},
		"long duration":              {fill(selector+"|a>5", "m", ""), "unexpected $end"},
		"long range":                 {fill("rate("+selector+"[", "1h", "])"), "not a valid duration"},
		"comments":                   {fill(selector, "#\n", ""), ""},
		"long choice":                {`{a=~"` + strings.Join(words, "|") + `"}`, ""},
		"long choice in a filter":    {selector + `|~"` + strings.Join(words, "|") + `"|a=~"b"`, ""},
		"repetition":                 {`{a=~"` + repeat("(.{500}x)", 600) + `"}`, large},
		"repetitions":                {fill("{", `a=~"(ab{10}){99}",`, `a="b"}`), large},
		"repetition of a filter":     {selector + `|~"` + repeat("(.{500}x)", 600) + `"`, large},
		"repetition of a parser":     {selector + `|regexp"(?P<x>` + repeat("(.{500}x)", 600) + `)"`, large},
		"repetition of a comparison": {selector + `|a=~"` + repeat("(.{500}x)", 600) + `"`, large},
		"repetition of a label":      {`label_replace(vector(1),"","","","` + repeat("(.{500}x)", 600) + `")`, large},
		"repetition too often":       {`{a=~"x{1001}"}`, "invalid repeat count"},
		"repetition of repetition":   {`{a=~"((x{100}){100}){100}"}`, "invalid repeat count"},
		"regexp too deep":            {`{a=~"` + repeat("(", 2000) + repeat(")", 2000) + `"}`, "expression nests too deeply"},
		"classes":                    {fill(`{a=~"`, `\\pL`, `"}`), large},
		"classes, in line":           {fill(selector+"|~`", `\pL|`, "`"), large},
		"classes of any case":        {fill(`{a=~"(?i)`, `[A-\\x{1E943}]`, `"}`), large},
		"classes of a usual kind":    {selector + `|regexp"` + repeat(`(?P<x>[\\w\\-\\.]+) [a-z-\\d]`, 1) + repeat(`([\\w\\-\\.]+)`, 500) + `"`, ""},
		"a few classes":              {`{a=~"(?i)[a-zA-Z-]+\\pL*[^\\p{Greek}]"}`, ""},
		"pattern":                    {fill(selector+"|pattern`<a>", "<", "`"), ""},
		"pattern of captures":        {fill(selector+"|pattern`", "<a> ", "`"), "duplicate capture name"},
	}
}

func TestHostile(t *testing.T) {
	for name, q := range hostile() {
		query, want := q[0], q[1]
		e, err := Parse(query)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, model.ErrInvalid)):
			t.Errorf("%s: error %v, want %q", name, err, want)
		case err == nil:
			if len(e.String()) == 0 || len(Pretty(e)) == 0 {
				t.Errorf("%s: no text", name)
			}
		}
	}
}

// TestDeepest demands that the deepest query that is allowed can be read again from its own text, though that
// has more parentheses.
func TestDeepest(t *testing.T) {
	repeat := strings.Repeat
	for name, query := range map[string]func(n int) string{
		"left":       func(n int) string { return "vector(1)" + repeat("+vector(1)", n) },
		"right":      func(n int) string { return "vector(1)" + repeat("^vector(1)", n) },
		"conditions": func(n int) string { return `{a="b"}|a=1` + repeat(" or a=1", n) },
		"nothing":    func(n int) string { return `{a="b"}|a=1` + repeat(" a=1", n) },
		"sums":       func(n int) string { return repeat("sum(", n) + "vector(1)" + repeat(")", n) },
	} {
		n := MaxDepth
		e, err := Parse(query(n))
		for ; err != nil; n-- {
			e, err = Parse(query(n))
		}
		if n < MaxDepth-20 {
			t.Errorf("%s: only %d levels", name, n)
		}
		again, err := Parse(e.String())
		if err != nil {
			t.Errorf("%s: its text: %v", name, err)
		} else if again.String() != e.String() {
			t.Errorf("%s: its text is another query", name)
		}
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, q := range hostile() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if e, err := Parse(q[0]); err == nil {
					_ = Pretty(e)
				}
			}
		})
	}
}

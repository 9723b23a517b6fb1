package syntaxtest

import (
	"math/rand/v2"
	"strings"
)

// Generator makes queries by the rules of the grammar, most of them valid. The same random numbers make the
// same queries.
type Generator struct {
	R *rand.Rand
}

// Query returns a query.
func (g Generator) Query() string {
	q := g.logQuery(4)
	if g.R.IntN(5) > 0 {
		q = g.metric(3)
	}
	return g.disguise(q)
}

// disguise changes what means nothing: the space between tokens and the case of letters.
func (g Generator) disguise(q string) string {
	switch g.R.IntN(8) {
	case 0:
		return strings.ReplaceAll(q, " ", "  ")
	case 1:
		return strings.ReplaceAll(q, " ", "\n")
	case 2:
		return strings.ReplaceAll(q, " | ", " # x\n|")
	case 3:
		return strings.NewReplacer("json", "JSON", "sum", "Sum", "rate", "RATE", "unwrap", "UnWrap", " or ", " OR ", " by", " By").Replace(q)
	}
	return q
}

func (g Generator) one(of ...string) string { return of[g.R.IntN(len(of))] }

func (g Generator) chance(percent int) bool { return g.R.IntN(100) < percent }

// some joins 1 to n of something.
func (g Generator) some(n int, between string, one func() string) string {
	parts := make([]string, 1+g.R.IntN(n))
	for i := range parts {
		parts[i] = one()
	}
	return strings.Join(parts, between)
}

func (g Generator) label() string {
	return g.one("a", "b", "app", "level", "status", "_x", "x9", "count", "sum", "ip", "bytes", "duration", "rate", "vector", "first_over_time")
}

func (g Generator) str() string {
	return g.one(`"x"`, `""`, "`y`", `"a\"b"`, "`a\\d+`", `"日本"`, `"a\nb"`, `"with a longer text in it"`, "`{{.x}} \"q\"`", `"\x41"`)
}

func (g Generator) regexp() string {
	return g.one(`"x"`, `""`, `".*"`, `".+"`, `"a|b|c"`, `"a.*"`, `"(?i)x"`, "`\\d+`", `"a{2,5}"`, `"[a-z]+"`, `"(a|b)c"`, `"a(b|c|.*)"`, `"x?"`, `".*a.*"`)
}

func (g Generator) matcher() string {
	if g.chance(40) {
		return g.label() + g.one("=~", "!~") + g.regexp()
	}
	return g.label() + g.one("=", "=", "!=", " = ") + g.str()
}

func (g Generator) selector() string {
	ms := g.some(3, g.one(",", ", "), g.matcher)
	if g.chance(90) {
		ms = `app="x", ` + ms
	}
	return "{" + ms + "}"
}

func (g Generator) logQuery(stages int) string {
	q := g.selector()
	for range g.R.IntN(stages + 1) {
		q += " " + g.stage()
	}
	return q
}

func (g Generator) lineFilter() string {
	op := g.one("|=", "!=", "|~", "!~", "|>", "!>")
	return op + " " + g.some(3, " or ", func() string {
		switch {
		case g.chance(10):
			return "ip(" + g.one(`"127.0.0.1"`, `"10.0.0.0/8"`, `"::1"`) + ")"
		case op == "|~" || op == "!~":
			return g.regexp()
		}
		return g.str()
	})
}

func (g Generator) stage() string {
	switch g.R.IntN(12) {
	case 0, 1, 2:
		return g.lineFilter()
	case 3, 4:
		return "| " + g.condition(3)
	case 5:
		return "| json" + g.extractions()
	case 6:
		return "| logfmt" + g.one("", " --strict", " --keep-empty", " --keep-empty --strict") + g.extractions()
	case 7:
		return "| " + g.one("unpack", "decolorize", `regexp "(?P<a>.)"`, "regexp `(?P<a>\\w+) (?P<b>.*)`", `pattern "<a> <_>"`, "pattern `<a>\"<b>`")
	case 8:
		return "| line_format " + g.str()
	case 9:
		return "| label_format " + g.some(3, ",", func() string { return g.label() + "=" + g.one(g.label(), g.str()) })
	case 10:
		return "| drop " + g.some(3, ",", func() string { return g.one(g.label(), g.matcher()) })
	}
	return "| keep " + g.some(3, ", ", func() string { return g.one(g.label(), g.matcher()) })
}

func (g Generator) extractions() string {
	if g.chance(50) {
		return ""
	}
	return " " + g.some(3, ", ", func() string { return g.label() + g.one("", "="+g.str()) })
}

func (g Generator) condition(depth int) string {
	if depth == 0 || g.chance(50) {
		return g.comparison()
	}
	if g.chance(30) {
		return "(" + g.condition(depth-1) + ")"
	}
	return g.condition(depth-1) + g.one(" and ", " or ", ", ", " , ", " ") + g.condition(depth-1)
}

func (g Generator) comparison() string {
	op := g.one("=", "==", "!=", ">", ">=", "<", "<=")
	switch g.R.IntN(6) {
	case 0:
		return g.label() + op + g.number()
	case 1:
		return g.label() + op + g.one("5s", "1h30m", "1.5h", "-2m", "250ms", "1d", "10us", "1w2d", "1h0m0.25s")
	case 2:
		return g.label() + op + g.one("5B", "5KB", "1MiB", "1.5GB", "1234KB", "7k", "20TB", "999999B", "0B")
	case 3:
		return g.label() + g.one("=", "!=") + "ip(" + g.str() + ")"
	}
	return g.matcher()
}

func (g Generator) number() string {
	return g.one("0", "1", "2.5", "-3", "+4", "1e3", ".5", "6.", "1e-7", "123456789012", "- 1", "007", "1e21")
}

func (g Generator) grouping() string {
	return g.one(" by ", " without ", " by") + "(" + g.one("", g.some(3, ",", g.label), g.some(2, ", ", g.label)) + ")"
}

func (g Generator) duration() string {
	return g.one("5m", "1h", "30s", "1d", "1h30m", "1w", "500ms", "90s", "0")
}

func (g Generator) offset() string {
	if g.chance(70) {
		return ""
	}
	return " offset " + g.one("5m", "-5m", "1h30m", "1d", "1.5h", "10us", "0s")
}

func (g Generator) unwrap() string {
	u := "| unwrap " + g.one(g.label(), "bytes(a)", "duration(b)", "duration_seconds(c)", "bytes")
	for g.chance(30) {
		u += " | " + g.condition(1)
	}
	return u
}

// logRange puts the range and the parentheses at all places where they may be.
func (g Generator) logRange(unwrapped bool) string {
	unwrap := ""
	if unwrapped {
		unwrap = " " + g.unwrap()
	}
	at := " [" + g.duration() + "]" + g.offset()
	switch g.R.IntN(6) {
	case 0:
		return g.selector() + at + strings.TrimPrefix(g.logQuery(3), g.selector()) + unwrap
	case 1:
		return g.selector() + at + " " + g.stage() + unwrap
	case 2:
		return "(" + g.logQuery(2) + unwrap + ")" + at
	case 3:
		return "(" + g.selector() + ")" + at + unwrap
	case 4:
		return "(" + g.logRange(unwrapped) + ")"
	}
	return g.logQuery(3) + unwrap + at
}

func (g Generator) rangeAggregation() string {
	switch g.R.IntN(6) {
	case 0:
		return "quantile_over_time(" + g.one("0.99", "0.5", "1", "1e-1") + ", " + g.logRange(true) + ")" + g.one("", g.grouping())
	case 1:
		op := g.one("avg", "min", "max", "stdvar", "stddev", "first", "last")
		return op + "_over_time(" + g.logRange(true) + ")" + g.one("", g.grouping())
	case 2:
		return g.one("sum_over_time", "rate", "rate_counter", "absent_over_time") + "(" + g.logRange(true) + ")"
	case 3: // seldom right
		op := g.one("rate", "sum_over_time", "count_over_time", "quantile_over_time", "avg_over_time", "bytes_rate")
		return op + "(" + g.one("", "5, ") + g.logRange(g.chance(50)) + ")" + g.one("", g.grouping())
	}
	return g.one("count_over_time", "rate", "bytes_over_time", "bytes_rate", "absent_over_time") + "(" + g.logRange(false) + ")"
}

func (g Generator) metric(depth int) string {
	if depth == 0 {
		return g.one(g.rangeAggregation(), g.rangeAggregation(), g.rangeAggregation(), "vector("+g.one("1", "0.5", "1e-9", "2e3")+")")
	}
	switch g.R.IntN(10) {
	case 0, 1:
		return g.rangeAggregation()
	case 2, 3:
		return g.vectorAggregation(depth)
	case 4:
		return "label_replace(" + g.metric(depth-1) + "," + g.str() + ", " + g.str() + "," + g.str() + ", " + g.regexp() + ")"
	case 5:
		return "(" + g.metric(depth-1) + ")"
	}
	return g.metric(depth-1) + " " + g.operator() + " " + g.one(g.metric(depth-1), g.metric(depth-1), g.number())
}

func (g Generator) vectorAggregation(depth int) string {
	op, param := g.one("sum", "avg", "min", "max", "count", "stddev", "stdvar", "sort", "sort_desc"), ""
	if g.chance(30) {
		op, param = g.one("topk", "bottomk", "approx_topk"), g.one("1, ", "10,", "3,", "0,")
	}
	inner := "(" + param + g.metric(depth-1) + ")"
	switch g.R.IntN(4) {
	case 0:
		return op + g.grouping() + " " + inner
	case 1:
		return op + inner + g.grouping()
	}
	return op + inner
}

func (g Generator) operator() string {
	op := g.one("+", "-", "*", "/", "%", "^", "==", "!=", ">", ">=", "<", "<=", "or", "and", "unless")
	if g.chance(15) {
		op += " bool"
	}
	if g.chance(40) {
		op += " " + g.one("on", "ignoring") + " (" + g.one("", g.some(2, ", ", g.label)) + ")"
		if g.chance(50) {
			op += " " + g.one("group_left", "group_right") + g.one("", " ("+g.one("", g.some(2, ",", g.label))+")")
		}
	}
	return op
}

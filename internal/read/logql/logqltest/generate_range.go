package logqltest

import "strings"

// profile says which words select lines of a kind of data sets.
type profile struct {
	parsers []string // stages that make labels
	labels  []string // that lines have after such stages
	numbers []string // what can be unwrapped
	words   []string // that lines contain
}

// profileOf returns the profile of a kind.
func profileOf(k Kind) *profile {
	p := &profile{
		parsers: []string{"| json", "| json | json", `| json id="req.id", n="n", f="f", level="level"`},
		labels:  []string{"app", "env", "pod", "level", "status", "method", "path", "user"},
		numbers: []string{"n", "f", "f", "status", "duration(dur)", "duration_seconds(dur)", "bytes(size)", "req_bytes", "req_bytes"},
		words:   []string{"GET", "info", "200", "ann", "failed", "n", "e"},
	}
	switch k {
	case Logfmt, Resets, Edges:
		p.parsers = []string{"| logfmt", "| logfmt --keep-empty", "| logfmt --strict", "| logfmt n, f, level, status, path", `| logfmt f="f", x="n", dur, size`}
		p.numbers = []string{"n", "f", "f", "status", "duration(dur)", "duration_seconds(dur)", "bytes(size)", "x"}
	case Access:
		p.parsers = []string{
			`| regexp "(?P<ip>\\S+) - (?P<user>\\S+) .(?P<method>\\w+) (?P<path>\\S+). (?P<status>\\d+) (?P<n>\\d+) (?P<f>\\S+)"`,
			`| pattern "<ip> - <user> \"<method> <path>\" <status> <n> <f>"`,
			`| pattern "<_> - <user> \"<method> <path>\" <status> <n> <f>"`,
		}
		p.labels = []string{"app", "env", "pod", "status", "method", "path", "user", "ip"}
		p.numbers = []string{"n", "f", "status", "bytes(n)", "user"}
	case Metadata:
		p.parsers = []string{"", "", `| label_format x="{{.n}}"`}
		p.labels = []string{"app", "env", "pod", "level", "status", "method", "user", "trace_id", "level_extracted"}
		p.numbers = []string{"n", "f", "status", "duration(dur)", "bytes(size)"}
	case Broken, Ties:
		p.parsers = []string{"| json", "| logfmt", "| logfmt --strict", `| json | drop __error__, __error_details__ | logfmt`, `| json | __error__="" `}
	}
	return p
}

func (g Generator) selector() string {
	return g.one(`{app="web"}`, `{app=~".+"}`, `{app=~".+"}`, `{app=~"web|db"}`, `{env="prod"}`, `{env=~"p.*|dev", app!="db"}`, `{app=~".+", pod!~"p[12]"}`,
		`{pod=~"p.", level=""}`, `{app=~".+"}`)
}

// stages returns what comes between the selector and the range.
func (g Generator) stages(p *profile, parse bool) string {
	var parts []string
	if g.chance(20) {
		parts = append(parts, g.lineFilter(p))
	}
	if parse || g.chance(50) {
		parts = append(parts, g.one(p.parsers...))
		if g.chance(55) {
			parts = append(parts, g.one(`| __error__=""`, `| drop __error__, __error_details__`, `| __error__=""`))
		}
	}
	for g.chance(25) {
		parts = append(parts, g.stage(p))
	}
	return strings.Join(parts, " ")
}

func (g Generator) lineFilter(p *profile) string {
	w := g.one(p.words...)
	switch g.R.IntN(8) {
	case 0:
		return `!= "` + w + `"`
	case 1:
		return `|~ "(?i)` + w + `"`
	case 2:
		return `|= "` + w + `" or "` + g.one(p.words...) + `"`
	case 3:
		return `!~ "` + w + `.*` + g.one(p.words...) + `"`
	case 4:
		return "|> `<_>" + w + "<_>`"
	}
	return `|= "` + w + `"`
}

func (g Generator) stage(p *profile) string {
	l := g.one(p.labels...)
	switch g.R.IntN(14) {
	case 0, 1:
		return "| " + g.condition(p)
	case 2:
		return "| " + g.condition(p) + g.one(" or ", " and ", ", ") + g.condition(p)
	case 3:
		return g.lineFilter(p)
	case 4:
		return `| line_format "{{.` + l + `}}"`
	case 5:
		return `| line_format "{{.` + l + `}} {{__line__}}"`
	case 6:
		return "| label_format " + g.one("x", "y", "app", "n") + "=" + l
	case 7:
		return "| label_format " + g.one("x", "y", "path", "f") + "=`" + g.one("{{.n}}", "v", "{{.method}}-{{.status}}", "", "{{ .f }}") + "`"
	case 8, 9:
		return "| drop " + g.some(2, p.labels)
	case 10:
		return "| keep " + g.some(3, p.labels) + g.one("", ",n,f", ",__error__")
	case 11:
		return "| drop " + l + g.one(`="GET"`, `!="web"`, `=~"p.|w.*"`)
	case 12:
		return "| line_format `" + g.one("n={{.n}} f={{.f}}", `{"n":"{{.n}}","level":"{{.level}}"}`, "{{.missing}}") + "`"
	}
	return g.one("| decolorize", p.parsers[0], "| logfmt", "| json")
}

func (g Generator) condition(p *profile) string {
	switch g.R.IntN(7) {
	case 0:
		return g.one("status", "n", "f") + g.one(">", ">=", "<", "<=", "==", "!=") + g.one("200", "0", "404", "10.5")
	case 1:
		return "dur" + g.one(">", "<=") + g.one("20ms", "1s", "1h")
	case 2:
		return "size" + g.one(">", "<=") + g.one("1KB", "2MiB", "600B")
	case 3:
		return g.one(p.labels...) + `!=""`
	case 4:
		return g.one(p.labels...) + `=~".*[pie0].*"`
	}
	return g.one(`level!="warn"`, `status="200"`, `method="GET"`, `app="web"`, `path!="/b"`, `env="prod"`, `detected_level=~"info|error"`, `trace_id!="t1"`,
		`user=~"ann|bob"`, `app_extracted=""`)
}

func (g Generator) logQuery(p *profile) string {
	return strings.TrimSpace(g.selector() + " " + g.stages(p, false))
}

func (g Generator) unwrap(p *profile) string {
	u := "| unwrap " + g.one(p.numbers...)
	if g.chance(65) {
		u += ` | __error__=""`
	}
	if g.chance(10) {
		u += " | " + g.condition(p)
	}
	return u
}

func (g Generator) duration() string {
	return g.one("1s", "5s", "10s", "30s", "1m", "1m", "90s", "5m", "5m", "10m", "7s", "1500ms", "2m30s", "333ms", "1h", "5m", "3m", "15m", "1ms", "24h", "5m", "1h")
}

func (g Generator) offset() string {
	if g.chance(75) {
		return ""
	}
	return " offset " + g.one("1m", "30s", "-30s", "5m", "-1m", "1s", "1500ms", "-1ms", "10m", "10us", "-999us", "7ms")
}

// logRange returns the lines and the range of an aggregation, with the range in all places where it may be.
func (g Generator) logRange(p *profile, unwrapped bool) string {
	sel, stages := g.selector(), g.stages(p, unwrapped)
	if unwrapped {
		stages += " " + g.unwrap(p)
	}
	at := "[" + g.duration() + "]" + g.offset()
	switch g.R.IntN(8) {
	case 0:
		return sel + at + " " + stages
	case 1:
		return "(" + sel + " " + stages + ")" + at
	}
	return sel + " " + stages + " " + at
}

func (g Generator) rangeAggregation(p *profile) string {
	switch g.R.IntN(10) {
	case 0, 1, 2, 3:
		return g.one("count_over_time", "rate", "bytes_over_time", "bytes_rate") + "(" + g.logRange(p, false) + ")"
	case 4:
		return "absent_over_time(" + g.logRange(p, g.chance(30)) + ")"
	case 5:
		return g.one("sum_over_time", "rate", "rate_counter") + "(" + g.logRange(p, true) + ")"
	case 6:
		return "quantile_over_time(" + g.one("0", "0.5", "0.99", "1", "0.25", "1.5") + ", " + g.logRange(p, true) + ")" + g.rangeGrouping(p)
	}
	return g.one("avg", "min", "max", "stdvar", "stddev", "first", "last") + "_over_time(" + g.logRange(p, true) + ")" + g.rangeGrouping(p)
}

func (g Generator) rangeGrouping(p *profile) string {
	if g.chance(40) {
		return ""
	}
	return g.grouping(p)
}

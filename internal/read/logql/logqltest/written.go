package logqltest

import "strings"

// Written returns queries with each construct of the language, over a data set. They are written down.
func Written(d *Dataset) []Query {
	const second = int64(1e9)
	p := profileOf(d.Kind)
	parse := p.parsers[0] + ` | __error__=""`
	if p.parsers[0] == "" {
		parse = `| __error__=""`
	}
	var all []Query
	for i, text := range written() {
		text = strings.ReplaceAll(text, "PARSE", parse)
		q := Query{Text: text, Start: Begin + 300*second, End: Begin + 600*second, Step: 60 * second}
		switch i % 4 {
		case 1:
			q.Start, q.Step = q.End, 0
		case 2:
			q.Start, q.End, q.Step = q.Start+7, q.Start+200*second, 45*second
		}
		if strings.HasPrefix(text, "{") {
			q = Query{Text: text, Start: Begin - 1, End: Begin + 2*Span, Limit: 1000, Forward: i%2 == 0}
		}
		all = append(all, q)
	}
	return all
}

// written lists the queries. PARSE stands for a parser that the lines fit.
func written() []string {
	const all = `{app=~".+"}`
	list := []string{
		`count_over_time({app=~".+"}[1m])`, `rate({app=~".+"}[90s])`, `bytes_over_time({app=~".+"}[5m])`, `bytes_rate({app=~".+"}[7s])`,
		`absent_over_time({app="web"}[10s])`, `absent_over_time({app="none", pod="p1", env=~"a|b"}[1m])`,
		`sum(absent_over_time({app="web"} | json | unwrap n [10s]))`,
		`count_over_time({app=~".+"} |= "e" != "zzz" [1m])`, `count_over_time({app=~".+"} |~ "(?i)GET|POST" [5m])`,
		`count_over_time({app=~".+"}[1m] offset 1m)`, `count_over_time({app=~".+"}[1m] offset -1m)`, `count_over_time({app=~".+"}[1m] |= "e")`,
		`count_over_time(({app=~".+"} |= "e")[1m])`, `rate({app=~".+"} PARSE [5m])`, `sum by (status) (count_over_time({app=~".+"} PARSE [5m]))`,
		`sum without (status, n, f) (count_over_time({app=~".+"} PARSE [5m]))`, `bytes_over_time({app=~".+"} PARSE | line_format "{{.status}}" [5m])`,
		`count_over_time({app=~".+"} PARSE | line_format "{{.status}}" |= "200" [5m])`,
		`sum by (x) (count_over_time({app=~".+"} PARSE | label_format x="{{.method}}-{{.status}}" [5m]))`,
		`sum by (status) (count_over_time({app=~".+"} PARSE | status >= 400 [5m]))`, `sum(count_over_time({app=~".+"} PARSE | dur > 20ms or size > 1KB [5m]))`,
		`count_over_time({app=~".+"} PARSE | keep app, status [5m])`, `count_over_time({app=~".+"} PARSE | drop n, f, msg, dur, size, user [5m])`,
		`count_over_time({app=~".+"} | drop env, level [5m])`, `sum by (trace_id) (count_over_time({app=~".+"}[5m]))`,
		`sum by (detected_level) (rate({app=~".+"} | detected_level!="" [5m]))`, `sum by (env, env_extracted) (count_over_time({app=~".+"}[5m]))`,
		`count_over_time({app=~".+"} | json | logfmt [5m])`, `sum(count_over_time({app=~".+"} | json | __error__!="" [5m]))`,
		`sum by (__error__) (count_over_time({app=~".+"} | logfmt --strict | label_format e=__error__ [5m]))`,
		`sum(count_over_time({app=~".+"} | json | drop __error__ [5m]))`, `sum by (app) (rate({app=~".+"} | unpack [5m]))`,
		`sum_over_time({app=~".+"} PARSE | unwrap n | __error__="" [5m])`, `sum_over_time({app=~".+"} PARSE | unwrap f [5m])`,
		`sum_over_time({app=~".+"} PARSE | unwrap duration(dur) | __error__="" [5m])`, `rate({app=~".+"} PARSE | unwrap duration_seconds(dur) | __error__="" [5m])`,
		`max_over_time({app=~".+"} PARSE | unwrap bytes(size) | __error__="" [5m]) by (app)`, `rate({app=~".+"} PARSE | unwrap n | __error__="" | status="200" [5m])`,
		`sum by (pod) (rate_counter({app=~".+"} PARSE | unwrap n | __error__="" [5m]))`, `rate_counter({app=~".+"} PARSE | keep pod, n | unwrap n [1m])`,
	}
	for _, op := range []string{"avg", "min", "max", "stdvar", "stddev", "first", "last"} {
		list = append(list,
			op+`_over_time({app=~".+"} PARSE | unwrap n | __error__="" [5m]) by (app, pod)`,
			op+`_over_time({app=~".+"} PARSE | unwrap f | __error__="" [30s]) by (app)`,
			op+`_over_time({app=~".+"} PARSE | unwrap f | __error__="" [1m]) without (pod, level, status, method, path, user, dur, size, msg, n)`)
	}
	for _, phi := range []string{"0", "0.3", "0.99", "1", "1.1"} {
		list = append(list, `quantile_over_time(`+phi+`, {app=~".+"} PARSE | unwrap f | __error__="" [3m]) by (env)`)
	}
	for _, op := range []string{"sum", "avg", "min", "max", "count", "stddev", "stdvar"} {
		list = append(list,
			op+`(count_over_time(`+all+`[1m]))`, op+` by (app) (rate(`+all+`[5m]))`,
			op+` without (pod) (bytes_over_time(`+all+`[2m]))`, op+` by (none) (count_over_time(`+all+` PARSE [1m]))`,
			op+` by (app) (sum by (app, pod) (sum_over_time(`+all+` PARSE | unwrap f | __error__="" [5m])))`)
	}
	for _, op := range []string{"topk", "bottomk"} {
		list = append(list, op+`(2, sum by (app, pod) (bytes_over_time(`+all+`[5m])))`, op+` by (app) (1, sum by (app, pod) (bytes_over_time(`+all+`[1h])))`,
			`sum(`+op+`(1, sum by (pod) (bytes_over_time(`+all+`[5m]))))`)
	}
	list = append(list, `approx_topk(2, sum by (app) (bytes_over_time(`+all+`[5m])))`,
		`sort(sum by (pod) (bytes_over_time(`+all+`[10m])))`, `sort_desc(sum by (pod) (bytes_over_time(`+all+`[10m])))`)
	return append(append(list, writtenBinary()...), writtenOthers()...)
}

func writtenBinary() []string {
	const a, b = `sum by (app, pod) (count_over_time({app=~".+"}[5m]))`, `sum by (app) (count_over_time({app=~".+"}[3m]))`
	var list []string
	for _, op := range []string{"+", "-", "*", "/", "%", "^", "==", "!=", ">", ">=", "<", "<=", "== bool", "> bool", "and", "or", "unless"} {
		set := op == "and" || op == "or" || op == "unless"
		list = append(list, b+" "+op+` sum by (app) (count_over_time({app!="db"}[5m]))`, a+" "+op+` on (app) `+b)
		if set {
			continue
		}
		list = append(list, b+" "+op+" 3", "3 "+op+" "+b,
			a+" "+op+` on (app) group_left `+b, b+" "+op+` on (app) group_right `+a, a+" "+op+` ignoring (pod) group_left () `+b)
	}
	return append(list,
		a+` / on (app) group_left (x) label_replace(`+b+`, "x", "$1", "app", "(.).*")`, a+` / ignoring (pod) `+b, a+` / on () vector(2)`,
		b+` / on (app) sum by (app) (rate({app="none"}[1m]))`, b+` * 2 + 1 - 3 / 2 % 5 ^ 2`, b+` > 2 < 100`, `-1 * `+b, b+` / 0`, b+` % 0`, `0 / 0 * `+b,
		`sum(`+b+`) / on () count(`+a+`)`, b+` or vector(0)`, `vector(1) unless `+b, b+` and on () vector(1)`)
}

func writtenOthers() []string {
	const b = `sum by (app) (count_over_time({app=~".+"}[3m]))`
	return []string{
		`vector(1)`, `vector(1) + 1`, `1 + 2 * 3`, `1`, `-2.5`, `2 ^ 3 ^ 2`, `1 > bool 2`, `sum(vector(3))`, `vector(1) == vector(1)`, `1 / 0`, `0 / 0`,
		`label_replace(` + b + `, "x", "$1-$2", "app", "(.)(.*)")`, `label_replace(` + b + `, "app", "", "app", "web")`, `label_replace(` + b + `, "x", "v", "none", "")`,
		`label_replace(` + b + `, "x", "v", "app", "nothing")`, `label_replace(rate({app=~".+"}[1m]), "pod", "same", "pod", ".*")`,
		`sum(label_replace(rate({app=~".+"}[1m]), "pod", "same", "pod", ".*"))`,
		`sum by (x) (label_replace(` + b + `, "x", "$1", "app", "(.*)"))`, `max(sum by (app) (avg_over_time({app=~".+"} PARSE | unwrap f | __error__="" [5m])))`,
		`sum by (app) (max_over_time({app=~".+"} PARSE | unwrap f | __error__="" [5m]) by (app, pod))`,
		`sum by (app) (avg_over_time({app=~".+"} PARSE | unwrap f | __error__="" [5m]))`,
		`{app=~".+"}`, `{app=~".+"} |= "e"`, `{app="web"} PARSE | status="200"`, `{app=~".+"} PARSE | line_format "{{.method}} {{.status}}"`,
		`{app=~".+"} | json | logfmt`, `{app=~".+"} | drop pod | label_format x=app`, `{app=~".+"} PARSE | keep status`, `{app="none"}`,
		`{app=~".+"} | trace_id="t1"`, `{app=~".+"} | detected_level=~".+" |~ "a|b"`,
	}
}

//go:build e2e

package e2e

// victoriaStreams are the lines that the test sends to VictoriaLogs, by seconds after the base time. The name
// of a line is its place in the expected results.
var victoriaStreams = []victoriaStream{
	{map[string]string{"app": "api", "env": "prod"}, []victoriaLine{
		{"A0", 0, `{"status":200,"path":"/a","took":10,"nested":{"x":"1"}}`, nil},
		{"A1", 10, `{"status":500,"path":"/b","took":20}`, nil},
		{"A2", 20, `{"status":503,"path":"/b","took":30}`, nil},
		{"A3", 30, `not json at all`, nil},
		{"A4", 40, `{"status":404,"path":"/c","took":40,"app":"inner"}`, nil},
	}},
	{map[string]string{"app": "my-api-2", "env": "prod"}, []victoriaLine{
		{"M0", 5, `level=info msg="foo(bar) a.b" n=1`, nil},
		{"M1", 15, `level=error msg="axb" n=2`, nil},
		{"M2", 25, `level=debug msg="ip 10.1.2.3" n=3`, nil},
		{"M3", 35, "\x1b[31mred\x1b[0m text", nil},
	}},
	{map[string]string{"app": "db", "env": "dev", "service.name": "database"}, []victoriaLine{
		{"D0", 0, `level=info n=5`, nil},
		{"D1", 60, `level=warn n=7`, nil},
		{"D2", 120, `level=error n=9`, map[string]string{"trace_id": "t1"}},
	}},
}

// victoriaLines are selections of lines, and the names of the lines that Loki returns, the oldest first. A
// name in quotes is a text that the query made.
var victoriaLines = map[string]string{
	// Expressions are anchored, and the text that a line contains is taken as it stands.
	`{app=~"api"}`:                          "A0 A1 A2 A3 A4",
	`{app=~"a.*"}`:                          "A0 A1 A2 A3 A4",
	`{app=~"my.api.2"}`:                     "M0 M1 M2 M3",
	`{env=~".+", app!~"api"}`:               "D0 M0 M1 M2 M3 D1 D2",
	`{env=~".+", app!~"api|my.*"}`:          "D0 D1 D2",
	`{app="my-api-2"} |= "foo("`:            "M0",
	`{app="my-api-2"} |= "a.b"`:             "M0",
	`{app="my-api-2"} != "a.b"`:             "M1 M2 M3",
	`{app="my-api-2"} |= "foo(" or "axb"`:   "M0 M1",
	`{app="my-api-2"} |= "o(b"`:             "M0",
	`{app="my-api-2"} |= ip("10.1.0.0/16")`: "M2",
	`{app="my-api-2"} |~ "a.b"`:             "M0 M1",
	`{app="my-api-2"} |~ "(?i)AXB"`:         "M1",
	`{app="my-api-2"} !~ "foo\\(|axb|red"`:  "M2",
	`{app="my-api-2"} |> "<_>axb<_>"`:       "M1",
	`{app="api"} |= "500" # status`:         "A1",
	// Filters of one label add up; groups are groups.
	`{app="my-api-2"} | logfmt | level!="debug" | level!="info" | level!=""`:      "M1",
	`{app="api"} | json | status=~"5.." | status!="503"`:                          "A1",
	`{app="api"} | json | (status=404 or took>=30) and path!="/b" | __error__=""`: "A4",
	`{app="api"} | json | status>=500 | __error__=""`:                             "A1 A2",
	`{app="my-api-2"} | logfmt | msg="foo(bar) a.b"`:                              "M0",
	`{app="my-api-2"} | logfmt | label_format ok="{{ .n }}==1" | ok="1==1"`:       "M0",
	`{app="my-api-2"} | logfmt | n > 1 and n < 3`:                                 "M1",
	// Errors of parsers are labels.
	`{app="api"} | json | __error__=""`:  "A0 A1 A2 A4",
	`{app="api"} | json | __error__!=""`: "A3",
	// A label of the stream stays, and nested names have underscores.
	`{app="api"} | json | app_extracted="inner"`:                 "A4",
	`{app="api"} | json | app="api" | took=40`:                   "A4",
	`{app="api"} | json | nested_x="1"`:                          "A0",
	`{app="api"} | json x="nested.x" | x="1"`:                    "A0",
	`{app="my-api-2"} | logfmt num="n" | num="2"`:                "M1",
	`{app="my-api-2"} | pattern "level=<lvl> <_>" | lvl="error"`: "M1",
	`{app="my-api-2"} | regexp "n=(?P<num>\\d+)" | num > 1`:      "M1 M2",
	// Lines and labels are made by the query.
	`{app="api"} | json | status>=500 | __error__="" | line_format "{{.status}} {{.path}}"`:        `"500 /b" "503 /b"`,
	`{app="my-api-2"} | decolorize |= "red text"`:                                                  `"red text"`,
	`{app="my-api-2"} | logfmt | label_format m=msg | m="axb"`:                                     "M1",
	`{app="my-api-2"} | logfmt | n="3" | line_format "{{ .level | ToUpper }}{{ .msg | trunc 2 }}"`: `"DEBUGip"`,
	// Names of OpenTelemetry, and structured metadata.
	`{service_name="database"}`:            "D0 D1 D2",
	`{service_name="my-api-2"}`:            "M0 M1 M2 M3",
	`{app="db"} | trace_id="t1"`:           "D2",
	`{env=~".+"} | detected_level="error"`: "M1 D2",
}

// victoriaNumbers are metric queries at an instant, so many seconds after the base time, and Loki's result.
var victoriaNumbers = []struct {
	query string
	at    int
	want  string
}{
	// A window is (t-range, t], and no line outside it counts.
	{`sum by (app) (count_over_time({app="api"}[5m]))`, 300, `{app="api"} 4`},
	{`sum by (app) (count_over_time({app="api"}[5m]))`, 299, `{app="api"} 5`},
	{`sum(count_over_time({env=~".+"}[1h]))`, 60, `{} 11`},
	{`sum(rate({app="api"}[5m]))`, 299, `{} 0.016666666666666666`},
	{`sum(count_over_time({app="db"}[1m] offset 4m))`, 300, `{} 1`},
	{`sum by (app) (bytes_over_time({app="db"}[10m]))`, 500, `{app="db"} 43`},
	{`sum(bytes_rate({app="db"}[10m]))`, 500, `{} 0.07166666666666667`},
	// Outer aggregations are what they say.
	{`max by (env) (sum by (app, env) (count_over_time({env=~".+"}[10m])))`, 500, `{env="dev"} 3 {env="prod"} 5`},
	{`min by (env) (sum by (app, env) (count_over_time({env=~".+"}[10m])))`, 500, `{env="dev"} 3 {env="prod"} 4`},
	{`avg by (env) (sum by (app, env) (count_over_time({env=~".+"}[10m])))`, 500, `{env="dev"} 3 {env="prod"} 4.5`},
	{`count(sum by (app) (count_over_time({env=~".+"}[10m])))`, 500, `{} 3`},
	{`sum without (app, service_name, detected_level) (count_over_time({env=~".+"}[10m] | keep app, env))`, 500, `{env="dev"} 3 {env="prod"} 9`},
	{`max without (app) (sum by (app, env) (count_over_time({env=~".+"}[10m])))`, 500, `{env="dev"} 3 {env="prod"} 5`},
	{`sum by (level) (count_over_time({app="db"} | logfmt [10m]))`, 500, `{level="error"} 1 {level="info"} 1 {level="warn"} 1`},
	// Numbers in lines.
	{`avg_over_time({app="my-api-2"} | logfmt | unwrap n | __error__="" [10m]) by (app)`, 500, `{app="my-api-2"} 2`},
	{`sum by (app) (sum_over_time({app="my-api-2"} | logfmt | unwrap n | __error__="" [10m]))`, 500, `{app="my-api-2"} 6`},
	{`quantile_over_time(0.5, {app="api"} | json | unwrap took | __error__="" [10m]) by (env)`, 500, `{env="prod"} 25`},
	{`stddev_over_time({app="my-api-2"} | logfmt | unwrap n | __error__="" [10m]) by (app)`, 500, `{app="my-api-2"} 0.816496580927726`},
	{`stdvar_over_time({app="my-api-2"} | logfmt | unwrap n | __error__="" [10m]) by (app)`, 500, `{app="my-api-2"} 0.6666666666666666`},
	{`first_over_time({app="db"} | logfmt | unwrap n [10m]) by (app)`, 500, `{app="db"} 5`},
	{`last_over_time({app="db"} | logfmt | unwrap n [10m]) by (app)`, 500, `{app="db"} 9`},
	{`max_over_time({app="db"} | logfmt | unwrap n [10m]) by (app) - min_over_time({app="db"} | logfmt | unwrap n [10m]) by (app)`, 500, `{app="db"} 4`},
	{`sum(sum_over_time({app="db"} | logfmt | unwrap n | n > 5 [10m]))`, 500, `{} 16`},
	// Operators have precedence, filter, and match labels.
	{`sum(count_over_time({app="api"} | json | status>=500 | __error__="" [10m])) / sum(count_over_time({app="api"}[10m])) * 100`, 500, `{} 40`},
	{`1 + sum(count_over_time({app="db"}[10m])) * 2`, 500, `{} 7`},
	{`(1 + sum(count_over_time({app="db"}[10m]))) * 2`, 500, `{} 8`},
	{`sum(count_over_time({app="api"}[10m])) > 10`, 500, ``},
	{`sum(count_over_time({app="api"}[10m])) > 4`, 500, `{} 5`},
	{`sum(count_over_time({app="api"}[10m])) > bool 10`, 500, `{} 0`},
	{`sum by (app) (count_over_time({env=~".+"}[10m])) and sum by (app) (count_over_time({env="dev"}[10m]))`, 500, `{app="db"} 3`},
	{`sum by (app) (count_over_time({env=~".+"}[10m])) unless sum by (app) (count_over_time({env="dev"}[10m]))`, 500, `{app="api"} 5 {app="my-api-2"} 4`},
	{`sum by (app) (count_over_time({app="db"}[10m])) or sum by (app) (count_over_time({app="api"}[10m]))`, 500, `{app="api"} 5 {app="db"} 3`},
	{`sum by (app, env) (count_over_time({env="prod"}[10m])) / on (env) group_left sum by (env) (count_over_time({env="prod"}[10m]))`, 500,
		`{app="api",env="prod"} 0.5555555555555556 {app="my-api-2",env="prod"} 0.4444444444444444`},
	{`sum(count_over_time({app="db"}[10m])) / 0`, 500, `{} NaN`},
	{`topk(1, sum by (app) (count_over_time({env=~".+"}[10m])))`, 500, `{app="api"} 5`},
	{`bottomk(1, sum by (app) (count_over_time({env=~".+"}[10m])))`, 500, `{app="db"} 3`},
	{`absent_over_time({app="none"}[5m])`, 500, `{app="none"} 1`},
	{`absent_over_time({app="db"}[10m])`, 500, ``},
	{`label_replace(sum by (app) (count_over_time({app="db"}[10m])), "x", "$1", "app", "(.).*")`, 500, `{app="db",x="d"} 3`},
	{`vector(3)`, 500, `{} 3`},
}

// victoriaSteps are metric queries over a range with steps of a minute, so many seconds after the base time,
// and the values of each series.
var victoriaSteps = []struct {
	query    string
	from, to int
	want     string
}{
	{`sum by (app) (count_over_time({app="db"}[5m]))`, 0, 360, `{app="db"} 1 2 3 3 3 2 1`},
	{`sum by (app) (rate({app="db"}[5m]))`, 0, 60, `{app="db"} 0.0033333333333333335 0.006666666666666667`},
	{`sum(count_over_time({app="db"}[90s]))`, 0, 240, `{} 1 2 2 1 .`},
	{`bottomk(1, sum by (app) (count_over_time({env=~".+"}[1m])))`, 60, 120, `{app="db"} 1 1`},
	{`sort_desc(sum by (app) (count_over_time({app="db"}[1m])))`, 60, 120, `{app="db"} 1 1`},
	{`sum by (app) (count_over_time({app=~"db|api"}[10m])) / on () group_left sum(count_over_time({app=~"db|api"}[10m]))`, 120, 180,
		`{app="api"} 0.625 0.625 {app="db"} 0.375 0.375`},
	{`max by (app) (max_over_time({app="db"} | logfmt | unwrap n [2m]))`, 0, 180, `{app="db"} 5 7 9 9`},
	{`sum(count_over_time({app="db"}[5m])) > 2`, 0, 300, `{} . . 3 3 3 .`},
	{`absent_over_time({app="db"}[1m])`, 60, 240, `{app="db"} . . 1 1`},
}

package linetest

import "strconv"

// Queries are stages that use each feature at least once.
func Queries() []string {
	var all []string
	for _, list := range [][]string{filters(), parsers(), labelFilters(), formats(), functions(), paths(), others()} {
		all = append(all, list...)
	}
	return all
}

func filters() []string {
	return []string{
		``,
		`|= "foo"`, `!= "foo"`, `|= "foo" |= "bar"`, `|= "foo" != "bar"`, `|= ""`, `!= ""`, `!~ ""`,
		`|= "foo" or "200"`, `!= "foo" or "200"`, `|~ "^GET" or "500"`, `!~ "foo" or "hello"`,
		`|~ "foo"`, `!~ "foo"`, `|~ "(?i)foo"`, `|~ "(?i)foobaz"`, `|~ "(?i)k"`, `|~ "(?i)s+"`, `|~ "(?i)stra\u00dfe"`,
		`|~ "foo|200"`, `|~ "foo|bar|hello"`, `|~ "(?i)(foo|hello)"`, `|~ "f(oo|x)b"`, `|~ "foo(bar|qux)"`,
		`|~ ".*foo.*"`, `|~ ".*"`, `|~ ".+"`, `|~ "foo.+"`, `|~ "^foo"`, `|~ "bar$"`, `|~ "^hello world$"`, `|~ "^$"`,
		`|~ "foo.*bar"`, `|~ "(?i)foo.*baz"`, `|~ "two.lines"`, `|~ "(?s)two.lines"`, `|~ "two.*bar"`, `|~ "(?s)two.*bar"`,
		`|~ "[0-9]{3}"`, `|~ "\\d+ms"`, `|~ "[fF]oo"`, `|~ "(foo|bar) (foo|bar)"`, `|~ "\\bbar\\b"`, `|~ "fo{2}"`, `|~ "fo{1,3}b"`,
		`|~ "a?foo"`, `|~ "(GET|POST) /(api|login).* (200|500)"`, `|~ "\\x{fffd}"`, `|~ "(foo)?"`, `|~ "x|"`, `|~ "\ufffd"`, `|~ "\n"`, `|~ "x.*\ufffd"`,
		`|> "<_>bar"`, `|> "foo <_>"`, `|> "<_> foo <_>"`, `!> "<_>bar"`, `|> ""`, `!> ""`, `|> "hello world"`, `|> "<_>"`, `|> "foo<_>bar"`,
		`|> "GET <_> 200 <_>" or "POST <_>"`, `!> "GET <_>" or "POST <_>"`,
		`|= ip("192.168.0.7")`, `!= ip("192.168.0.7")`, `|= ip("192.168.0.0/16")`, `|= ip("10.0.0.0-10.0.0.9")`, `|= ip("2001:db8::/32")`, `|= ip("::1")`,
		`|= ip("fe80::-fe80::ff")`, `|= ip("1.2.3.4")`, `|= ip("0.0.0.0/0")`, `|= ip("10.0.0.1")`,
		`|= "foo" |~ "(?i)BAR" != "baz"`, `|= "level" | logfmt |= "info"`, `| line_format "foo {{.app}}" |= "foo" != "GET"`,
	}
}

func parsers() []string {
	return []string{
		`| json`, `| json | json`, `| logfmt`, `| logfmt --strict`, `| logfmt --keep-empty`, `| logfmt --strict --keep-empty`,
		`| json | logfmt`, `| logfmt | json`, `| unpack`, `| unpack | json`, `| unpack | logfmt`,
		`| json a="a"`, `| json x="nested.b.c"`, `| json x="nested.b.d[2].e", y="arr[1]", z="arr[2].three"`, `| json x="[0].a", y="[1].b[1]"`,
		`| json x="nested[\"x y\"]"`, `| json app="level"`, `| json level, status`, `| json x="missing"`, `| json x="nested"`, `| json x="arr"`,
		`| json x="ok", y="none", z="nested.b"`, `| json x="a", y="a"`, `| json a="a.a.a"`, `| json x="arr[3][0]"`, `| json level="level", app="app", status="status"`,
		`| json | json level="msg"`, `| json x="a[0]"`, `| json x="b.c", y="e"`, `| json x="arr[7]", y="arr[0]"`, `| json x="_entry"`,
		`| logfmt a="a"`, `| logfmt x="level", y="msg"`, `| logfmt level, app`, `| logfmt x="a", a="d"`, `| logfmt --strict x="a", y="k"`, `| logfmt x="missing"`,
		`| logfmt status="status"`, `| logfmt | logfmt x="level"`, `| logfmt a="b", b="a"`, `| logfmt trace_id="trace_id"`,
		`| regexp "(?P<method>\\w+) (?P<path>[^ ]+) (?P<status>\\d+)"`, `| regexp "(?P<a>foo)|(?P<b>bar)"`, `| regexp "^(?P<app>\\w+)"`, `| regexp "(?P<x>(?P<y>.)o*)"`,
		`| regexp "level=(?P<level>\\w+)"`, `| regexp "(?i)(?P<k>k)"`,
		`| pattern "<method> <path> <status> <_>"`, `| pattern "<_> world"`, `| pattern "level=<level> <rest>"`, `| pattern "<a>b<c>"`, `| pattern "GET <path>?<q> <_>"`,
		`| pattern "<app> <_>\"<agent>\""`, `| pattern "{<_>:<v>,<rest>}"`,
	}
}

func labelFilters() []string {
	return []string{
		`| json | level="info"`, `| json | level!="info"`, `| json | level=~"info|error"`, `| json | level!~"in.*"`, `| json | level=""`, `| json | level=~"nf.*"`, `| json | level=~".*nf"`, `| json | level=~""`, `| json | level!~""`, `| json | level=~"(?i)INFO"`, `| json | level!=""`,
		`| json | status=200`, `| json | status!=200`, `| json | status>=400`, `| json | status<400`, `| json | status==503`, `| json | n>4.5`, `| json | f<=0.5`, `| json | neg<0`,
		`| json | dur>10ms`, `| json | d<=1h30m`, `| json | d=1h30m`, `| json | d!=-2s`, `| json | size>1KB`, `| json | b>=5MB`, `| json | b==1024B`, `| json | b<1GiB`,
		`| json | e>5`, `| json | e>5s`, `| json | e>5KB`, `| json | e>5 | __error__=""`, `| json | __error__!=""`, `| json | __error__="JSONParserErr"`, `| json | __error_details__!=""`,
		`| json | addr=ip("192.168.1.1")`, `| json | addr!=ip("192.168.0.0/16")`, `| json | remote=ip("2001:db8::/32")`, `| logfmt | addr=ip("10.0.0.0-10.2.0.0")`, `| json | missing=ip("1.1.1.1")`,
		`| json | level="info" and status=200`, `| json | level="error" or status=200`, `| json | level="info", status=200`, `| json | level="info" status=200`,
		`| json | (level="error" or status<300) and app="web"`, `| json | level="error" or status=200 and ok="true"`, `| json | (e>5 and n>4) or app="web"`, `| json | (app="x" and e>5) or app="web"`,
		`| logfmt | level="info"`, `| logfmt | dur>1s`, `| logfmt | size>2KB and status>=500`, `| logfmt | n<0 or f>2`, `| logfmt | level=~"(?i)info"`,
		`| logfmt --strict | __error__=""`, `| logfmt --strict | __error__="LogfmtParserErr"`, `| level="warn"`, `| trace_id="abc123"`, `| trace_id!="abc123"`, `| app="web"`, `| app="nope"`,
		`| app_extracted="other"`, `| user=~"me.a"`, `| user=~"m.*|x"`, `| status>5`, `| status="9"`, `| app>5`, `| json | a="first"`, `| json | a!="first"`, `| json | nested_b_c="deep"`,
		`| json | nested_a>0`, `| json | a_a_a_a="v"`, `| json | b_c="nope"`, `| level="info" | json | level="info"`, `| json | level_extracted="info"`, `| json | level_extracted!="info"`,
		`| pattern "<method> <_>" | method="GET"`, `| regexp "(?P<n>\\d+)" | n>100`, `| unpack | level="packed"`, `| json | n>4 | n<6 | f=0.5`,
		`| json | status>=200 and status<500 or level="warn"`, `| json | d>1h or b>1MB`, `| json | level="info" | line_format "{{.msg}}" |= "hello"`,
	}
}

func formats() []string {
	return []string{
		`| line_format "{{.app}}"`, `| line_format "{{.missing}}"`, `| line_format "{{ .app }} {{ .missing }}!"`, `| line_format "plain"`, `| line_format ""`, `| line_format "{{__line__}}"`,
		`| line_format "{{__line__ | upper}}"`, `| line_format "{{__timestamp__ | unixEpochNanos}}"`, `| json | line_format "{{.level}}: {{.msg}}"`, `| json | line_format "{{.nested_b_c}}"`,
		`| json | line_format "{{.__error__}} x"`, `| line_format "{{.user}}" | logfmt`, `| json | line_format "{{.msg}}" | line_format "{{__line__}}!"`,
		`| line_format "{{if eq .app \"web\"}}yes{{else}}no{{end}}"`, `| line_format "{{range $i, $c := fromJson .arr}}{{$i}}={{$c}};{{end}}"`,
		`| json arr="arr" | line_format "{{range $i, $c := fromJson .arr}}{{$i}}={{$c}};{{end}}"`, `| line_format "{{with .app}}<{{.}}>{{end}}"`, `| line_format "{{range $k, $v := .}}{{$k}}={{$v}},{{end}}"`,
		`| line_format "{{range $i := 3}}{{$i}}{{end}}"`, `| line_format "{{define \"x\"}}[{{.}}]{{end}}{{template \"x\" .app}}"`, `| line_format "{{ $x := .app }}{{ $x }}{{ $x | len }}"`,
		`| line_format "{{printf \"%-10s|%5d|%v\" .app 42 .}}"`, `| line_format "{{.app | printf \"%q\"}}"`, `| line_format "{{index . \"app\"}}"`, `| line_format "{{slice .app 1 2}}"`, `| line_format "{{.app.x}}"`,
		`| line_format "{{print .app 1 2 \"x\"}}{{println .app}}"`, `| line_format "{{html .app \"<b>\"}}{{js \"a'b\"}}{{urlquery \"a b\"}}"`, `| line_format "{{and .app .missing}}{{or .missing .app}}{{not .app}}"`,
		`| line_format "{{eq .app \"web\" \"x\"}}{{ne 1 2}}{{lt 1 2}}{{le 2 2}}{{gt \"b\" \"a\"}}{{ge 1 2}}"`, `| line_format "{{substr 5 2 .app}}"`, `| line_format "{{repeat -1 \"x\"}}"`, `| line_format "{{div 1 0}}"`,
		`| line_format "a{{/* c */}}b{{- \" x \" -}} c"`, `| line_format "{{len .app}}{{.}}"`, `| line_format "{{range .}}{{.}}{{break}}{{end}}"`,
		`| label_format b="{{.app}}"`, `| label_format b=app`, `| label_format app=b`, `| label_format app="new"`, `| label_format b=app,c="{{.b}}{{.app}}"`, `| label_format c="{{.app}}",b=app,d="{{.app}}"`,
		`| label_format b="{{.missing}}"`, `| label_format b="{{.app.x}}"`, `| label_format b="{{.app.x}}",c="ok"`, `| label_format trace=trace_id`, `| label_format trace_id="{{.trace_id}}!"`, `| label_format b="{{__line__}}"`,
		`| json | label_format lvl=level, level="x"`, `| json | label_format a="{{.a}}{{.b}}" | json`, `| label_format __error_details__="x"`, `| label_format b="{{__timestamp__ | date \"2006-01-02\"}}"`,
		`| json | label_format level="{{.level | ToUpper}}"`, `| label_format level="{{ .level }}"`, `| label_format user=level`, `| label_format a=app | label_format app=a`, `| label_format status=status_extracted`,
	}
}

func functions() []string {
	var all []string
	for _, f := range []string{
		`ToLower .x`, `ToUpper .x`, `lower .x`, `upper .x`, `title .x`, `trunc 5 .x`, `trunc -5 .x`, `trunc 500 .x`, `substr 1 4 .x`, `substr -1 3 .x`, `substr 2 -1 .x`, `substr 0 9999 .x`,
		`contains "o" .x`, `hasPrefix "{" .x`, `hasSuffix "}" .x`, `indent 3 .x`, `nindent 2 .x`, `replace "o" "00" .x`, `replace "" "-" .x`, `repeat 2 .x`, `repeat 0 .x`, `trim .x`, `trimAll "{}h" .x`, `trimSuffix "}" .x`, `trimPrefix "{" .x`,
		`Replace .x "o" "0" 1`, `Replace .x "o" "0" -1`, `Trim .x "{}"`, `TrimLeft .x "{h"`, `TrimRight .x "}d"`, `TrimPrefix .x "hello"`, `TrimSuffix .x "world"`, `TrimSpace .x`,
		`regexReplaceAll "o+" .x "<$0>"`, `regexReplaceAll "(l)(o)" .x "${2}${1}"`, `regexReplaceAllLiteral "o+" .x "$0"`, `regexReplaceAll "(" .x "y"`, `regexReplaceAll "" .x "-"`, `regexReplaceAll "x*" .x "-$0-"`, `count "o" .x`, `count "[" .x`, `count "" .x`,
		`urlencode .x`, `urldecode .x`, `urldecode "a%20b+c"`, `b64enc .x`, `b64dec .x`, `b64enc .x | b64dec`, `b64dec "aGVsbG8="`, `b64dec "aGVsbG8"`,
		`alignLeft 8 .x`, `alignRight 8 .x`, `alignLeft 60 .x`, `alignRight 60 .x`, `alignLeft -1 .x`, `alignRight 0 .x`, `alignLeft 3 "é√x̂"`,
		`int .x`, `int "12"`, `int "0x1f"`, `int "12.9"`, `int "-.5"`, `int "1e3"`, `int 3.9`, `int true`, `int "08"`, `int " 1"`, `int "1_000"`, `float64 .x`, `float64 "1e3"`, `float64 "0x1p4"`, `float64 "inf"`, `float64 ""`, `float64 7`,
		`add 1 2 "3" .x`, `add`, `sub 5 "2"`, `mul 2 3 "4"`, `mul 2`, `div 7 2`, `div -7 2`, `div 1 "x"`, `mod 7 3`, `mod 7 0`, `addf 0.1 0.2`, `addf "1.5" 2 .x`, `addf`, `subf 1 0.9`, `subf 5`, `mulf 1.1 3 "0.7"`, `divf 1 3`, `divf 2 3`, `divf -2 3`, `divf 10 4 2`, `divf 1 0`,
		`divf 1e300 3`, `mulf 1e200 1e200`, `divf 1e-10 3`, `addf 1e16 1`, `addf "NaN" 1`, `mulf "inf" 2`, `max 1 5 "3"`, `min 4 "2" 9`, `max 1`, `maxf 1.5 "2.5" 2`, `minf 1.5 "0.5"`, `ceil 1.2`, `ceil "1.2"`, `floor -1.2`, `floor .x`,
		`round 123.456 2`, `round "123.555" 2`, `round 2.5 0`, `round -2.5 0`, `round 123.456 -1`, `round 1.25 1 0.6`, `round 3 0`,
		`default "d" .missing`, `default "d" .x`, `default "d" 0`, `default 1 false`, `default "d"`, `fromJson .x`, `fromJson "[1,2]"`, `fromJson "{\"a\":{\"b\":1.5}}"`, `fromJson "nope"`, `(fromJson "{\"a\":{\"b\":1.5}}").a.b`,
		`bytes "5KB"`, `bytes "1.5 MiB"`, `bytes "x"`, `bytes "1,000"`, `bytes ""`, `duration "1h30m"`, `duration_seconds "15ms"`, `duration "x"`,
		`unixToTime "1673798889"`, `unixToTime "1673798889902" | unixEpochMillis`, `unixToTime "19373" | unixEpoch`, `unixToTime "1673798889902000" | unixEpochNanos`, `unixToTime "1673798889902000000" | date "2006-01-02T15:04:05.000Z07:00"`, `unixToTime "12"`, `unixToTime "x"`,
		`__timestamp__ | unixEpoch`, `__timestamp__ | unixEpochMillis`, `__timestamp__ | date "2006-01-02T15:04:05Z"`, `__timestamp__`, `date "2006" 1700000000`, `toDate "2006-01-02" "2023-11-14" | unixEpoch`, `toDate "2006" "x"`,
		`toDateInZone "2006-01-02 15:04" "Europe/Berlin" "2023-11-14 10:00" | unixEpoch`, `toDateInZone "2006-01-02" "Nowhere" "2023-11-14" | unixEpoch`, `(__timestamp__).Year`,
		`unixEpoch .x`, `add .x.y`, `ToLower 5`, `trunc "5" .x`, `Replace .x "o"`, `nosuch .x`, `indent -1 .x`, `printf "%5.2f %x %v %t %%" 3.14159 "hi" nil true`, `printf "%d" "x"`, `printf "%*d" 5 42`, `printf "%[2]s %[1]s" "a" "b"`,
		`eq .x 5`, `index .x 0`, `index .x 9999`, `slice .x 1`, `len .x`, `call .x`, `printf`, `urlquery .x`, `html .x`, `js .x`,
	} {
		all = append(all, "| label_format x=`{{__line__}}` | line_format `{{"+f+"}}`")
	}
	return all
}

// paths are paths and keys that are wrong, or right against expectation.
func paths() (all []string) {
	for _, p := range []string{
		``, ` `, `.a`, `a.`, `a..b`, `a b`, `a.b c`, `ключ`, `a.ключ`, `a-b`, `1a`, `a1`, `0`, `a[`, `a]`, `a[]`, `a["b"`, `a["b]`, `a["b"]]`, `["a"]`, `["x y"] . a`, `[0`, `[0]`, `[0x]`, `[0 ]`, `[1.5]`,
		`a 1.5`, `a 1`, `[99999999999999999999]`, `a[0]b`, `a["b"]c`, `a"b"`, `"a"`, `"a" "b"`, `"k""k"`, `"a"b`, `a"b`, `"`, `"a`, "a\x00b", "\"a\x00b", "[0\x00]", "\xff", `a\`, `a\n`, `a.b`, `a#`, `a.#`, `[#]`, `["a"#]`,
	} {
		all = append(all, "| json x="+strconv.Quote(p), "| logfmt x="+strconv.Quote(p))
	}
	return all
}

func others() []string {
	return []string{
		`| decolorize`, `| decolorize | logfmt`, `| drop app`, `| drop app, level`, `| drop app="web"`, `| drop app="x"`, `| drop level=~"w.*", env`, `| drop missing`, `| drop missing=""`, `| drop trace_id, user`,
		`| json | drop __error__`, `| json | drop __error_details__`, `| json | drop __error__, __error_details__`, `| json | drop __error__="JSONParserErr"`, `| json | drop __error__="x"`, `| json | drop __error_details__=~"Value.*"`,
		`| keep app`, `| keep app, level`, `| keep app="web"`, `| keep app="x"`, `| keep missing`, `| json | keep level`, `| json | keep level=~"in.*", app`, `| json | keep a, b | logfmt`,
		`| json | drop a | json`, `| json | drop level | logfmt`, `| json | drop a, b, c, d, e`, `| logfmt | drop level="info"`, `| json | keep status | drop status`, `| drop app | json`, `| drop app | label_format app="back"`,
		`| json | drop level | level=""`, `| keep level | level="warn"`, `| drop status_extracted | logfmt`, `| json | line_format "{{.level}}" | drop level | pattern "<level>"`,
		`| decolorize | line_format "{{__line__ | len}}"`, `| json | decolorize | drop a`, `| drop app | line_format "{{.app}}x"`, `| keep env | label_format b="{{.app}}-{{.env}}"`,
	}
}

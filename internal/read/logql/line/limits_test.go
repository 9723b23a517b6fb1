package line_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// process runs a query's stages on a line of {a="b"}.
func process(t testing.TB, query, l string) (line.Result, bool, error) {
	t.Helper()
	r := compile(t, `{a="b"} `+query).Runner()
	r.SetStream(model.LabelsOf("a", "b"))
	var out line.Result
	keep, err := r.Process(1e18, []byte(l), nil, &out)
	return out, keep, err
}

// TestLimits: work that would take a gigabyte or never end fails with an error that names the limit.
func TestLimits(t *testing.T) {
	racetest.SkipSerial(t)
	for _, template := range []string{
		`{{repeat 1000000000 .a}}`,
		`{{repeat 9223372036854775807 "xx"}}`,
		`{{indent 1000000000 .a}}`,
		`{{nindent 1000000000 .a}}`,
		`{{alignLeft 1000000000 .a}}`,
		`{{alignRight 1000000000 .a}}`,
		`{{printf "%900000d" 1}}` + strings.Repeat(`{{printf "%900000d" 1}}`, 100),
		`{{printf "` + strings.Repeat("%900000d", 1000) + `"}}`,
		`{{printf "%*d%[1]*d%[1]*d" 999999 1}}` + strings.Repeat(`{{printf "%*d" 999999 1}}`, 100),
		`{{$x := "xxxxxxxx"}}{{range $i := 100}}{{$x = printf "%s%s" $x $x}}{{end}}`,
		`{{$x := "xxxxxxxx"}}{{range $i := 100}}{{$x = print $x $x}}{{end}}`,
		`{{$x := "xxxxxxxx"}}{{range $i := 100}}{{$x = replace "x" "xx" $x}}{{end}}`,
		`{{$x := "xxxxxxxx"}}{{range $i := 100}}{{$x = regexReplaceAll "x" $x "$0$0"}}{{end}}`,
		`{{$x := "xxxxxxxx"}}{{range $i := 100}}{{$x = regexReplaceAllLiteral "x" $x "xx"}}{{end}}`,
		`{{$x := "xxxxxxxx"}}{{range $i := 100}}{{$x = b64enc $x}}{{end}}{{$x}}`,
		`{{range $i := 1000000000000}}{{end}}`,
		`{{range $i := 1000000000}}{{range $j := 1000000000}}{{continue}}{{end}}{{end}}`,
		`{{define "x"}}{{template "x" .}}{{end}}{{template "x" .}}`,
		`{{define "x"}}{{template "y" .}}{{template "y" .}}{{end}}{{define "y"}}{{template "x" .}}{{template "x" .}}{{end}}{{template "x" .}}`,
		`{{template "line" .}}`,
		`{{if true}}{{block "b" .}}{{template "b" .}}{{end}}{{end}}`,
		`{{$x := 1e300}}{{range $i := 100000}}{{$x = mulf 1e300 1e300 1e300 1e300 1e300 1e300 1e300 1e300 1e300 1e300 1e300 1e300 1e300}}{{end}}`,
	} {
		if _, _, err := process(t, "| line_format `"+template+"`", "line"); !errors.Is(err, model.ErrLimit) || !strings.Contains(err.Error(), "8388608 bytes") {
			t.Errorf("%.100s: %v", template, err)
		}
	}
	if _, _, err := process(t, "| json", strings.Repeat(`{"a":`, 10000)+"1"+strings.Repeat("}", 10000)); !errors.Is(err, model.ErrLimit) {
		t.Error("deep JSON:", err)
	}
	var many strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&many, "k%d=%d ", i, i)
	}
	if _, _, err := process(t, "| logfmt", many.String()); !errors.Is(err, model.ErrLimit) || !strings.Contains(err.Error(), "16384 labels") {
		t.Error("many labels:", err)
	}
	long := `{"` + strings.Repeat("x", 100000) + `":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11}}`
	if _, _, err := process(t, "| json", long); !errors.Is(err, model.ErrLimit) {
		t.Error("long labels:", err)
	}
	q, err := syntax.ParseLog(`{a="b"} |~ "(abc|def){1000}x"`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := line.Compile(q.Stages); !errors.Is(err, model.ErrLimit) || !strings.Contains(err.Error(), "8192 are allowed") {
		t.Error("large expression:", err)
	}
}

// TestDeepButFine: what is within the limits is not an error.
func TestDeepButFine(t *testing.T) {
	out, keep, err := process(t, "| json", strings.Repeat(`{"a":`, 200)+"1"+strings.Repeat("}", 200))
	if err != nil || !keep || string(out.Parsed) == "" {
		t.Error(keep, err)
	}
	out, keep, err = process(t, "| json", `{"a":`+strings.Repeat("[", 100000)+strings.Repeat("]", 100000)+`,"x":"y"}`)
	if err != nil || !keep || string(out.Parsed.Get("x")) != "y" {
		t.Error(keep, err, out.Parsed)
	}
	out, keep, err = process(t, "| line_format `{{range $i := 1000}}{{printf \"%5d\" $i}}{{end}}`", "x")
	if err != nil || !keep || len(out.Line) != 5000 {
		t.Error(keep, err, len(out.Line))
	}
	out, _, err = process(t, "| json", `{"a":"1","b":{"c":{"d":"x","d":"second"}},"e":""}`)
	if want := model.LabelsOf("a_extracted", "1", "b_c_d", "x"); err != nil || !strings.HasPrefix(string(out.Parsed), string(want)) || len(out.Parsed) == len(want) {
		t.Errorf("%v %s: no empty label at the end", err, out.Parsed)
	}
}

// TestCompileErrors: what is wrong with a stage is said of it.
func TestCompileErrors(t *testing.T) {
	for query, want := range map[string]string{
		"| line_format `{{.x`":            "invalid line template: template: line:1: unclosed action",
		"| line_format `{{nosuch .x}}`":   `function "nosuch" not defined`,
		"| label_format a=`{{.x`":         "invalid template for label 'a'",
		"| label_format __error__=`x`":    "__error__ cannot be formatted",
		"| label_format a=b,a=c":          "multiple label name 'a' not allowed in a single format operation",
		"| json a=`b[`":                   "cannot parse expression [b[]",
		"| logfmt a=`b.c`":                "cannot parse expression [b.c]",
		"| a=ip(`nope`)":                  `ip: invalid pattern: "nope"`,
		"|= ip(`nope`)":                   `ip: invalid pattern: "nope"`,
		"|~ ip(`1.2.3.4`)":                "ip: invalid operation",
		"|= ip(`10.0.0.9-10.0.0.1`)":      "ip: invalid pattern",
		"| json a=`b[1.5]`":               "unexpected $end, expecting STRING or INDEX",
		"| line_format `x` |= ip(`nope`)": "ip: invalid pattern",
	} {
		q, err := syntax.ParseLog(`{a="b"} ` + query)
		if err == nil {
			_, err = line.Compile(q.Stages)
		}
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
}

// TestNotAsLoki: where package doc says that Loki is not followed.
func TestNotAsLoki(t *testing.T) {
	for _, c := range []struct{ query, line, want string }{
		{"|~ `foo|.*`", "bar", "bar"},
		{"|= `` or `foo`", "bar", "bar"},
		{"| decolorize |= `a b`", "a \x1b[31mb", "a b"},
		{"| logfmt | label_format level=`x` | level=`x`", "level=info", "level=info"},
		{"| json | line_format `{{.__error__}}`", "x", "JSONParserErr"},
		{"| logfmt | level=~`err.*`", "level=stderr", ""},
		{"| logfmt | level=~`err.*`", "level=error", "level=error"},
	} {
		p := compile(t, `{a="b"} `+c.query)
		if f := p.Filter(); f != nil && len(f.Select(nil, page("", []string{c.line}), 0, 1)) == 0 {
			t.Errorf("%s drops %q", c.query, c.line)
		}
		if out, keep, err := process(t, c.query, c.line); err != nil || keep != (c.want != "") || keep && string(out.Line) != c.want {
			t.Errorf("%s: %q gives %q, %v, %v", c.query, c.line, out.Line, keep, err)
		}
	}
}

// TestWorkIsCharged: what templates make is charged to the query, once for all lines until the runner is
// bound again, and a refusal is the query's error.
func TestWorkIsCharged(t *testing.T) {
	r := compile(t, "{a=`b`} | label_format x=a"+strings.Repeat(" | label_format x=`{{.x}}{{.x}}`", 20)+" | line_format `{{.x | len}}`").Runner()
	r.SetStream(model.LabelsOf("a", "b"))
	charged := int64(0)
	r.Bind(t.Context(), func(n int64) error { charged += n; return nil })
	var out line.Result
	for range 3 {
		if keep, err := r.Process(1, []byte("x"), nil, &out); !keep || err != nil || string(out.Line) != "1048576" {
			t.Fatal(keep, err, out.Line)
		}
		if charged < 2<<20 || charged > line.MaxTemplateWork {
			t.Errorf("%d bytes are charged", charged)
		}
	}
	first := charged
	charged = 0
	r.Bind(t.Context(), func(n int64) error { charged += n; return nil })
	if _, err := r.Process(1, []byte("x"), nil, &out); err != nil || charged != first {
		t.Errorf("%v, %d bytes are charged when the runner is used again, should be %d", err, charged, first)
	}
	refusal := errors.New("no more")
	r = compile(t, "{a=`b`} | line_format `{{repeat 100000 .a}}` | line_format `{{.a}}x`").Runner()
	r.SetStream(model.LabelsOf("a", "b"))
	r.Bind(t.Context(), func(n int64) error { return refusal })
	if _, err := r.Process(1, []byte("x"), nil, &out); !errors.Is(err, refusal) {
		t.Error(err)
	}
}

// TestEndsBetweenStages: the stages of a line stop when the query has ended.
func TestEndsBetweenStages(t *testing.T) {
	for _, query := range []string{
		"| json | logfmt", "| regexp `(?P<x>.)` | pattern `<y>`", "| line_format `{{.a}}` |= `b`", "| unpack | a=`b`", "| decolorize | drop a", "| keep a | a=`b`",
		"| label_format " + strings.TrimSuffix(strings.Repeat("x%d=`{{.a}}`,", 20), ","),
	} {
		if n := strings.Count(query, "%d"); n > 0 {
			var numbers []any
			for i := range n {
				numbers = append(numbers, i)
			}
			query = fmt.Sprintf(query, numbers...)
		}
		r := compile(t, "{a=`b`} "+query).Runner()
		r.SetStream(model.LabelsOf("a", "b"))
		ctx, cancel := context.WithCancel(t.Context())
		r.Bind(ctx, nil)
		var out line.Result
		if _, err := r.Process(1, []byte("x"), nil, &out); err != nil {
			t.Errorf("%s: %v", query, err)
		}
		cancel()
		if _, err := r.Process(1, []byte("x"), nil, &out); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

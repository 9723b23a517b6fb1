package line_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/line/linetest"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

func addLines(f *testing.F) {
	for _, l := range linetest.Lines() {
		f.Add([]byte(l))
	}
}

// checkResult fails unless the labels of a result are sorted, of unique names, and written as they should.
func checkResult(t *testing.T, out *line.Result) {
	seen := map[string]bool{}
	for _, l := range []model.Labels{out.Stream, out.Metadata, out.Parsed} {
		var last []byte
		rest := l
		for {
			n, _, after, ok := rest.Next()
			if !ok {
				break
			}
			if last != nil && bytes.Compare(last, n) >= 0 || seen[string(n)] {
				t.Fatalf("%q stands after %q, or twice", n, last)
			}
			seen[string(n)] = true
			last, rest = n, after
		}
		if len(rest) > 0 {
			t.Fatalf("malformed labels %q", rest)
		}
	}
}

// fuzzStages runs queries on any line.
func fuzzStages(f *testing.F, queries ...string) {
	var runners []*line.Runner
	for _, q := range queries {
		r := compile(f, `{app="web"} `+q).Runner()
		r.SetStream(model.LabelsOf("app", "web", "level", "base"))
		runners = append(runners, r)
	}
	metadata := model.LabelsOf("a", "meta", "trace_id", "x")
	f.Fuzz(func(t *testing.T, b []byte) {
		for i, r := range runners {
			before := bytes.Clone(b)
			var out line.Result
			keep, err := r.Process(1, b, metadata, &out)
			if err != nil && !errors.Is(err, model.ErrLimit) {
				t.Fatalf("%s: %v", queries[i], err)
			}
			if !bytes.Equal(b, before) {
				t.Fatalf("%s has changed the line", queries[i])
			}
			if keep && err == nil {
				checkResult(t, &out)
			}
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(jsonLine))
	addLines(f)
	fuzzStages(f, `| json`, `| json a="a.b", b="[0].x[1]", c="a[1][2].d", d="nested.b.d[2].e"`, `| unpack`, `| json | level="info"`, `| json | a_b="x"`)
}

// FuzzJSONValid: of well-formed objects without arrays each string, number and truth becomes a label.
func FuzzJSONValid(f *testing.F) {
	addLines(f)
	r := compile(f, `{app="web"} | json`).Runner()
	r.SetStream(model.LabelsOf("app", "web"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var v map[string]any
		if !utf8.Valid(b) || json.Unmarshal(b, &v) != nil {
			return
		}
		// Half of a pair of surrogates is an error to Loki, and to the library a character.
		if bytes.Contains(bytes.ToLower(b), []byte(`\ud`)) {
			return
		}
		var out line.Result
		keep, err := r.Process(1, b, nil, &out)
		if err != nil || !keep {
			t.Skip("more than fits")
		}
		// A field may have the name of the label itself, or one that becomes it, such as __error~_; and only
		// with an error of its own.
		if string(out.Parsed.Get(line.ErrorLabel)) == "JSONParserErr" && !bytes.Contains(b, []byte("JSONParserErr")) {
			t.Fatalf("%q is well formed: %s", b, out.Parsed)
		}
	})
}

func FuzzLogfmt(f *testing.F) {
	f.Add([]byte(logfmtLine))
	addLines(f)
	fuzzStages(f, `| logfmt`, `| logfmt --strict --keep-empty`, `| logfmt a="b", x="level"`, `| logfmt --strict | n > 5`)
}

func FuzzPattern(f *testing.F) {
	for _, p := range []string{"<a> <b>", "<_>x<a>", "x<a>", "<a>é<_>\"", "<a><b>", "<", "a<a"} {
		for _, l := range linetest.Lines() {
			f.Add(p, []byte(l))
		}
	}
	f.Fuzz(func(t *testing.T, pattern string, b []byte) {
		for _, s := range []syntax.Stage{
			&syntax.PatternParser{Pattern: pattern},
			&syntax.LineFilter{Op: syntax.LinePattern, Any: []syntax.LineOperand{{Value: pattern}}},
		} {
			p, err := line.Compile([]syntax.Stage{s})
			if err != nil {
				continue
			}
			if filter := p.Filter(); filter != nil {
				filter.Select(nil, page("", []string{string(b)}), 0, 1)
			}
			r := p.Runner()
			r.SetStream(nil)
			var out line.Result
			if keep, err := r.Process(1, b, nil, &out); err == nil && keep {
				checkResult(t, &out)
			}
		}
	})
}

// FuzzTemplate runs any template: it ends, with a result, an error of the line or a limit.
func FuzzTemplate(f *testing.F) {
	for _, q := range linetest.Queries() {
		q, err := syntax.ParseLog(`{a="b"} ` + q)
		if err != nil {
			continue
		}
		for _, s := range q.Stages {
			if s, ok := s.(*syntax.LineFormat); ok {
				f.Add(s.Template, "hello world")
			}
		}
	}
	f.Add(`{{range $i := 1000000000000}}{{end}}`, "")
	f.Add(`{{define "x"}}{{template "x"}}{{end}}{{template "x"}}`, "")
	f.Add(`{{range .}}{{range $}}{{printf "%9d" 1}}{{end}}{{end}}`, "")
	f.Fuzz(func(t *testing.T, template, l string) {
		p, err := line.Compile([]syntax.Stage{
			&syntax.LabelFormat{Assignments: []syntax.Assignment{{Label: "x", Value: l}, {Label: "y", Value: template}}},
			&syntax.LineFormat{Template: template},
		})
		if err != nil {
			return
		}
		r := p.Runner()
		r.SetStream(model.LabelsOf("a", "b"))
		var out line.Result
		keep, err := r.Process(1, []byte(l), nil, &out)
		if err != nil && !errors.Is(err, model.ErrLimit) {
			t.Fatal(err)
		}
		if err == nil && keep {
			checkResult(t, &out)
		}
	})
}

// FuzzRegexp: a filter keeps what the expression matches, and what it needs is there.
func FuzzRegexp(f *testing.F) {
	for _, q := range linetest.Queries() {
		q, err := syntax.ParseLog(`{a="b"} ` + q)
		if err != nil {
			continue
		}
		for _, s := range q.Stages {
			if s, ok := s.(*syntax.LineFilter); ok && (s.Op == syntax.LineMatches || s.Op == syntax.LineNotMatch) {
				for _, o := range s.Any {
					f.Add(o.Value, "foo bar hello\nworld Straße")
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, expr, l string) {
		s := &syntax.LineFilter{Op: syntax.LineMatches, Any: []syntax.LineOperand{{Value: expr}}}
		p, err := line.Compile([]syntax.Stage{s})
		if err != nil {
			return
		}
		want := linetest.PlainFilter(s, []byte(l))
		got := true
		if filter := p.Filter(); filter != nil {
			got = len(filter.Select(nil, page("foo", []string{l, l}), 1, 2)) == 1
		}
		if got != want {
			t.Fatalf("%q of %q: %v", expr, l, got)
		}
		if f := p.TextFilter(nil); want && f != nil && !satisfies(f, l, nil) {
			t.Fatalf("%q matches %q, but %+v rules it out", expr, l, f)
		}
	})
}

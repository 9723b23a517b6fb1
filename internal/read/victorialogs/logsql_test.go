package victorialogs

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

func matcher(name string, op model.MatchOp, value, prefix string) model.Matcher {
	m := model.Matcher{Name: name, Op: op, Value: value, Prefix: prefix}
	switch op {
	case model.MatchEqual:
		m.Match = func(v string) bool { return v == value }
	case model.MatchNotEqual:
		m.Match = func(v string) bool { return v != value }
	default:
		re := regexp.MustCompile("^(?s:" + value + ")$")
		m.Match = func(v string) bool { return re.MatchString(v) == (op == model.MatchRegexp) }
	}
	return m
}

func TestStreamFilter(t *testing.T) {
	for _, test := range []struct {
		m    model.Matcher
		want string // of streams or values
	}{
		{matcher("app", model.MatchEqual, `a"b\`, ""), `{"app"="a\"b\\"}`},
		{matcher("app", model.MatchEqual, "", ""), `{"app"=""}`},
		{matcher("app", model.MatchNotEqual, "x", ""), `{"app"!="x"}`},
		{matcher("app", model.MatchRegexp, "a|b", ""), `{"app"=~"a|b"}`},
		{matcher("app", model.MatchNotRegexp, "a|b", ""), `{"app"!~"a|b"}`},
		{matcher("app", model.MatchRegexp, "a[0-9]+", ""), `{"app"=~"a[0-9]+"}`},
		// A dot and a line break.
		{matcher("app", model.MatchRegexp, "a.b", "a"), `{"app"=~"a.*"}`},
		{matcher("app", model.MatchRegexp, ".+", ""), `{"app"!=""}`},
		{matcher("app", model.MatchRegexp, ".*", ""), ""},
		{matcher("app", model.MatchRegexp, `a\.b.+`, "a.b"), `{"app"=~"a\\.b.*"}`},
		{matcher("app", model.MatchNotRegexp, ".+", ""), ""},
		// The name may be another one there.
		{matcher("app_name", model.MatchEqual, "x", ""), `"shale stream":"=\"x\""`},
		{matcher("app_name", model.MatchEqual, `x"`, ""), ""},
		{matcher("app_name", model.MatchEqual, "é", ""), ""},
		{matcher("app_name", model.MatchEqual, "", ""), ""},
		{matcher("app_name", model.MatchNotEqual, "x", ""), ""},
		{matcher("app_name", model.MatchRegexp, "x.*", "x"), ""},
		{matcher("app", model.MatchEqual, "\xff", ""), ""},
	} {
		f, placed := translate(&model.Request{Matchers: []model.Matcher{test.m}}, false)
		if got := f.streams + f.values; got != test.want || len(placed) != 1 || (placed[0].Where == model.Local) != (got == "") {
			t.Errorf("%s %d %q: %s, want %s", test.m.Name, test.m.Op, test.m.Value, got, test.want)
		}
	}
}

// TestAnyOf: the streams of each filter pass the common one.
func TestAnyOf(t *testing.T) {
	a, b, av := filter{streams: `{"a"="1"}`}, filter{streams: `{"b"="2"}`}, filter{streams: `{"a"="1"}`, values: `v`}
	for _, test := range []struct {
		all  []filter
		want filter
	}{
		{[]filter{av}, av},
		{[]filter{a, b}, filter{streams: `{"a"="1" or "b"="2"}`}},
		{[]filter{av, b}, filter{streams: `{"a"="1" or "b"="2"}`}},
		{[]filter{av, {values: "w"}}, filter{values: "(v) or (w)"}},
		{[]filter{a, {}}, filter{}},
		{[]filter{a, {values: "w"}}, filter{}},
	} {
		if got := anyOf(test.all); got != test.want {
			t.Errorf("%q: %q, want %q", test.all, got, test.want)
		}
	}
}

func TestLineFilter(t *testing.T) {
	clause := func(all ...model.TextLiteral) model.TextClause { return model.TextClause{Any: all} }
	for _, test := range []struct {
		clauses []model.TextClause
		want    string
	}{
		{nil, ""},
		{[]model.TextClause{clause()}, ""},
		{[]model.TextClause{clause(model.TextLiteral{Value: "a.b("})}, `(_msg:~"a\\.b\\(" _msg:"b")`},
		{[]model.TextClause{clause(model.TextLiteral{Value: "GET /cart/ HTTP"})}, `(_msg:~"GET /cart/ HTTP" _msg:"cart")`},
		{[]model.TextClause{clause(model.TextLiteral{Value: "x", Fold: true})}, `_msg:~"(?i)x"`},
		{[]model.TextClause{clause(model.TextLiteral{Value: "a"}, model.TextLiteral{Value: "b"}), clause(model.TextLiteral{Value: "c"})}, `(_msg:~"a" or _msg:~"b") _msg:~"c"`},
		{[]model.TextClause{clause(model.TextLiteral{Name: "level", Value: "error"})}, `"level":="error"`},
		{[]model.TextClause{clause(model.TextLiteral{Name: "trace_id", Value: "t1"})}, ""},
		{[]model.TextClause{clause(model.TextLiteral{Value: "a"}, model.TextLiteral{Name: "trace_id", Value: "t1"})}, ""},
		{[]model.TextClause{clause(model.TextLiteral{Value: "\xff"})}, ""},
	} {
		f, placed := translate(&model.Request{TextFilter: &model.TextFilter{Clauses: test.clauses}}, false)
		if got := f.lines; got != test.want || len(placed) != len(test.clauses) {
			t.Errorf("%+v: %s, want %s", test.clauses, got, test.want)
		}
	}
}

// FuzzContains: a line that has a text passes its filter, by the rules of VictoriaLogs for expressions and
// words.
func FuzzContains(f *testing.F) {
	f.Add("a ", "user=ann GET /cart/71 ", " b", false)
	f.Add("x", "ünï word é_ü", "y", false)
	f.Add("", "(?i)[a", "", true)
	f.Fuzz(func(t *testing.T, before, text, after string, fold bool) {
		line := before + text + after
		if !utf8.ValidString(line) || !utf8.ValidString(text) || text == "" {
			t.Skip()
		}
		l := model.TextLiteral{Value: text, Fold: fold}
		got, ok := literal(&l)
		if !ok {
			t.Skip()
		}
		got = strings.TrimSuffix(strings.TrimPrefix(got, "("), ")")
		tokens := strings.FieldsFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
		for got != "" {
			isExpression := strings.HasPrefix(got, "_msg:~")
			got = strings.TrimPrefix(strings.TrimPrefix(got, "_msg:"), "~")
			quoted, err := strconv.QuotedPrefix(got)
			if err != nil {
				t.Fatalf("%q: %v", got, err)
			}
			value, err := strconv.Unquote(quoted)
			if err != nil {
				t.Fatal(err)
			}
			if isExpression && !regexp.MustCompile(value).MatchString(line) {
				t.Fatalf("%q does not match %q", value, line)
			}
			if !isExpression && !slices.Contains(tokens, value) {
				t.Fatalf("%q is no word of %q", value, line)
			}
			got = strings.TrimPrefix(got[len(quoted):], " ")
		}
	})
}

// FuzzStream: no spelling of a stream makes the reading fail in another way than by an error, and labels
// that are read are canonical.
func FuzzStream(f *testing.F) {
	f.Add(`{app="web",k="a\"b\\c\nd"}`)
	f.Add(`{service.name="x",1a="y",é="z"}`)
	f.Add("{}")
	f.Add(`{a="1",a="2"}`)
	f.Add(`{="1"}`)
	f.Fuzz(func(t *testing.T, spelling string) {
		var lb model.LabelsBuilder
		if readStream([]byte(spelling), &lb) != nil {
			return
		}
		if l, err := lb.Append(nil); err == nil {
			if err := model.Labels(l).Check(); err != nil {
				t.Fatalf("%q: %v", spelling, err)
			}
		}
	})
}

func TestStreamNames(t *testing.T) {
	var lb model.LabelsBuilder
	if err := readStream([]byte(`{app="w=\",x",service.name="x",app.kubernetes.io/name="n"}`), &lb); err != nil {
		t.Fatal(err)
	}
	l, err := lb.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := model.LabelsOf("app", `w=",x`, "service_name", "x", "app_kubernetes_io_name", "n"); string(l) != string(want) {
		t.Errorf("%s, want %s", model.Labels(l), want)
	}
}

package line_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/line/linetest"
	"github.com/shaledb/shale/internal/read/logql/line/match"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// compile compiles the stages of a query.
func compile(t testing.TB, query string) *line.Pipeline {
	t.Helper()
	q, err := syntax.ParseLog(query)
	if err != nil {
		t.Fatal(err)
	}
	p, err := line.Compile(q.Stages)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// page puts lines into a page, after the bytes of other lines.
func page(before string, lines []string) *model.TextRows {
	rows := &model.TextRows{Begin: uint32(len(before)), Bytes: []byte(before)}
	for i, l := range lines {
		rows.Times = append(rows.Times, int64(i))
		rows.Bytes = append(rows.Bytes, l...)
		rows.Ends = append(rows.Ends, uint32(len(rows.Bytes)))
	}
	rows.Bytes = append(rows.Bytes, before...)
	return rows
}

// TestSelectPage: a page gives the lines that its lines give one by one. Most are short, so that hits across
// their ends are many.
func TestSelectPage(t *testing.T) {
	filters := []string{
		`|= "ab"`, `|= "a"`, `!= "ab"`, `!= "b"`, `|= "ab" != "ba"`, `|= "ab" or "ba"`, `!= "ab" or "bb"`, `|~ "(?i)AB"`, `|~ "(?i)sk"`, `!~ "(?i)sk|ab"`, `|~ "a.*b"`, `|~ "^ab"`,
		`|~ "ab$"`, `|~ "^(ab|ba)$"`, `|~ "[ab]k"`, `|> "a<_>b"`, `!> "<_>a"`, `|= "" |= "b"`, `|~ "a+b" |= "k"`, `|~ "(a|b){2}k"`, `!~ "ab|ba|kk"`, `|= "a" |= "bb" |~ "k"`, `|~ "x|a?"`,
		`|= "aa" or "bb" or "kk" or "ab" or "ba" or "ak" or "ka" or "bk" or "kb"`, `!= ""`, `!~ "^$"`, `|~ ".+"`,
	}
	pieces := []string{"a", "b", "k", "s", "K", "S", "\u212a", "\u017f", "\n", "\xff", "A", "B"}
	rapid.Check(t, func(t *rapid.T) {
		var lines []string
		for range rapid.IntRange(1, 150).Draw(t, "lines") {
			var l strings.Builder
			for range rapid.SampledFrom([]int{0, 1, 1, 2, 3, 5, 9}).Draw(t, "length") {
				l.WriteString(rapid.SampledFrom(pieces).Draw(t, "piece"))
			}
			lines = append(lines, l.String())
		}
		query := `{a="b"} ` + rapid.SampledFrom(filters).Draw(t, "filter")
		q, err := syntax.ParseLog(query)
		if err != nil {
			t.Fatal(err)
		}
		p, err := line.Compile(q.Stages)
		if err != nil {
			t.Fatal(err)
		}
		f := p.Filter()
		if f == nil { // it keeps all
			f = new(match.Filter)
		}
		rows := page("ab", lines)
		from := rapid.IntRange(0, len(lines)).Draw(t, "from")
		to := rapid.IntRange(from, len(lines)).Draw(t, "to")
		got := f.Select([]int32{-1}, rows, from, to)
		want := []int32{-1}
		for i := from; i < to; i++ {
			if linetest.Plain(linetest.Case{Query: query, Line: lines[i]}) {
				want = append(want, int32(i))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s of %q [%d,%d): %v, want %v", query, lines, from, to, got, want)
		}
	})
}

// satisfies reports whether a line has what a filter asks for.
func satisfies(f *model.TextFilter, l string, metadata model.Labels) bool {
	for _, c := range f.Clauses {
		some := false
		for _, a := range c.Any {
			switch {
			case a.Name != "":
				some = some || string(metadata.Get(a.Name)) == a.Value
			case a.Fold:
				some = some || strings.Contains(folded(l), folded(a.Value))
			default:
				some = some || strings.Contains(l, a.Value)
			}
		}
		if !some {
			return false
		}
	}
	return true
}

func folded(s string) string {
	return strings.NewReplacer("\u212a", "k", "\u017f", "s").Replace(strings.ToLower(s))
}

// TestTextFilter: whatever line a query keeps has what its filter for pages says.
func TestTextFilter(t *testing.T) {
	for _, seed := range seeds() {
		checkTextFilter(t, seed)
	}
}

func checkTextFilter(t *testing.T, seed uint64) {
	g := linetest.NewGenerator(seed)
	filtered, kept := 0, 0
	for range 10000 {
		c := g.Case()
		q, err := syntax.ParseLog(c.Query)
		if err != nil {
			continue
		}
		p, err := line.Compile(q.Stages)
		if err != nil {
			continue
		}
		f := p.TextFilter(func(name string) bool { return !slices.Contains(c.Stream, name) })
		if f == nil {
			continue
		}
		filtered++
		if !linetest.Run(c).Keep {
			continue
		}
		kept++
		if !satisfies(f, c.Line, model.LabelsOf(c.Metadata...)) {
			t.Errorf("seed %d: %s keeps %q with %q, which %+v rules out", seed, c.Query, c.Line, c.Metadata, f)
		}
	}
	if filtered < 500 || kept < 200 {
		t.Errorf("seed %d: only %d filters, %d lines kept", seed, filtered, kept)
	}
}

func TestTextFilterIs(t *testing.T) {
	lit := func(values ...string) model.TextClause {
		var c model.TextClause
		for _, v := range values {
			l := model.TextLiteral{Value: v}
			if name, value, ok := strings.Cut(v, "=>"); ok {
				l.Name, l.Value = name, value
			}
			if v, ok := strings.CutPrefix(v, "(?i)"); ok {
				l.Value, l.Fold = v, true
			}
			c.Any = append(c.Any, l)
		}
		return c
	}
	all := func(string) bool { return true }
	for query, want := range map[string][]model.TextClause{
		`|= "foo" |= "bar" != "baz"`:  {lit("foo"), lit("bar")},
		`|= "foo" or "bar"`:           {lit("foo", "bar")},
		`|~ "foo|bar"`:                {lit("foo", "bar")},
		`|~ "(?i)foo|BAR"`:            {lit("(?i)foo", "(?i)bar")},
		`|~ "foo.*(bar|qux)\\d+ end"`: {lit("foo"), lit("bar", "qux"), lit(" end")},
		`|~ "foo(bar|qux)?"`:          {lit("foo")},
		`|~ "(GET|POST) /api"`:        {lit("GET /api", "POST /api")},
		`|~ "x*"`:                     nil,
		`|~ "(foo|.*)bar"`:            {lit("bar")},
		`|~ "error: (timeout after \\d+|refused by .*) now"`: {lit("error: "), lit("timeout after ", "refused by "), lit(" now")},
		`|> "<_> foo <_>bar"`:                                {lit(" foo "), lit("bar")},
		`!> "<_> foo <_>bar"`:                                nil,
		`|= ip("1.2.3.4")`:                                   nil,
		`| json |= "foo" | line_format "x" |= "bar"`:         {lit("foo")},
		`| trace_id="x"`:                                     {lit("trace_id=>x")},
		`| trace_id=~"x|y" | a="" or b="z"`:                  {lit("trace_id=>x", "trace_id=>y")},
		`| trace_id="x" or span_id="y"`:                      {lit("trace_id=>x", "span_id=>y")},
		`| trace_id="x" and n > 5`:                           {lit("trace_id=>x")},
		`| json | trace_id="x"`:                              nil,
		`| logfmt | trace_id="x"`:                            nil,
		`| pattern "<a> <b>" | trace_id="x" | a="y"`:         {lit("trace_id=>x")},
		`| regexp "(?P<trace_id>.)" | trace_id="x"`:          nil,
		`| label_format trace_id=a | trace_id="x"`:           nil,
		`| line_format "x" | trace_id="x"`:                   {lit("trace_id=>x")},
		`| a_extracted="x"`:                                  nil,
		`| __error__="x"`:                                    nil,
		`| trace_id!="x"`:                                    nil,
	} {
		f := compile(t, `{a="b"} `+query).TextFilter(all)
		var got []model.TextClause
		if f != nil {
			got = f.Clauses
		}
		if !slices.EqualFunc(got, want, func(a, b model.TextClause) bool { return slices.Equal(a.Any, b.Any) }) {
			t.Errorf("%s: %+v, want %+v", query, got, want)
		}
	}
	if f := compile(t, `{a="b"} | trace_id="x"`).TextFilter(nil); f != nil {
		t.Errorf("a stream label may be called so: %+v", f)
	}
}

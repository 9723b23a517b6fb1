package syntax

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

func mustParse(t *testing.T, query string) Expr {
	t.Helper()
	e, err := Parse(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return e
}

// TestPositions checks that each node lies where its text begins.
func TestPositions(t *testing.T) {
	query := "topk(3,\n  sum by (x) (rate({a=\"b\", é=~\"c+\"} |= \"n\" | json | s>=500 and m=\"GET\"\n | unwrap duration(l) | e=\"\" [5m])) / 2) or label_replace(vector(1), \"\", \"\", \"\", \"\")"
	var got []string
	Walk(mustParse(t, query), func(n Node) bool {
		p := n.Position()
		before := query[:p.Offset]
		line := 1 + strings.Count(before, "\n")
		column := 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
		if p.Line != line || p.Column != column {
			t.Errorf("%s: is at %+v, want line %d, column %d", n, p, line, column)
		}
		rest := query[p.Offset:]
		got = append(got, rest[:min(len(rest), 4)])
		return true
	})
	want := []string{
		"or l", "topk", "/ 2)", "sum ", "rate", `{a="`, `{a="`, `a="b`, "é=~", `|= "`, "| js", "| s>", "and ", "s>=5", `m="G`, "| un", `e=""`, "2) o", "labe", "vect",
	}
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(w, got[i][:3]) {
			t.Fatalf("nodes lie at %q, want %q", got, want)
		}
	}
}

func TestMatchers(t *testing.T) {
	ms, err := ParseMatchers(`{a="b", c!="d", e=~"x|y", f=~"ab.*", g!~"h", i=~"[ab]"}`, false)
	if err != nil {
		t.Fatal(err)
	}
	models := Models(ms)
	for i, want := range []struct {
		op      model.MatchOp
		set     []string
		prefix  string
		yes, no string
	}{
		{model.MatchEqual, nil, "", "b", "bb"},
		{model.MatchNotEqual, nil, "", "", "d"},
		{model.MatchRegexp, []string{"x", "y"}, "", "y", "xy"},
		{model.MatchRegexp, nil, "ab", "ab\nc", "xab"},
		{model.MatchNotRegexp, []string{"h"}, "", "", "h"},
		{model.MatchRegexp, []string{"a", "b"}, "", "a", ""},
	} {
		m := models[i]
		if m.Op != want.op || m.Prefix != want.prefix || !slices.Equal(m.Set, want.set) || !m.Match(want.yes) || m.Match(want.no) {
			t.Errorf("%s is %+v, want %+v", ms[i], m, want)
		}
	}
	for query, want := range map[string]string{
		`{a="b"} |= "x"`: "only label matchers are supported",
		`rate({a="b"}`:   "parse error at line 1, col 13: syntax error: unexpected $end",
		`vector(1)`:      "only label matchers are supported",
		`{}`:             "queries require at least one",
	} {
		if _, err := ParseMatchers(query, false); err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	if ms, err := ParseMatchers(`{}`, true); err != nil || len(ms) != 0 {
		t.Errorf("{}: %v, %v", ms, err)
	}
	if _, err := ParseLog(`vector(1)`); err == nil || err.Error() != "only log selector is supported" {
		t.Errorf("vector(1): %v", err)
	}
	if q, err := ParseLog(`({a="b"} | json)`); err != nil || len(q.Stages) != 1 {
		t.Errorf("a log query: %v, %v", q, err)
	}
}

// TestTree looks at what the texts do not show.
func TestTree(t *testing.T) {
	q := mustParse(t, `{a="b"} |= "x" or ip("y") or "z" != "u" or "v"`).(*LogQuery)
	if n := len(q.Stages[0].(*LineFilter).Any); len(q.Stages) != 3 || n != 3 {
		t.Errorf("%s has %d stages, the first with %d operands", q, len(q.Stages), n)
	}
	r := mustParse(t, `quantile_over_time(0.9, {a="b"}[90s] offset -1.5h | json x | unwrap bytes(y) | z>1) by ()`).(*RangeAggregation)
	if r.Quantile != 0.9 || r.Range.Range != 90*time.Second || r.Range.Offset != -90*time.Minute || r.Range.Unwrap.Conversion != ConvertBytes ||
		r.Range.Unwrap.Label != "y" || len(r.Range.Unwrap.Filters) != 1 || len(r.Range.Query.Stages) != 1 || r.Grouping == nil {
		t.Errorf("range aggregation: %+v, %+v", r, r.Range)
	}
	v := mustParse(t, `topk without (x) (3, sum(vector(1)))`).(*VectorAggregation)
	if v.K != 3 || !v.Grouping.Without || !slices.Equal(v.Grouping.Labels, []string{"x"}) {
		t.Errorf("vector aggregation: %+v", v)
	}
	b := mustParse(t, `vector(1) > bool on (x) group_right (y) vector(2)`).(*BinaryExpr)
	if !b.Bool || !b.Matching.On || b.Matching.Card != OneToMany || !slices.Equal(b.Matching.Include, []string{"y"}) {
		t.Errorf("operation: %+v", b)
	}
	l := mustParse(t, `label_replace(vector(1), "d", "$1", "s", "a(.)")`).(*LabelReplace)
	if l.Regexp.MatchString("xab") || !l.Regexp.MatchString("ab") {
		t.Errorf("label_replace is not anchored")
	}
	c := mustParse(t, `{a="b"} | x>1.5KiB or y=1h and z==-2`).(*LogQuery).Stages[0].(*LabelFilter).Condition.(*OrCondition)
	if c.Left.(*BytesCondition).Value != 1536 || c.Right.(*AndCondition).Left.(*DurationCondition).Value != time.Hour ||
		c.Right.(*AndCondition).Right.(*NumberCondition).Value != -2 {
		t.Errorf("conditions: %s", c)
	}
}

func TestCalculate(t *testing.T) {
	for _, c := range []struct {
		op                BinaryOp
		left, right, want float64
	}{
		{OpAdd, 1, 2, 3}, {OpSub, 1, 2, -1}, {OpMul, 3, 2, 6}, {OpDiv, 3, 2, 1.5}, {OpDiv, 3, 0, math.NaN()}, {OpMod, -7, 4, -3},
		{OpMod, 1, 0, math.NaN()}, {OpPow, 2, 10, 1024}, {OpEqual, 1, 1, 1}, {OpEqual, math.NaN(), math.NaN(), 0},
		{OpNotEqual, 1, 1, 0}, {OpGreater, 2, 1, 1}, {OpGreaterOrEqual, 1, 1, 1}, {OpLess, 2, 1, 0}, {OpLessOrEqual, 1, 1, 1},
	} {
		if got := Calculate(c.op, c.left, c.right); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%v %s %v = %v, want %v", c.left, c.op, c.right, got, c.want)
		}
	}
}

// TestStageError checks the text with which a stage is refused that the parser did not look into.
func TestStageError(t *testing.T) {
	q := mustParse(t, `{a="b"} |~ "("`).(*LogQuery)
	var budget RegexpBudget
	_, err := budget.Parse("(", 0)
	bad := StageError(q.Stages[0], err)
	if want := "parse error : stage '|~ \"(\"' : error parsing regexp: missing closing ): `(`"; bad.Error() != want || !errors.Is(bad, model.ErrInvalid) {
		t.Errorf("%v, want %s", bad, want)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0kB", 9: "9B", 10: "10B", 999: "999B", 1000: "1.0kB", 1500: "1.5kB", 1024: "1KiB", 1536: "1536B", 15000: "15kB", 1000000: "1.0MB",
		999950: "999950B", 1234000: "1234kB", 1 << 40: "1TiB", 1 << 50: "1024TiB", 20e12: "20TB", math.MaxUint64: "18446744073709551615B",
	} {
		if got := formatBytes(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	for _, s := range []string{"", "B", "5X", "5kk", "5iB", "5EiBB", "1.2.3kB", "99999999PiB", "5BB"} {
		if n, err := parseBytes(s); err == nil {
			t.Errorf("%s is %d bytes", s, n)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for name, query := range map[string]string{
		"selector": `{app="foo", env=~"prod|dev"}`,
		"pipeline": `{app="foo"} |= "error" != "timeout" | json | status >= 500 and duration > 10s | line_format "{{.msg}}"`,
		"metric":   `topk(10, sum by (host) (rate({app="foo"} |~ "err.*" | logfmt | unwrap bytes(size) [5m]))) / on (host) group_left vector(2)`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

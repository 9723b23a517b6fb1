package line

import (
	"context"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/logql/line/match"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// TestLongMatches: a match that can be ended finds what one finds that cannot.
func TestLongMatches(t *testing.T) {
	never := func() bool { return false }
	random := rand.New(rand.NewPCG(1, 2))
	for _, expr := range []string{
		`(a+)(b|c)*`, `^(a)(b)?`, `(c)$`, `\b(a+)\b`, `(?:a*b|(a))`, `(?i)(É)x?`, `(.*)\n(.)`, `(?s)(.+)`, `(?m)^(b.*)$`, `(\x{FFFD})`, `(a{2,5}?)(.)`, ``, `abc(a?)`, `\B(b)`,
	} {
		m := match.Matcher{Regexp: regexp.MustCompile(expr), Size: 1 << 30}
		for range 300 {
			var b strings.Builder
			for range random.IntN(12) {
				b.WriteString([]string{"a", "b", "c", " ", "\n", "é", "É", "\xff", "x", "\ufffd"}[random.IntN(10)])
			}
			if s := []byte(b.String()); m.Matches(s, never) != m.Matches(s, nil) || !slices.Equal(m.Groups(s, never), m.Groups(s, nil)) {
				t.Errorf("%s in %q: %v, %v", expr, s, m.Groups(s, never), m.Groups(s, nil))
			}
		}
	}
}

// endsSoon is a context that ends when it has been asked so many times.
type endsSoon struct {
	context.Context
	left int
}

func (c *endsSoon) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestMatchesEnd: a line and a page that would take minutes are left when the query ends.
func TestMatchesEnd(t *testing.T) {
	racetest.SkipSerial(t)
	groups := "(?P<a>[ab])" + strings.Repeat("(a)?", 900) + "!"
	long := []byte(strings.Repeat("a", 256<<10) + "!")
	for _, query := range []string{
		"| regexp `" + groups + "`", "| decolorize |~ `" + groups + "`", "| decolorize !~ `x` or `" + groups + "`",
		"| line_format `{{count \"a*b|a\" __line__}}`", "| label_format x=`{{regexReplaceAll \"a*b|(a)\" __line__ \"$1\"}}`,y=`{{.x}}`",
		"| label_format x=`{{regexReplaceAllLiteral \"a*b|a\" __line__ \"\"}}`",
	} {
		q, err := syntax.ParseLog(`{a="b"} ` + query)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(q.Stages)
		if err != nil {
			t.Fatal(err)
		}
		r := p.Runner()
		r.SetStream(model.LabelsOf("a", "b"))
		r.Bind(&endsSoon{Context: t.Context(), left: 3}, nil)
		var out Result
		if _, err := r.Process(1, long, nil, &out); !errors.Is(err, context.Canceled) {
			t.Errorf("%.40s: %v", query, err)
		}
	}
	q, err := syntax.ParseLog(`{a="b"} |~ "` + groups + `"`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(q.Stages)
	if err != nil {
		t.Fatal(err)
	}
	f := p.Filter()
	f.Bind(&endsSoon{Context: t.Context(), left: 3})
	f.Select(nil, &model.TextRows{Times: []int64{1, 2}, Bytes: append(long, long...), Ends: []uint32{uint32(len(long)), uint32(2 * len(long))}}, 0, 2)
}

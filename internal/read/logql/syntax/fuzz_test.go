package syntax

import (
	"errors"
	"math"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/logql/syntax/syntaxtest"
)

// sameTree compares all but places and compiled expressions.
var sameTree = cmp.Options{
	cmpopts.IgnoreTypes(Pos{}, &regexp.Regexp{}),
	cmpopts.IgnoreFields(model.Matcher{}, "Match"),
	cmpopts.EquateEmpty(),
}

// readable reports whether the text of a tree can be read again: NaN, infinities and -0 cannot be
// written, and neither can names that are stray characters.
func readable(e Expr) bool {
	ok := true
	name := func(names ...string) {
		for _, n := range names {
			ok = ok && isName(n)
		}
	}
	number := func(f float64) {
		ok = ok && !math.IsNaN(f) && !math.IsInf(f, 0) && (f != 0 || !math.Signbit(f))
	}
	Walk(e, func(n Node) bool {
		switch n := n.(type) {
		case *Matcher:
			name(n.Name)
		case *StringCondition:
			name(n.Name)
		case *NumberCondition:
			name(n.Label)
			number(n.Value)
		case *DurationCondition:
			name(n.Label)
		case *BytesCondition:
			name(n.Label)
		case *IPCondition:
			name(n.Label)
		case *JSONParser:
			for _, x := range n.Extract {
				name(x.Label)
			}
		case *LogfmtParser:
			for _, x := range n.Extract {
				name(x.Label)
			}
		case *LabelFormat:
			for _, a := range n.Assignments {
				name(a.Label)
				if a.Rename {
					name(a.Value)
				}
			}
		case *DropLabels:
			for _, c := range n.Labels {
				name(c.Name)
			}
		case *KeepLabels:
			for _, c := range n.Labels {
				name(c.Name)
			}
		case *Unwrap:
			name(n.Label)
		case *Literal:
			number(n.Value)
		case *RangeAggregation:
			if n.Grouping != nil {
				name(n.Grouping.Labels...)
			}
		case *VectorAggregation:
			name(n.Grouping.Labels...)
		case *BinaryExpr:
			name(n.Matching.Labels...)
			name(n.Matching.Include...)
		}
		return true
	})
	return ok
}

// checkQuery demands that a query is an error of the right class, or that both its texts give the same tree
// again.
func checkQuery(t *testing.T, query string) {
	t.Helper()
	e, err := Parse(query)
	if err != nil {
		var bad *ParseError
		if !errors.Is(err, model.ErrInvalid) || !errors.As(err, &bad) {
			t.Errorf("%q: error of no class: %v", query, err)
		}
		return
	}
	text, pretty := e.String(), Pretty(e)
	if !readable(e) {
		return
	}
	for _, s := range [...]string{text, pretty} {
		again, err := Parse(s)
		if len(s) >= MaxQueryBytes {
			continue
		}
		if err != nil {
			t.Fatalf("%q: its text %q: %v", query, s, err)
		}
		if d := cmp.Diff(e, again, sameTree); d != "" {
			t.Fatalf("%q: its text %q is another tree:\n%s", query, s, d)
		}
		if got := again.String(); got != text {
			t.Fatalf("%q: its text %q gives %q", query, text, got)
		}
	}
}

func seeds(f *testing.F) {
	queries, err := syntaxtest.Queries("testdata/queries.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, q := range append(queries, syntaxtest.Sample(100, 3)...) {
		f.Add(q)
	}
}

// TestTextIsReadAgain does with random queries what FuzzParse does with what the fuzzer finds.
func TestTextIsReadAgain(t *testing.T) {
	racetest.SkipSerial(t)
	queries, err := syntaxtest.Queries("testdata/queries.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queries {
		checkQuery(t, q)
	}
	r := rand.New(rand.NewPCG(1, 4))
	g := syntaxtest.Generator{R: r}
	for i := range 3000 {
		q := g.Query()
		if i%3 == 2 {
			q = syntaxtest.Mutate(r, q)
		}
		checkQuery(t, q)
	}
}

func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(checkQuery)
}

func FuzzLexer(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, query string) {
		l := newLexer(query)
		last := -1
		for range len(query) + 1 {
			tok := l.next()
			if tok.kind == kEOF {
				if l.first == nil && tok.at.Offset != len(query) {
					t.Fatalf("%q ends at %d, without an error", query, tok.at.Offset)
				}
				return
			}
			if tok.at.Offset <= last || tok.at.Offset >= len(query) {
				t.Fatalf("%q: token at %d behind one at %d", query, tok.at.Offset, last)
			}
			last = tok.at.Offset
		}
		t.Fatalf("%q has more tokens than bytes", query)
	})
}

func FuzzPattern(f *testing.F) {
	for _, s := range [...]string{"", "<a>", "<_> <a>", "<a><b>", "x<a>y<_>z", "<<a>>", "<a> <a>", "<1>", "é<a>\xff", "<a", "a>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		text := ""
		for _, p := range cutPattern(pattern) {
			text += p.String()
		}
		if text != pattern {
			t.Fatalf("%q is cut into %q", pattern, text)
		}
		if _, err := ParsePattern(pattern); err != nil && !errors.Is(err, model.ErrInvalid) {
			t.Fatal(err)
		}
		if _, err := ParseLinePattern(pattern); err != nil && !errors.Is(err, model.ErrInvalid) {
			t.Fatal(err)
		}
	})
}

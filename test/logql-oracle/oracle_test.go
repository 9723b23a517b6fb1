package oracle

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	loki "github.com/grafana/loki/v3/pkg/logql/syntax"

	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/syntax/syntaxtest"
)

const testdata = "../../internal/read/logql/syntax/testdata/"

var (
	record = flag.Bool("record", false, "write Loki's answers anew")
	count  = flag.Int("queries", 20000, "random queries")
	seed   = flag.Uint64("seed", 1, "of the random queries")
)

// lokiSays parses a query with Loki.
func lokiSays(query string) syntaxtest.Record {
	r := syntaxtest.Record{Query: query}
	e, err := loki.ParseExpr(query)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.Text, r.Pretty = e.String(), loki.Prettify(e)
	return r
}

// weSay parses a query with our parser.
func weSay(query string) syntaxtest.Record {
	r := syntaxtest.Record{Query: query}
	e, err := syntax.Parse(query)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.Text, r.Pretty = e.String(), syntax.Pretty(e)
	return r
}

// removed matches the words of a statement that Loki has removed.
var removed = regexp.MustCompile(`(?i)\b(variants|of)\b`)

// quoted matches text in quotes, strayName words that are read as names by mistake, and notFinite the results
// of operations on numbers that are not finite.
var (
	quoted    = regexp.MustCompile("(?s)\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`")
	strayName = regexp.MustCompile(`[$;:\\&@'?]|!($|[^=~>])|[^\x00-\x7f]`)
	notFinite = regexp.MustCompile(`\bNaN\b|[+-]Inf\b|-0\b`)
)

// compare reports whether both results agree, or the reason if they differ on purpose.
func compare(them, us syntaxtest.Record) (ok bool, why string) {
	switch {
	case them == us:
		return true, ""
	case strings.IndexAny(strings.TrimSpace(us.Query), "\x00\xff") == 0:
		return false, "Loki's column is that of another query"
	case removed.MatchString(us.Query):
		return false, "variants(...) of (...) does not exist"
	case them.Error == "" && strings.Contains(us.Error, "unable to parse literal as a float"):
		return false, "Loki compares with a number that is not there"
	case them.Error == "" && strings.Contains(us.Error, "regular expressions of the query are too large"),
		them.Error == "" && strings.Contains(us.Error, "nested too deeply"):
		return false, "bounded"
	case them.Error != "" && us.Error != "" && strings.HasPrefix(them.Error, "parse error : ") && !strings.HasPrefix(us.Error, "parse error : "):
		return false, "Loki reads on behind the first error, and reports a later one"
	case them.Error != "" || us.Error != "":
		return false, ""
	}
	if them.Text == us.Text && them.Pretty == us.Pretty {
		return true, ""
	}
	if strayName.MatchString(quoted.ReplaceAllString(us.Query, "")) {
		return false, "not even Loki can read such names again"
	}
	if notFinite.MatchString(quoted.ReplaceAllString(them.Text, "")) {
		return false, "not even Loki can read such numbers again"
	}
	// Loki reads our text as the same query, and its own as another one.
	if us.Text != them.Text && (lokiSays(us.Text).Text != them.Text || weSay(them.Text).Text == us.Text) {
		return false, ""
	}
	if us.Pretty != them.Pretty && (lokiSays(us.Pretty).Text != them.Text || weSay(them.Pretty).Text == us.Text) {
		return false, ""
	}
	if us.Text == them.Text {
		return false, "Loki's layout means another query"
	}
	return false, "Loki's text means another query"
}

func recorded(t *testing.T) []string {
	queries, err := syntaxtest.Queries(testdata + "queries.txt")
	if err != nil {
		t.Fatal(err)
	}
	return append(queries, syntaxtest.Sample(1500, 1)...)
}

func TestRecorded(t *testing.T) {
	var theirs, differences []syntaxtest.Record
	for _, q := range recorded(t) {
		them, us := lokiSays(q), weSay(q)
		theirs = append(theirs, them)
		ok, why := compare(them, us)
		if !ok {
			us.Why = why
			differences = append(differences, us)
		}
		if !ok && why == "" {
			t.Error(disagreement(them, us))
		}
	}
	if *record {
		write(t, "loki.golden", "What Loki v3.7.8 says. Written by test/logql-oracle.", theirs)
		write(t, "differences.golden", "What we say where that is something else. Written by test/logql-oracle.", differences)
	}
	same(t, "loki.golden", theirs)
	same(t, "differences.golden", differences)
}

func write(t *testing.T, name, comment string, records []syntaxtest.Record) {
	if err := syntaxtest.Write(testdata+name, comment, records); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, name string, want []syntaxtest.Record) {
	got, err := syntaxtest.Read(testdata + name)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%s has %d records, want %d; run with -record", name, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: has\n%+v, want\n%+v; run with -record", name, got[i], want[i])
		}
	}
}

func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 2))
	g := syntaxtest.Generator{R: r}
	corpus := recorded(t)
	reasons := map[string]int{}
	right, bad := 0, 0
	for i := range *count {
		var q string
		known := corpus[r.IntN(len(corpus))]
		switch i % 5 {
		case 0, 1:
			q = g.Query()
		case 2:
			q = syntaxtest.Mutate(r, g.Query())
		case 3:
			q = syntaxtest.Mutate(r, known)
		case 4:
			q = syntaxtest.Cut(r, known)
		}
		them, us := lokiSays(q), weSay(q)
		if them.Error == "" {
			right++
		}
		ok, why := compare(them, us)
		if ok {
			continue
		}
		if reasons[why]++; why != "" {
			continue
		}
		t.Error(disagreement(them, us))
		if bad++; bad == 40 {
			break
		}
	}
	t.Logf("%d queries, %d of them right; differences: %v", *count, right, reasons)
}

func disagreement(them, us syntaxtest.Record) string {
	s := fmt.Sprintf("query  %q\n", us.Query)
	if them.Error != us.Error {
		s += fmt.Sprintf("  Loki error   %s\n  our error    %s\n", them.Error, us.Error)
	}
	if them.Text != us.Text {
		s += fmt.Sprintf("  Loki text    %s\n  our text     %s\n", them.Text, us.Text)
	}
	if them.Pretty != us.Pretty {
		s += fmt.Sprintf("  Loki pretty\n%s\n  our pretty\n%s\n", them.Pretty, us.Pretty)
	}
	return s
}

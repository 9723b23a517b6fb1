package syntax_test

import (
	"testing"

	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/syntax/syntaxtest"
)

func answer(query string) syntaxtest.Record {
	r := syntaxtest.Record{Query: query}
	e, err := syntax.Parse(query)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.Text, r.Pretty = e.String(), syntax.Pretty(e)
	return r
}

// TestGolden compares with what Loki said when test/logql-oracle asked it.
func TestGolden(t *testing.T) {
	want := read(t, "loki.golden")
	if len(want) < 2000 {
		t.Fatalf("loki.golden has only %d queries", len(want))
	}
	differs := map[string]syntaxtest.Record{}
	for _, r := range read(t, "differences.golden") {
		if r.Why == "" {
			t.Errorf("no reason why %q differs", r.Query)
		}
		differs[r.Query] = r
	}
	right := 0
	for _, w := range want {
		if d, ok := differs[w.Query]; ok {
			w, w.Why = d, ""
		}
		if w.Error == "" {
			right++
		}
		if got := answer(w.Query); got != w {
			t.Errorf("%q:\n got %+v\nwant %+v", w.Query, got, w)
		}
	}
	if right < 900 || len(want)-right < 900 {
		t.Errorf("%d queries are right and %d are not; too few", right, len(want)-right)
	}
}

func read(t *testing.T, name string) []syntaxtest.Record {
	t.Helper()
	records, err := syntaxtest.Read("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

package rules

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAsCarbon compares what the files say of paths with what carbon 1.1.10 says. test/carbon-oracle records
// carbon.jsonl.
func TestAsCarbon(t *testing.T) {
	type question struct {
		Blacklist, Whitelist, Rewrite, Aggregation string
		Paths                                      []string
	}
	cases, wants := readLines[question](t, "testdata/cases.jsonl"), readLines[[][]any](t, "testdata/carbon.jsonl")
	if len(cases) != len(wants) || len(cases) == 0 {
		t.Fatalf("%d cases, %d answers", len(cases), len(wants))
	}
	for i, q := range cases {
		r := parse(t, q.Blacklist, q.Whitelist, q.Rewrite, q.Aggregation)
		for j, path := range q.Paths {
			got := answer(t, r, path)
			if diff := cmp.Diff(wants[i][j], got); diff != "" {
				t.Errorf("case %d, path %q: -carbon +shale\n%s", i+1, path, diff)
			}
		}
	}
}

func parse(t testing.TB, blacklist, whitelist, rewrite, aggregation string) *Rules {
	t.Helper()
	r := new(Rules)
	var errs [4]error
	r.Blacklist, errs[0] = ParseList("blacklist.conf", []byte(blacklist))
	r.Whitelist, errs[1] = ParseList("whitelist.conf", []byte(whitelist))
	r.Rewriting, errs[2] = ParseRewriting("rewrite-rules.conf", []byte(rewrite))
	r.Aggregations, errs[3] = ParseAggregations("aggregation-rules.conf", []byte(aggregation))
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// answer has the form of an answer of carbon.
func answer(t *testing.T, r *Rules, path string) []any {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	verdict := ""
	listed, err := r.Blacklist.Match(path)
	must(err)
	if listed {
		verdict = "blacklisted"
	} else if len(r.Whitelist) > 0 {
		listed, err = r.Whitelist.Match(path)
		must(err)
		if !listed {
			verdict = "not_whitelisted"
		}
	}
	pre, err := r.Rewriting.Pre.Apply(path)
	must(err)
	aggregates := []any{}
	for _, a := range r.Aggregations {
		out, ok, err := a.Output(pre)
		must(err)
		if ok {
			aggregates = append(aggregates, out)
		}
	}
	post, err := r.Rewriting.Post.Apply(pre)
	must(err)
	return []any{verdict, pre, aggregates, post}
}

func readLines[T any](t *testing.T, path string) (all []T) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

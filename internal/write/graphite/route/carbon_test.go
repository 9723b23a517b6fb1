package route_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/write/graphite/route"
	"github.com/shaledb/shale/internal/write/graphite/rules"
)

var (
	casesFile   = flag.String("cases", "testdata/cases.jsonl", "cases of test/carbon-oracle/python/relay_cases.py")
	answersFile = flag.String("answers", "testdata/carbon.jsonl", "what test/carbon-oracle/python/relay.py says of them")
)

// TestAsCarbonRelay compares where paths go with carbon-relay 1.1.10.
func TestAsCarbonRelay(t *testing.T) {
	type question struct {
		Conf, Rules, Aggregation string
		Paths                    []string
	}
	cases, wants := readLines[question](t, *casesFile), readLines[[][]string](t, *answersFile)
	if len(cases) != len(wants) || len(cases) == 0 {
		t.Fatalf("%d cases, %d answers", len(cases), len(wants))
	}
	for i, q := range cases {
		r := router(t, q.Conf, q.Rules, q.Aggregation)
		for j, path := range q.Paths {
			to, err := r.Route(path)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, n := range to {
				d := r.Conf().Destinations[n]
				if d.Instance == "" {
					d.Instance = "None"
				}
				got = append(got, fmt.Sprintf("%s %d %s", d.Host, d.Port, d.Instance))
			}
			slices.Sort(got)
			if diff := cmp.Diff(wants[i][j], got); diff != "" {
				t.Errorf("case %d, path %q: -carbon +shale\n%s\n%s", i+1, path, diff, q.Conf)
			}
		}
	}
}

func router(t testing.TB, conf, relay, aggregation string) *route.Router {
	t.Helper()
	parse := func(path, text string) *carbonconf.File {
		f, err := carbonconf.Parse(path, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	c, err := route.ParseConf(parse("carbon.conf", conf), "")
	if err != nil {
		t.Fatal(err)
	}
	all, err := rules.ParseAggregations("aggregation-rules.conf", []byte(aggregation))
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Router(parse("relay-rules.conf", relay), all.Outputs)
	if err != nil {
		t.Fatal(err)
	}
	return r
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

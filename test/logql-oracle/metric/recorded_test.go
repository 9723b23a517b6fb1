package metric

import (
	"context"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/read/logql/logqltest"
)

const golden = "../../../internal/read/logql/logqltest/testdata/"

var record = flag.Bool("record", false, "rewrite Loki's results in testdata of logqltest")

// recorded returns the cases of a file: those that are written down, or random ones. It leaves out results
// that are ours on purpose.
func recorded(t *testing.T, random int) (all []logqltest.Record) {
	data := logqltest.Datasets(20, 20, 7)
	g := logqltest.Generator{R: rand.New(rand.NewPCG(7, 0))}
	add := func(d *logqltest.Dataset, q logqltest.Query) bool {
		s, err := newStore(d)
		if err != nil {
			t.Fatal(err)
		}
		r := s.run(&q)
		text := r.String()
		if len(text) > 3000 || random > 0 && len(text) > 800 || random > 0 && (r.Empty() || strings.HasPrefix(text, "matrix\n") && len(text) < 40) {
			return false
		}
		for range 5 { // a choice among equal values
			if logqltest.Diff(s.run(&q), r, true) != "" {
				return false
			}
		}
		a := asked{data: d, loki: s, query: q, them: r}
		if us := logqltest.Run(context.Background(), logqltest.InMemory(d), logqltest.Tenant, &q); diff(&a, us) != "" {
			if known(&a, us) == "" {
				t.Error(describe(&a, us))
			}
			return false
		}
		all = append(all, logqltest.Record{Data: d, Query: q, Loki: r})
		return true
	}
	if random == 0 {
		for i := range logqltest.Written(data[0]) {
			for j := range data { // the first whose result is short
				d := data[(i+j)%len(data)]
				if q := logqltest.Written(d)[i]; add(d, q) {
					break
				}
			}
		}
		return all
	}
	for i := 0; len(all) < random; i++ {
		d := data[i%len(data)]
		add(d, g.Query(d))
	}
	return all
}

// found returns the cases in which results were wrong, with the fewest lines.
func found(t *testing.T) (all []logqltest.Record) {
	const second = int64(1e9)
	line := func(at int64, text string, metadata ...string) logqltest.Line {
		return logqltest.Line{Time: logqltest.Begin + at*second, Text: text, Metadata: metadata}
	}
	for _, c := range []struct {
		name  string
		lines []logqltest.Line
		text  string
	}{
		{"a line between two windows", []logqltest.Line{line(5, "x")}, `count_over_time({app="web"}[1s])`},
		{
			"metadata of the only chunk within the range, of several that overlap",
			[]logqltest.Line{line(0, "a"), line(95, "b", "m", "1"), line(20, "c"), line(130, "d"), line(300, "e"), line(400, "f")},
			`bytes_rate({app="web"}[20s])`,
		},
		{
			"equal lines with different metadata in chunks that overlap",
			[]logqltest.Line{line(10, "a", "m", "1"), line(30, "b", "m", "1"), line(10, "a"), line(30, "b"), line(50, "c"), line(55, "d")},
			`sum(count_over_time({app="web"}[1m]))`,
		},
		{
			"malformed objects that have nothing to do with the labels",
			[]logqltest.Line{
				line(1, `{"req":{"bad":x},"level":"a"}`), line(2, `{"req":{"a":1 "b":2},"level":"b"}`), line(3, `{"req":{"a":{"b":[}},"level":"c","x":}`),
				line(4, `{"req":{"level":"d"},"req_level":"e"}`), line(5, `{"level":{"x":{"y":1}},"level":"f"}`),
			},
			`sum by (level) (count_over_time({app="web"} | json [1m]))`,
		},
		{
			"a malformed object whose name begins that of a label", []logqltest.Line{line(1, `{"le":{"bad":x},"level":"a"}`)},
			`sum by (level) (count_over_time({app="web"} | json [1m]))`,
		},
		{
			"keys that are empty", []logqltest.Line{line(1, `{"":{"":1,"a":{" ":2}}," ":3,"b":{"":4}}`)}, `count_over_time({app="web"} | json [1m])`,
		},
	} {
		d := &logqltest.Dataset{Name: c.name, Streams: []logqltest.Stream{{Labels: []string{"app", "web"}, Lines: c.lines}}}
		s, err := newStore(d)
		if err != nil {
			t.Fatal(err)
		}
		q := logqltest.Query{Text: c.text, Start: logqltest.Begin + 60*second, End: logqltest.Begin + 120*second, Step: 20 * second}
		all = append(all, logqltest.Record{Data: d, Query: q, Loki: s.run(&q)})
	}
	return all
}

// TestRecorded checks that files hold what Loki says, and that we say the same.
func TestRecorded(t *testing.T) {
	if *record {
		for name, cases := range map[string][]logqltest.Record{"written.golden": recorded(t, 0), "random.golden": recorded(t, 300), "found.golden": found(t)} {
			if err := logqltest.Write(golden+name, "Results of Loki v3.7.8. Written by test/logql-oracle.", cases); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"written.golden", "random.golden", "found.golden"} {
		cases, err := logqltest.Read(golden + name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range cases {
			c := &cases[i]
			s, err := newStore(c.Data)
			if err != nil {
				t.Fatal(err)
			}
			if d := logqltest.Diff(c.Loki, s.run(&c.Query), true); d != "" {
				t.Errorf("%s: %s: the file is not what Loki says: %s", name, c.Query.String(), d)
			}
		}
		t.Logf("%s: %d cases", name, len(cases))
	}
}

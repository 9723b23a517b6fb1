package metric

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/read/logql/logqltest"
)

const golden = "../../../internal/read/logql/logqltest/testdata/"

var record = flag.Bool("record", false, "rewrite Loki's results in testdata of logqltest")

// recorded returns the cases of a file: those that are written down, or random ones.
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

// TestRecorded checks that files hold what Loki says, and that we say the same.
func TestRecorded(t *testing.T) {
	if *record {
		for name, cases := range map[string][]logqltest.Record{"written.golden": recorded(t, 0), "random.golden": recorded(t, 300)} {
			if err := logqltest.Write(golden+name, "Results of Loki v3.7.8. Written by test/logql-oracle.", cases); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"written.golden", "random.golden"} {
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
			if d := logqltest.Diff(s.run(&c.Query), c.Loki, true); d != "" {
				t.Errorf("%s: %s: the file is not what Loki says: %s", name, c.Query.String(), d)
			}
		}
		t.Logf("%s: %d cases", name, len(cases))
	}
}

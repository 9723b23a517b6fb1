package metric

import (
	"context"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/test/objectstores"
	"github.com/shaledb/shale/test/stagetest"
	"github.com/shaledb/shale/test/tiertest"
)

var (
	count = flag.Int("queries", 20000, "random queries, asked at each stage of storage")
	sets  = flag.Int("sets", 60, "random data sets")
	seed  = flag.Uint64("seed", 1, "of the random queries and data sets")
	show  = flag.Int("show", 10, "differences that are printed")
)

// asked is a query with Loki's result.
type asked struct {
	data  *logqltest.Dataset
	loki  *store
	query logqltest.Query
	them  *logqltest.Result
}

// TestRandom compares random queries over random data sets at each stage of storage.
func TestRandom(t *testing.T) {
	data := logqltest.Datasets(*sets, 120, *seed)
	all := ask(t, data, *count)
	j := judge{t: t}
	stagetest.Each(t, new(objectstores.Places), new(tiertest.Tiers), logqltest.Begin+3*logqltest.Span, stagetest.Datasets(data), func(t *testing.T, s *stagetest.Store) {
		j.begin(t.Name())
		for i := range all {
			j.compare(&all[i], logqltest.Run(context.Background(), s.LogQL, all[i].data.Name, &all[i].query))
		}
		objects, err := s.Objects()
		if err != nil {
			t.Fatal(err)
		}
		j.end(objects)
	})
}

// ask makes queries and asks Loki. Most must have a result, or they would show little.
func ask(t *testing.T, data []*logqltest.Dataset, count int) []asked {
	g := logqltest.Generator{R: rand.New(rand.NewPCG(*seed, 3))}
	var stores []*store
	for _, d := range data {
		s, err := newStore(d)
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	var all []asked
	full, failed, words := 0, 0, map[string]int{}
	for i := range count {
		a := asked{data: data[i%len(data)], loki: stores[i%len(data)]}
		a.query = g.Query(a.data)
		a.them = a.loki.run(&a.query)
		switch {
		case a.them.Error != "":
			failed++
		case !a.them.Empty():
			full++
			for _, w := range keywords(a.query.Text) {
				words[w]++
			}
		}
		all = append(all, a)
	}
	t.Logf("%d queries over %d data sets: %d have a result, %d an error", count, len(data), full, failed)
	t.Logf("%d words of queries with results: %s", len(words), strings.Join(slices.Sorted(maps.Keys(words)), " "))
	if full*2 < count {
		t.Errorf("only %d of %d queries have a result", full, count)
	}
	return all
}

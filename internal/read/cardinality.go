package read

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Cardinality counts the series of a request by metric, label name and label pair.
type Cardinality struct {
	Series uint64
	Pairs  int // distinct pairs of label name and value
	// Each list is sorted by count, largest first, then by name, and cut to the requested length.
	SeriesByMetric, ValuesByName, BytesByName, SeriesByPair []Counted
}

// Counted is a name with its count. A pair is written name=value.
type Counted struct {
	Name  string
	Count uint64
}

// pairSeparator separates name and value. Both may hold any UTF-8, in which this byte never occurs.
const pairSeparator = 0xff

// pairBytes estimates what an entry in the table of pairs costs, apart from its text.
const pairBytes = 64

// Cardinality counts the series that a request selects; it reads their labels only. It holds the distinct
// pairs in memory while it counts, and charges them to the request's quota.
func (q *Querier) Cardinality(ctx context.Context, req *model.Request, limit int) (*Cardinality, error) {
	r := *req
	r.LabelsOnly = true
	set, err := q.Select(ctx, &r)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	c := &Cardinality{}
	pairs := make(map[string]uint64)
	var pair []byte
	for set.Next(ctx) {
		c.Series++
		for n, v, rest, ok := set.Labels().Next(); ok; n, v, rest, ok = rest.Next() {
			pair = append(append(append(pair[:0], n...), pairSeparator), v...)
			if _, known := pairs[string(pair)]; !known {
				if err := r.Quota.TakeBytes(int64(len(pair)) + pairBytes); err != nil {
					return nil, err
				}
			}
			pairs[string(pair)]++
		}
	}
	if err := set.Err(); err != nil {
		return nil, err
	}
	c.Pairs = len(pairs)
	c.count(pairs, limit)
	return c, nil
}

// count fills the lists.
func (c *Cardinality) count(pairs map[string]uint64, limit int) {
	values, bytes := make(map[string]uint64), make(map[string]uint64)
	metrics, all := largest{limit: limit}, largest{limit: limit}
	for pair, series := range pairs {
		name, value, _ := strings.Cut(pair, "\xff")
		values[name]++
		bytes[name] += uint64(len(value)) * series
		all.add(Counted{name + "=" + value, series})
		if name == "__name__" {
			metrics.add(Counted{value, series})
		}
	}
	c.SeriesByMetric, c.SeriesByPair = metrics.sorted(), all.sorted()
	c.ValuesByName, c.BytesByName = largestOf(values, limit), largestOf(bytes, limit)
}

func largestOf(counts map[string]uint64, limit int) []Counted {
	l := largest{limit: limit}
	for name, n := range counts {
		l.add(Counted{name, n})
	}
	return l.sorted()
}

// largest keeps the largest of many.
type largest struct {
	limit int
	kept  []Counted // at most twice the limit; once full, the first ones are sorted, up to the limit
	full  bool
}

// compareCounted orders by count, largest first, then by name.
func compareCounted(a, b Counted) int {
	if c := cmp.Compare(b.Count, a.Count); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

func (l *largest) add(c Counted) {
	if l.full && (l.limit == 0 || compareCounted(c, l.kept[l.limit-1]) > 0) {
		return
	}
	l.kept = append(l.kept, c)
	if len(l.kept)/2 >= l.limit {
		l.kept, l.full = l.sorted(), true
	}
}

// sorted returns the largest items, largest first.
func (l *largest) sorted() []Counted {
	slices.SortFunc(l.kept, compareCounted)
	return l.kept[:min(len(l.kept), l.limit)]
}

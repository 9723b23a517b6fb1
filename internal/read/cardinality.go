package read

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Cardinality says what the series of a request are made of.
type Cardinality struct {
	Series uint64
	Pairs  int // distinct pairs of label name and value
	// The largest ones first, at most as many as were asked for, equal ones by name.
	SeriesByMetric, ValuesByName, BytesByName, SeriesByPair []Counted
}

// Counted is a thing and how much there is of it. A pair is written name=value.
type Counted struct {
	Name  string
	Count uint64
}

// pairSeparator stands between name and value, since both may hold any character of UTF-8; this byte is none.
const pairSeparator = 0xff

// pairBytes is about what an entry of the table of pairs costs beside its text.
const pairBytes = 64

// Cardinality counts the series of a request, which is asked for labels only, and what they are made of. The
// distinct pairs are held in memory while it counts, and charged to the request's quota.
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

// largest keeps the largest of many in a heap whose root is the least that is kept.
type largest struct {
	limit int
	kept  []Counted
}

func before(a, b Counted) int {
	if c := cmp.Compare(b.Count, a.Count); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

func (l *largest) Len() int           { return len(l.kept) }
func (l *largest) Less(i, j int) bool { return before(l.kept[i], l.kept[j]) > 0 }
func (l *largest) Swap(i, j int)      { l.kept[i], l.kept[j] = l.kept[j], l.kept[i] }
func (l *largest) Push(x any)         { l.kept = append(l.kept, x.(Counted)) }
func (l *largest) Pop() any {
	x := l.kept[len(l.kept)-1]
	l.kept = l.kept[:len(l.kept)-1]
	return x
}

func (l *largest) add(c Counted) {
	if len(l.kept) == l.limit && (l.limit == 0 || before(c, l.kept[0]) > 0) {
		return
	}
	heap.Push(l, c)
	if len(l.kept) > l.limit {
		heap.Pop(l)
	}
}

func (l *largest) sorted() []Counted {
	slices.SortFunc(l.kept, before)
	return l.kept
}

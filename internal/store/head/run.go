package head

import (
	"context"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/shaledb/shale/internal/model"
)

// run is a sealed row buffer: its rows sorted by (tenant, key, time, arrival), in memory, immutable, shared by queries
// until a flush has put it into a part. One signal a run.
type run struct {
	signal       model.Signal
	seqLo, seqHi uint64
	rows         int
	bytes        int64 // guarded by Head.mu
	flushing     bool  // guarded by Head.mu: it may not be combined any more

	once    sync.Once
	from    []*run            // what it was combined from; until sorted
	spans   map[string][]span // of each tenant, oldest first; until sorted
	tenants []runTenant
	times   model.TimeRange
}

// runTenant holds the rows of one tenant as columns.
type runTenant struct {
	name    string
	keys    []model.Key
	columns model.Rows
}

// seal makes a run for each signal of a buffer that has rows. Sorting is left to whoever needs it first.
func (rb *rowBuffer) seal() []*run {
	bySignal := make(map[model.Signal]*run)
	for own, spans := range rb.spans {
		r := bySignal[own.signal]
		if r == nil {
			r = &run{signal: own.signal, seqLo: rb.seqLo, seqHi: rb.seqHi, spans: make(map[string][]span)}
			bySignal[own.signal] = r
		}
		r.spans[own.tenant] = spans
		for _, s := range spans {
			r.rows += int(s.to - s.from)
		}
	}
	runs := make([]*run, 0, len(bySignal))
	for _, r := range bySignal {
		r.bytes = rb.bytes / int64(len(bySignal))
		runs = append(runs, r)
	}
	runs[0].bytes += rb.bytes % int64(len(bySignal))
	return runs
}

// combineBelow is the size up to which runs are combined.
const combineBelow = 1 << 20

// combine makes one run of two neighbours, so that frequent queries leave a number of runs that grows with the
// logarithm of the rows, each row being sorted that many times again. The work is left to sort.
func combine(older, newer *run) *run {
	return &run{
		signal: older.signal, seqLo: older.seqLo, seqHi: newer.seqHi,
		rows: older.rows + newer.rows, bytes: older.bytes + newer.bytes, from: []*run{older, newer},
	}
}

// sort puts the rows in order, once.
func (r *run) sort() {
	r.once.Do(func() {
		for _, o := range r.from {
			r.adopt(o)
		}
		r.from = nil
		r.times = model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
		for name, spans := range r.spans {
			r.tenants = append(r.tenants, sortSpans(name, spans))
		}
		slices.SortFunc(r.tenants, func(a, b runTenant) int { return strings.Compare(a.name, b.name) })
		for i := range r.tenants {
			for _, t := range r.tenants[i].columns.Times {
				r.times.Min, r.times.Max = min(r.times.Min, t), max(r.times.Max, t)
			}
		}
		r.spans = nil
	})
}

// adopt takes the rows of an older run as spans of chunks of any size.
func (r *run) adopt(o *run) {
	o.sort()
	if r.spans == nil {
		r.spans = make(map[string][]span)
	}
	for i := range o.tenants {
		t := &o.tenants[i]
		c := &rowChunk{keys: t.keys, times: t.columns.Times, values: t.columns.Values, starts: t.columns.Starts}
		r.spans[t.name] = append(r.spans[t.name], span{c, 0, int32(len(t.keys))})
	}
}

func sortSpans(tenant string, spans []span) runTenant {
	n, withStarts := 0, false
	for _, s := range spans {
		n += int(s.to - s.from)
		withStarts = withStarts || len(s.chunk.starts) > 0
	}
	entries, tmp := make([]sortEntry, 0, n), make([]sortEntry, n)
	for i, s := range spans {
		for row := s.from; row < s.to; row++ {
			entries = append(entries, sortEntry{s.chunk.keys[row].Hi, uint32(i), uint32(row)})
		}
	}
	entries = sortByHi(entries, tmp)
	t := runTenant{name: tenant, keys: make([]model.Key, n)}
	t.columns.Times, t.columns.Values = make([]int64, n), make([]uint64, n)
	if withStarts {
		t.columns.Starts = make([]int64, n)
	}
	for i, e := range entries {
		c := spans[e.span].chunk
		t.keys[i], t.columns.Times[i], t.columns.Values[i] = c.keys[e.row], c.times[e.row], c.values[e.row]
		if int(e.row) < len(c.starts) {
			t.columns.Starts[i] = c.starts[e.row]
		}
	}
	t.sortTies()
	if invariants {
		t.checkOrder()
	}
	return t
}

// sortTies finishes the order among rows whose keys agree in the upper half.
func (t *runTenant) sortTies() {
	c := &t.columns
	for i := 0; i < len(t.keys); {
		j := i + 1
		for j < len(t.keys) && t.keys[j].Hi == t.keys[i].Hi {
			j++
		}
		if j-i > 1 {
			var starts []int64
			if len(c.Starts) > 0 {
				starts = c.Starts[i:j]
			}
			sortTies(t.keys[i:j], c.Times[i:j], c.Values[i:j], starts)
		}
		i = j
	}
}

// tenant returns the rows of a tenant, or nil.
func (r *run) tenant(name string) *runTenant {
	i := sort.Search(len(r.tenants), func(i int) bool { return r.tenants[i].name >= name })
	if i < len(r.tenants) && r.tenants[i].name == name {
		return &r.tenants[i]
	}
	return nil
}

// end returns the end of the rows that share the key of row i.
func (t *runTenant) end(i int) int {
	k := t.keys[i]
	for i++; i < len(t.keys) && t.keys[i] == k; i++ {
	}
	return i
}

// runStream walks a run as merging wants it.
type runStream struct {
	r      *run
	tenant int
	row    int
	rows   model.SeriesRows
	key    model.Key
	name   string
}

func (s *runStream) Next(context.Context) bool {
	for s.tenant < len(s.r.tenants) && s.row == len(s.r.tenants[s.tenant].keys) {
		s.tenant, s.row = s.tenant+1, 0
	}
	if s.tenant == len(s.r.tenants) {
		return false
	}
	t := &s.r.tenants[s.tenant]
	end := t.end(s.row)
	s.rows.Reset()
	s.rows.Samples.AppendRows(&t.columns, s.row, end)
	s.rows.Normalize()
	s.key, s.name, s.row = t.keys[s.row], t.name, end
	return true
}

func (s *runStream) Tenant() string          { return s.name }
func (s *runStream) Key() model.Key          { return s.key }
func (s *runStream) Labels() model.Labels    { return nil }
func (s *runStream) Rows() *model.SeriesRows { return &s.rows }
func (s *runStream) Err() error              { return nil }

package head

import (
	"math"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/shaledb/shale/internal/model"
)

// run is a sealed row buffer: its rows sorted by (tenant, key, family, time, arrival), in memory, immutable, shared by
// queries until a flush has put it into a part. One signal a run.
type run struct {
	signal       model.Signal
	seqLo, seqHi uint64
	rows, blocks int // blocks of blobs; some are counted twice
	// Guarded by Head.mu:
	bytes, blobBytes int64
	flushing         bool // it may not be combined any more

	once    sync.Once
	from    []*run                  // what it was combined from; until sorted
	spans   map[tenantFamily][]span // oldest first; until sorted
	blobs   blobs
	tenants []runTenant
}

type tenantFamily struct {
	tenant string
	family model.Family
}

// families is one more than the greatest family: rows are kept by family.
const families = int(model.Text) + 1

// runTenant holds the rows of one tenant.
type runTenant struct {
	name string
	rows [families]runRows
}

// runRows are the rows of one family as columns, by (key, time, arrival).
type runRows struct {
	keys []model.Key
	columns
	rg model.TimeRange // of the times
}

// What bounds the runs that are combined.
const (
	combineBelow       = 1 << 20 // rows
	combineBlocksBelow = maxBlobBlocks / 4
)

// mayCombine reports whether a run and the next one are to become one, so that frequent queries leave a number of runs
// that grows with the logarithm of the rows, each row being sorted that many times again.
func mayCombine(older, newer *run) bool {
	return !older.flushing && older.rows <= combineBelow && older.rows <= 2*newer.rows &&
		older.blocks+newer.blocks < combineBlocksBelow
}

// addRun returns the runs with a newer one, combined with the last ones as far as that pays. The slice that it is given
// stays as it is: queries may hold it.
func addRun(runs []*run, r *run) []*run {
	for n := len(runs); n > 0 && mayCombine(runs[n-1], r); n-- {
		r, runs = combine(runs[n-1], r), runs[:n-1]
	}
	return append(slices.Clone(runs), r)
}

// combine makes one run of two neighbours. The work is left to sort.
func combine(older, newer *run) *run {
	return &run{
		signal: older.signal, seqLo: older.seqLo, seqHi: newer.seqHi,
		rows: older.rows + newer.rows, blocks: older.blocks + newer.blocks, bytes: older.bytes + newer.bytes, blobBytes: older.blobBytes + newer.blobBytes,
		from: []*run{older, newer},
	}
}

// sort puts the rows in order, once.
func (r *run) sort() {
	r.once.Do(func() {
		if r.spans == nil {
			r.spans = make(map[tenantFamily][]span)
		}
		for _, o := range r.from {
			r.adopt(o)
		}
		r.from = nil
		at := make(map[string]int)
		for of, spans := range r.spans {
			i, ok := at[of.tenant]
			if !ok {
				i = len(r.tenants)
				at[of.tenant], r.tenants = i, append(r.tenants, runTenant{name: of.tenant})
			}
			rows := &r.tenants[i].rows[of.family]
			if *rows = sortSpans(spans); of.family == model.Text {
				rows.keepFirst(r.blobs)
			}
		}
		slices.SortFunc(r.tenants, func(a, b runTenant) int { return strings.Compare(a.name, b.name) })
		r.spans = nil
	})
}

// adopt takes the rows of an older run as spans of chunks of any size.
func (r *run) adopt(o *run) {
	o.sort()
	var base uint32
	r.blobs, base = r.blobs.join(o.blobs)
	for i := range o.tenants {
		t := &o.tenants[i]
		for f := range t.rows {
			rows := &t.rows[f]
			if len(rows.keys) == 0 {
				continue
			}
			of := tenantFamily{t.name, model.Family(f)}
			c := &rowChunk{keys: rows.keys, columns: rows.columns, base: base}
			r.spans[of] = append(r.spans[of], span{c, 0, int32(len(rows.keys))})
		}
	}
}

func sortSpans(spans []span) (out runRows) {
	n, withStarts, withKinds := 0, false, false
	for _, s := range spans {
		n += int(s.to - s.from)
		withStarts = withStarts || len(s.chunk.starts) > int(s.from)
		withKinds = withKinds || len(s.chunk.kinds) > int(s.from)
	}
	entries, tmp := make([]sortEntry, 0, n), make([]sortEntry, n)
	for i, s := range spans {
		for row := s.from; row < s.to; row++ {
			entries = append(entries, sortEntry{s.chunk.keys[row].Hi, uint32(i), uint32(row)})
		}
	}
	entries = sortByHi(entries, tmp)
	out.keys, out.times, out.values = make([]model.Key, n), make([]int64, n), make([]uint64, n)
	if withStarts {
		out.starts = make([]int64, n)
	}
	if withKinds {
		out.kinds = make([]model.Kind, n)
	}
	out.rg = model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	for i, e := range entries {
		c, row := spans[e.span].chunk, int(e.row)
		t := c.times[row]
		out.keys[i], out.times[i], out.values[i] = c.keys[row], t, c.values[row]
		out.rg.Min, out.rg.Max = min(out.rg.Min, t), max(out.rg.Max, t)
		if row < len(c.starts) {
			out.starts[i] = c.starts[row]
		}
		if k := c.kind(row); k != model.KindFloat {
			out.kinds[i], out.values[i] = k, rebase(c.values[row], c.base)
		}
	}
	out.sortTies()
	out.checkOrder()
	return out
}

// sortTies finishes the order among rows whose keys agree in the upper half.
func (r *runRows) sortTies() {
	for i := 0; i < len(r.keys); {
		j := i + 1
		for j < len(r.keys) && r.keys[j].Hi == r.keys[i].Hi {
			j++
		}
		if j-i > 1 {
			r.sortTiesIn(i, j)
		}
		i = j
	}
}

// sortTiesIn orders rows whose keys agree in the upper half by the lower half and then by time, and keeps the order of
// arrival. Nearly always they are rows of one series in order of time, and one pass does.
func (r *runRows) sortTiesIn(begin, end int) {
	keys, times := r.keys[begin:end], r.times[begin:end]
	ordered := true
	for i := 1; i < len(keys) && ordered; i++ {
		ordered = keys[i-1].Lo < keys[i].Lo || keys[i-1].Lo == keys[i].Lo && times[i-1] <= times[i]
	}
	if ordered {
		return
	}
	at := make([]int, len(keys))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int {
		switch {
		case keys[a].Lo < keys[b].Lo || keys[a].Lo == keys[b].Lo && times[a] < times[b]:
			return -1
		case keys[a].Lo > keys[b].Lo || times[a] > times[b]:
			return 1
		}
		return 0
	})
	permute(keys, at)
	permute(times, at)
	permute(r.values[begin:end], at)
	if len(r.starts) > 0 {
		permute(r.starts[begin:end], at)
	}
	if len(r.kinds) > 0 {
		permute(r.kinds[begin:end], at)
	}
}

func permute[T any](column []T, at []int) {
	moved := make([]T, len(at))
	for i, from := range at {
		moved[i] = column[from]
	}
	copy(column, moved)
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
func (r *runRows) end(i int) int {
	k := r.keys[i]
	for i++; i < len(r.keys) && r.keys[i] == k; i++ {
	}
	return i
}

// seek returns the rows of a key, of those from at on.
func (r *runRows) seek(at int, k model.Key) (from, to int) {
	// Neighbours are near: look a little ahead before searching the rest.
	keys, i := r.keys, at
	for n := 0; i < len(keys) && keys[i].Less(k); n++ {
		if i++; n == 8 {
			i += sort.Search(len(keys)-i, func(j int) bool { return !keys[i+j].Less(k) })
		}
	}
	from = i
	for i < len(keys) && keys[i] == k {
		i++
	}
	return from, i
}

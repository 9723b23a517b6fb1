package rows

import (
	"math"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/keysort"
)

// Run is a sealed row buffer: its rows by (tenant, key, family, time, arrival), in memory, immutable, shared
// by queries until a flush has put it into a part. A run holds one signal.
//
// The rows of a tenant are sorted when they are first read, so that a query takes no time for those of
// others.
type Run struct {
	Signal       model.Signal
	SeqLo, SeqHi uint64
	rows, blocks int // blocks of blobs; those that runs share are counted in each
	// The caller serialises access to these:
	Bytes, BlobBytes int64
	Flushing         bool // the run must not be combined any more

	once  sync.Once
	from  []*Run                  // the runs that it was combined from; until its tenants are listed
	spans map[tenantFamily][]span // oldest first; until then
	// Blobs are complete once a tenant or a stream has been asked for.
	Blobs   Blobs
	tenants []*tenantRun // by name
}

type tenantFamily struct {
	tenant string
	family model.Family
}

// families is one more than the greatest family: rows are kept by family.
const families = int(model.Text) + 1

// TenantRows holds the rows of one tenant.
type TenantRows struct {
	name     string
	Families [families]FamilyRows
}

// tenantRun is the rows of one tenant in a run. Runs share it where they have the same rows.
type tenantRun struct {
	name string

	mu    sync.Mutex
	spans [families][]span // oldest first; until they are sorted
	rows  *TenantRows      // nil: they are not
}

// sorted puts the rows in order, once. The blobs are those of any run that has the rows.
func (t *tenantRun) sorted(b Blobs) *TenantRows {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows != nil {
		return t.rows
	}
	t.rows = &TenantRows{name: t.name}
	for f, spans := range t.spans {
		if len(spans) == 0 {
			continue
		}
		rows := &t.rows.Families[f]
		if *rows = sortSpans(spans); model.Family(f) == model.Text {
			rows.keepFirst(b)
		}
	}
	t.spans = [families][]span{}
	return t.rows
}

// take returns the rows as spans, with references that move by a number of blocks.
func (t *tenantRun) take(blocks uint32) (out [families][]span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for f := range out {
		if t.rows == nil {
			out[f] = slices.Clone(t.spans[f])
		} else if r := &t.rows.Families[f]; len(r.Keys) > 0 {
			out[f] = []span{{chunk: &rowChunk{keys: r.Keys, columns: r.columns}, to: int32(len(r.Keys))}}
		}
		for i := range out[f] {
			out[f][i].base += blocks
		}
	}
	return out
}

// FamilyRows are the rows of one family as columns, by (key, time, arrival).
type FamilyRows struct {
	Keys []model.Key
	columns
	Range model.TimeRange // of the times
}

// The largest runs that are combined.
const (
	combineBelow       = 1 << 20 // rows
	combineBlocksBelow = maxBlobBlocks / 4
)

// mayCombine reports whether a run is combined with the next one. It keeps the number of runs that frequent
// queries leave logarithmic in the rows, and a row is sorted at most as many times.
func mayCombine(older, newer *Run) bool {
	return !older.Flushing && older.rows <= combineBelow && older.rows <= 2*newer.rows &&
		older.blocks+newer.blocks < combineBlocksBelow
}

// Add returns the runs with a newer one, combined with the last ones as far as that pays. It leaves the slice
// that it is given unchanged, since queries may hold it.
func Add(runs []*Run, r *Run) []*Run {
	for n := len(runs); n > 0 && mayCombine(runs[n-1], r); n-- {
		r, runs = combine(runs[n-1], r), runs[:n-1]
	}
	return append(slices.Clone(runs), r)
}

// combine makes one run of two neighbours. Readers do the work.
func combine(older, newer *Run) *Run {
	return &Run{
		Signal: older.Signal, SeqLo: older.SeqLo, SeqHi: newer.SeqHi,
		rows: older.rows + newer.rows, blocks: older.blocks + newer.blocks, Bytes: older.Bytes + newer.Bytes, BlobBytes: older.BlobBytes + newer.BlobBytes,
		from: []*Run{older, newer},
	}
}

// list returns the tenants by name, with their rows in any order.
func (r *Run) list() []*tenantRun {
	r.once.Do(func() {
		at := make(map[string]*tenantRun)
		for of, spans := range r.spans {
			t := at[of.tenant]
			if t == nil {
				t = &tenantRun{name: of.tenant}
				at[of.tenant], r.tenants = t, append(r.tenants, t)
			}
			t.spans[of.family] = spans
		}
		slices.SortFunc(r.tenants, func(a, b *tenantRun) int { return strings.Compare(a.name, b.name) })
		for _, o := range r.from {
			r.adopt(o)
		}
		r.spans, r.from = nil, nil
	})
	return r.tenants
}

// adopt adds the rows of a newer run. It copies nothing of a tenant that only one of them has, unless that
// has blobs whose blocks move: a flood of tenants would cost each query as much.
func (r *Run) adopt(o *Run) {
	newer := o.list()
	var base uint32
	r.Blobs, base = r.Blobs.join(o.Blobs)
	older, all := r.tenants, make([]*tenantRun, 0, len(r.tenants)+len(newer))
	for len(older) > 0 || len(newer) > 0 {
		switch order := first(older, newer); {
		case order < 0:
			all, older = append(all, older[0]), older[1:]
		case order > 0 && base == 0:
			all, newer = append(all, newer[0]), newer[1:]
		case order > 0:
			all, newer = append(all, &tenantRun{name: newer[0].name, spans: newer[0].take(base)}), newer[1:]
		default:
			both := &tenantRun{name: older[0].name, spans: older[0].take(0)}
			for f, spans := range newer[0].take(base) {
				both.spans[f] = append(both.spans[f], spans...)
			}
			all, older, newer = append(all, both), older[1:], newer[1:]
		}
	}
	r.tenants = all
}

// first compares the first tenants of two lists, of which one may be empty.
func first(a, b []*tenantRun) int {
	switch {
	case len(b) == 0:
		return -1
	case len(a) == 0:
		return 1
	}
	return strings.Compare(a[0].name, b[0].name)
}

func sortSpans(spans []span) (out FamilyRows) {
	n, withStarts, withKinds := 0, false, false
	for _, s := range spans {
		n += int(s.to - s.from)
		withStarts = withStarts || len(s.chunk.starts) > int(s.from)
		withKinds = withKinds || len(s.chunk.kinds) > int(s.from)
	}
	entries, tmp := make([]keysort.Entry, 0, n), make([]keysort.Entry, n)
	for i, s := range spans {
		for row := s.from; row < s.to; row++ {
			entries = append(entries, keysort.Entry{Hi: s.chunk.keys[row].Hi, Span: uint32(i), Row: uint32(row)})
		}
	}
	entries = keysort.ByHi(entries, tmp)
	out.Keys, out.Times, out.Values = make([]model.Key, n), make([]int64, n), make([]uint64, n)
	if withStarts {
		out.starts = make([]int64, n)
	}
	if withKinds {
		out.kinds = make([]model.Kind, n)
	}
	out.Range = model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	for i, e := range entries {
		c, row := spans[e.Span].chunk, int(e.Row)
		t := c.Times[row]
		out.Keys[i], out.Times[i], out.Values[i] = c.keys[row], t, c.Values[row]
		out.Range.Min, out.Range.Max = min(out.Range.Min, t), max(out.Range.Max, t)
		if row < len(c.starts) {
			out.starts[i] = c.starts[row]
		}
		if k := c.kind(row); k != model.KindFloat {
			out.kinds[i], out.Values[i] = k, rebase(c.Values[row], spans[e.Span].base)
		}
	}
	out.sortTies()
	out.checkOrder()
	return out
}

// sortTies orders rows whose keys agree in the upper half.
func (r *FamilyRows) sortTies() {
	for i := 0; i < len(r.Keys); {
		j := i + 1
		for j < len(r.Keys) && r.Keys[j].Hi == r.Keys[i].Hi {
			j++
		}
		if j-i > 1 {
			r.sortTiesIn(i, j)
		}
		i = j
	}
}

// sortTiesIn orders rows whose keys agree in the upper half by the lower half and then by time, and keeps the
// order of arrival. Nearly always they are rows of one series in order of time, and one pass is enough.
func (r *FamilyRows) sortTiesIn(begin, end int) {
	keys, times := r.Keys[begin:end], r.Times[begin:end]
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
	permute(r.Values[begin:end], at)
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

// Tenant returns the rows of a tenant, or nil.
func (r *Run) Tenant(name string) *TenantRows {
	all := r.list()
	i := sort.Search(len(all), func(i int) bool { return all[i].name >= name })
	if i < len(all) && all[i].name == name {
		return all[i].sorted(r.Blobs)
	}
	return nil
}

// end returns the end of the rows that share the key of row i.
func (r *FamilyRows) end(i int) int {
	k := r.Keys[i]
	for i++; i < len(r.Keys) && r.Keys[i] == k; i++ {
	}
	return i
}

// Seek returns the rows of a key, of those from at on.
func (r *FamilyRows) Seek(at int, k model.Key) (from, to int) {
	// The next key is usually near: look at a few rows before searching the rest.
	keys, i := r.Keys, at
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

package labels

import (
	"context"
	"slices"
	"sort"
	"strings"
	"sync"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/keysort"
	"github.com/shaledb/shale/internal/store/part"
)

// labelBlockBytes is the size of the blocks that hold buffered labels.
const labelBlockBytes = 256 << 10

// labelEntryBytes is what a buffered label set takes besides its bytes: its entry and the spare capacity of
// the list. labelListBytes is what the list of a tenant takes.
const (
	labelEntryBytes = 40
	labelListBytes  = 160
)

// combineBelow is the number of label sets above which a run is left alone.
const combineBelow = 1 << 20

// Entry is a label set that is durable in the journal and not yet in a label part. There may be a
// million, so it is small: text holds the bytes of the set as a string, which has no capacity.
type Entry struct {
	Key  model.Key
	text string
}

func (e *Entry) Labels() model.Labels {
	return model.Labels(unsafe.Slice(unsafe.StringData(e.text), len(e.text)))
}

// tenantLabels are the label sets of one tenant in a buffer.
type tenantLabels struct {
	entries []Entry
	bytes   int64
}

// tenantRun are the label sets of one tenant in a run. Runs share it where they have the same.
type tenantRun struct {
	name string

	mu      sync.Mutex
	pieces  [][]Entry // oldest first; until they are sorted
	entries []Entry   // by key, each key once; nil: they are not
}

// sorted returns the entries in order. Of those with the same key it keeps the first.
func (t *tenantRun) sorted() []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries == nil {
		t.entries, t.pieces = sortLabels(slices.Concat(t.pieces...)), nil
	}
	return t.entries
}

// take returns the entries in pieces.
func (t *tenantRun) take() [][]Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries != nil {
		return [][]Entry{t.entries}
	}
	return t.pieces
}

// labelList names the tenantLabels of a buffer.
type labelList struct {
	signal model.Signal
	tenant string
}

// Buffer collects the labels of new series. The caller serialises access until it is sealed.
type Buffer struct {
	block []byte
	lists map[labelList]*tenantLabels
	Bytes int64

	// last is the list that the last set was added to: a batch has one tenant.
	last   *tenantLabels
	lastOf labelList
}

func NewBuffer() *Buffer { return &Buffer{lists: make(map[labelList]*tenantLabels)} }

// Add appends a label set. Its owner accounts for more bytes besides those of the set.
func (lb *Buffer) Add(tenant string, signal model.Signal, k model.Key, l model.Labels, more int64) {
	if cap(lb.block)-len(lb.block) < len(l) {
		lb.block = make([]byte, 0, max(labelBlockBytes, len(l)))
	}
	begin := len(lb.block)
	lb.block = append(lb.block, l...)
	set := lb.block[begin:]
	bytes := int64(len(l)) + labelEntryBytes + more
	if of := (labelList{signal, tenant}); lb.last == nil || lb.lastOf != of {
		lb.last, lb.lastOf = lb.lists[of], of
		if lb.last == nil {
			lb.last = new(tenantLabels)
			lb.lists[of] = lb.last
			bytes += labelListBytes
		}
	}
	lb.last.entries = append(lb.last.entries, Entry{k, unsafe.String(unsafe.SliceData(set), len(set))})
	lb.last.bytes += bytes
	lb.Bytes += bytes
}

// Empty reports whether the buffer holds nothing.
func (lb *Buffer) Empty() bool { return len(lb.lists) == 0 }

// Run is a sealed label buffer: by (tenant, key), each key once, immutable. It holds about as many label sets
// as arrive between two flushes; selecting from it scans those of a tenant, which are sorted when they are
// first read.
type Run struct {
	Signal   model.Signal
	count    int   // of entries, with repeated keys
	Bytes    int64 // the caller serialises access
	Flushing bool  // likewise: the run must not be combined any more

	once    sync.Once
	from    []*Run       // the runs that it was combined from, oldest first; until its tenants are listed
	tenants []*tenantRun // by name once they are listed
}

// Seal makes a run for each signal, and a buffer that continues in the block of this one. Sorting is left to
// the first reader.
func (lb *Buffer) Seal() (runs []*Run, next *Buffer) {
	next = NewBuffer()
	next.block = lb.block
	of := make(map[model.Signal]*Run)
	for list, t := range lb.lists {
		r := of[list.signal]
		if r == nil {
			r = &Run{Signal: list.signal}
			of[list.signal], runs = r, append(runs, r)
		}
		r.count, r.Bytes = r.count+len(t.entries), r.Bytes+t.bytes
		r.tenants = append(r.tenants, &tenantRun{name: list.tenant, pieces: [][]Entry{t.entries}})
	}
	return runs, next
}

// AddRun returns the runs with a newer one, combined with the last ones as far as that pays. It leaves the
// slice that it is given unchanged, since queries may hold it.
func AddRun(runs []*Run, r *Run) []*Run {
	for n := len(runs); n > 0; n-- {
		if o := runs[n-1]; o.Flushing || o.count > combineBelow || o.count > 2*r.count {
			break
		}
		r, runs = combine(runs[n-1], r), runs[:n-1]
	}
	return append(slices.Clone(runs), r)
}

// combine makes one run of two neighbours.
func combine(older, newer *Run) *Run {
	return &Run{
		Signal: older.Signal, count: older.count + newer.count, Bytes: older.Bytes + newer.Bytes, from: []*Run{older, newer},
	}
}

// list returns the tenants by name, with their entries in any order.
func (r *Run) list() []*tenantRun {
	r.once.Do(func() {
		slices.SortFunc(r.tenants, func(a, b *tenantRun) int { return strings.Compare(a.name, b.name) })
		for _, o := range r.from {
			r.tenants = join(r.tenants, o.list())
		}
		r.from = nil
	})
	return r.tenants
}

// join returns the tenants of two lists. It copies nothing of a tenant that only one of them has.
func join(older, newer []*tenantRun) []*tenantRun {
	all := make([]*tenantRun, 0, len(older)+len(newer))
	for len(older) > 0 && len(newer) > 0 {
		switch order := strings.Compare(older[0].name, newer[0].name); {
		case order < 0:
			all, older = append(all, older[0]), older[1:]
		case order > 0:
			all, newer = append(all, newer[0]), newer[1:]
		default:
			both := &tenantRun{name: older[0].name, pieces: slices.Concat(older[0].take(), newer[0].take())}
			all, older, newer = append(all, both), older[1:], newer[1:]
		}
	}
	return append(append(all, older...), newer...)
}

// sortLabels returns entries by key. Of those with the same key it keeps the first. Sorting by digits is
// faster than comparing, see BenchmarkNewSeries.
func sortLabels(entries []Entry) []Entry {
	order, tmp := make([]keysort.Entry, len(entries)), make([]keysort.Entry, len(entries))
	for i := range entries {
		order[i] = keysort.Entry{Hi: entries[i].Key.Hi, Row: uint32(i)}
	}
	out := make([]Entry, 0, len(entries))
	for _, o := range keysort.ByHi(order, tmp) {
		e := &entries[o.Row]
		// Few keys agree in the upper half, so the position among them is searched from the end.
		at := len(out)
		for at > 0 && e.Key.Less(out[at-1].Key) {
			at--
		}
		switch {
		case at > 0 && out[at-1].Key == e.Key:
		case at == len(out):
			out = append(out, *e)
		default:
			out = slices.Insert(out, at, *e)
		}
	}
	return out
}

// Tenant returns the entries of a tenant.
func (r *Run) Tenant(name string) []Entry {
	all := r.list()
	i, ok := slices.BinarySearchFunc(all, name, func(t *tenantRun, name string) int { return strings.Compare(t.name, name) })
	if !ok {
		return nil
	}
	return all[i].sorted()
}

// runStream is a run as a stream for merging.
type runStream struct {
	tenants []*tenantRun // that of the current series first
	entries []Entry      // its entries that are left, with the current one; nil: none was read
	series  part.Series
}

// Stream returns a walk over the run. It sorts the entries of a tenant when it reaches them.
func (r *Run) Stream() part.Stream {
	return &runStream{tenants: r.list(), series: part.Series{Rows: &model.SeriesRows{}}}
}

func (s *runStream) Next(context.Context) (*part.Series, error) {
	if len(s.entries) > 0 {
		s.entries = s.entries[1:]
		if len(s.entries) == 0 {
			s.tenants = s.tenants[1:]
		}
	}
	if len(s.tenants) == 0 {
		return nil, nil
	}
	if len(s.entries) == 0 {
		s.entries = s.tenants[0].sorted() // never empty
	}
	e := &s.entries[0]
	s.series.Tenant, s.series.Key, s.series.Labels = s.tenants[0].name, e.Key, e.Labels()
	return &s.series, nil
}

// Walk finds the labels of keys that come in ascending order, among the entries of a tenant in a run.
type Walk struct{ entries []Entry }

// NewWalk returns a walk over the entries that [Run.Tenant] has returned.
func NewWalk(entries []Entry) *Walk { return &Walk{entries} }

// Seek returns the labels of a key, or nil if the run does not have it.
func (w *Walk) Seek(_ context.Context, k model.Key) (model.Labels, error) {
	i := sort.Search(len(w.entries), func(i int) bool { return !w.entries[i].Key.Less(k) })
	w.entries = w.entries[i:]
	if len(w.entries) > 0 && w.entries[0].Key == k {
		return w.entries[0].Labels(), nil
	}
	return nil, nil
}

package head

import (
	"context"
	"slices"
	"sort"
	"strings"
	"sync"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// labelBlockBytes is the size of the blocks that hold fresh labels.
const labelBlockBytes = 256 << 10

// labelEntryBytes is what a fresh label set costs beside its bytes: its entry, and what a list has room for beyond its end.
// labelListBytes is what a tenant costs that has any.
const (
	labelEntryBytes = 40
	labelListBytes  = 160
)

// combineLabelsBelow is the number of label sets above which a run is left alone.
const combineLabelsBelow = 1 << 20

// labelEntry is a label set that is durable in the journal and not yet in a label part. There may be a million, so it is
// no larger than it has to be: text is the set, as the string that it is not.
type labelEntry struct {
	key  model.Key
	text string
}

func (e *labelEntry) labels() model.Labels {
	return model.Labels(unsafe.Slice(unsafe.StringData(e.text), len(e.text)))
}

// tenantLabels are the label sets of one tenant.
type tenantLabels struct {
	name    string
	entries []labelEntry
	bytes   int64 // of a buffer; a run has their sum
}

// labelList names the tenantLabels of a buffer.
type labelList struct {
	signal model.Signal
	tenant string
}

// labelBuffer collects the labels of new series. It is guarded by Head.mu until it is sealed.
type labelBuffer struct {
	block []byte
	lists map[labelList]*tenantLabels
	bytes int64

	// last is the list that was added to last, since a batch has one tenant.
	last   *tenantLabels
	lastOf labelList
}

func newLabelBuffer() *labelBuffer { return &labelBuffer{lists: make(map[labelList]*tenantLabels)} }

// add takes a label set, which costs some bytes more than others.
func (lb *labelBuffer) add(tenant string, signal model.Signal, k model.Key, l model.Labels, more int64) {
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
			lb.last = &tenantLabels{name: tenant}
			lb.lists[of] = lb.last
			bytes += labelListBytes
		}
	}
	lb.last.entries = append(lb.last.entries, labelEntry{k, unsafe.String(unsafe.SliceData(set), len(set))})
	lb.last.bytes += bytes
	lb.bytes += bytes
}

// empty reports whether the buffer holds nothing.
func (lb *labelBuffer) empty() bool { return len(lb.lists) == 0 }

// labelRun is a sealed label buffer: sorted by (tenant, key), each key once, immutable. It holds about as many label
// sets as arrive in ten seconds; selecting from it scans it.
type labelRun struct {
	signal   model.Signal
	count    int   // of entries before those that share a key have gone
	bytes    int64 // guarded by Head.mu
	flushing bool  // guarded by Head.mu: it may not be combined any more

	once    sync.Once
	from    []*labelRun // what it was combined from, oldest first; until sorted
	tenants []tenantLabels
}

// seal makes a run for each signal, and a buffer that goes on in the block of this one. Sorting is left to whoever needs
// it first.
func (lb *labelBuffer) seal() (runs []*labelRun, next *labelBuffer) {
	next = newLabelBuffer()
	next.block = lb.block
	of := make(map[model.Signal]*labelRun)
	for list, t := range lb.lists {
		r := of[list.signal]
		if r == nil {
			r = &labelRun{signal: list.signal}
			of[list.signal], runs = r, append(runs, r)
		}
		r.count, r.bytes, r.tenants = r.count+len(t.entries), r.bytes+t.bytes, append(r.tenants, *t)
	}
	return runs, next
}

// addLabelRun returns the runs with a newer one, combined with the last ones as far as that pays. The slice that it is
// given stays as it is: queries may hold it.
func addLabelRun(runs []*labelRun, r *labelRun) []*labelRun {
	for n := len(runs); n > 0; n-- {
		if o := runs[n-1]; o.flushing || o.count > combineLabelsBelow || o.count > 2*r.count {
			break
		}
		r, runs = combineLabels(runs[n-1], r), runs[:n-1]
	}
	return append(slices.Clone(runs), r)
}

// combineLabels makes one run of two neighbours.
func combineLabels(older, newer *labelRun) *labelRun {
	return &labelRun{
		signal: older.signal, count: older.count + newer.count, bytes: older.bytes + newer.bytes, from: []*labelRun{older, newer},
	}
}

// sorted returns the entries in order, of those that share a key the first.
func (r *labelRun) sorted() []tenantLabels {
	r.once.Do(func() {
		all := r.tenants
		for _, o := range r.from {
			all = append(all, o.sorted()...)
		}
		slices.SortStableFunc(all, func(a, b tenantLabels) int { return strings.Compare(a.name, b.name) })
		r.from, r.tenants = nil, nil
		for _, t := range all {
			if n := len(r.tenants); n > 0 && r.tenants[n-1].name == t.name {
				older := &r.tenants[n-1]
				older.entries = slices.Concat(older.entries, t.entries)
				continue
			}
			r.tenants = append(r.tenants, t)
		}
		for i := range r.tenants {
			r.tenants[i].entries = sortLabels(r.tenants[i].entries)
		}
	})
	return r.tenants
}

// sortLabels returns entries by key, of those that share one the first. They are sorted by digits as rows are: a fifth of the
// time of comparing them.
func sortLabels(entries []labelEntry) []labelEntry {
	order, tmp := make([]sortEntry, len(entries)), make([]sortEntry, len(entries))
	for i := range entries {
		order[i] = sortEntry{hi: entries[i].key.Hi, row: uint32(i)}
	}
	out := make([]labelEntry, 0, len(entries))
	for _, o := range sortByHi(order, tmp) {
		e := &entries[o.row]
		// Keys that agree in the upper half are few: the place among them is found from the end.
		at := len(out)
		for at > 0 && e.key.Less(out[at-1].key) {
			at--
		}
		switch {
		case at > 0 && out[at-1].key == e.key:
		case at == len(out):
			out = append(out, *e)
		default:
			out = slices.Insert(out, at, *e)
		}
	}
	return out
}

// tenant returns the entries of a tenant.
func (r *labelRun) tenant(name string) []labelEntry {
	all := r.sorted()
	i, ok := slices.BinarySearchFunc(all, name, func(t tenantLabels, name string) int { return strings.Compare(t.name, name) })
	if !ok {
		return nil
	}
	return all[i].entries
}

// labelRunStream walks a run as merging wants it.
type labelRunStream struct {
	tenants []tenantLabels // that of the current series first
	at      int            // of its entries, plus one
	none    model.SeriesRows
}

// stream returns a walk over the run.
func (r *labelRun) stream() part.Stream { return &labelRunStream{tenants: r.sorted()} }

func (s *labelRunStream) Next(context.Context) bool {
	s.at++
	for len(s.tenants) > 0 && s.at > len(s.tenants[0].entries) {
		s.tenants, s.at = s.tenants[1:], 1
	}
	return len(s.tenants) > 0
}

func (s *labelRunStream) entry() *labelEntry      { return &s.tenants[0].entries[s.at-1] }
func (s *labelRunStream) Tenant() string          { return s.tenants[0].name }
func (s *labelRunStream) Key() model.Key          { return s.entry().key }
func (s *labelRunStream) Labels() model.Labels    { return s.entry().labels() }
func (s *labelRunStream) Rows() *model.SeriesRows { return &s.none }
func (s *labelRunStream) Text() part.Text         { return nil }
func (s *labelRunStream) Err() error              { return nil }

// labelWalk finds the labels of keys that come in ascending order, among several sources of labels.
type labelWalk interface {
	// seek returns the labels of a key, valid until the next call, or nil if the source does not have it.
	seek(ctx context.Context, k model.Key) (model.Labels, error)
}

// runLabelWalk is the walk over a run.
type runLabelWalk struct{ entries []labelEntry }

func (w *runLabelWalk) seek(_ context.Context, k model.Key) (model.Labels, error) {
	i := sort.Search(len(w.entries), func(i int) bool { return !w.entries[i].key.Less(k) })
	w.entries = w.entries[i:]
	if len(w.entries) > 0 && w.entries[0].key == k {
		return w.entries[0].labels(), nil
	}
	return nil, nil
}

package head

import (
	"context"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// labelBlockBytes is the size of the blocks that hold fresh labels.
const labelBlockBytes = 256 << 10

// labelEntryBytes is what a fresh label set costs beside its bytes.
const labelEntryBytes = 64

// labelEntry is a label set that is durable in the journal and not yet in a label part.
type labelEntry struct {
	tenant string
	key    model.Key
	labels model.Labels
}

func compareEntries(a, b labelEntry) int {
	if c := strings.Compare(a.tenant, b.tenant); c != 0 {
		return c
	}
	return a.key.Compare(b.key)
}

// labelBuffer collects the labels of new series. It is guarded by Head.mu until it is sealed.
type labelBuffer struct {
	block   []byte
	tenant  string // of the last entry, so that entries share one string
	entries map[model.Signal][]labelEntry
	bytes   int64
}

func newLabelBuffer() *labelBuffer { return &labelBuffer{entries: make(map[model.Signal][]labelEntry)} }

func (lb *labelBuffer) add(tenant string, signal model.Signal, k model.Key, l model.Labels) {
	if cap(lb.block)-len(lb.block) < len(l) {
		lb.block = make([]byte, 0, max(labelBlockBytes, len(l)))
	}
	if lb.tenant != tenant {
		lb.tenant = tenant
	}
	begin := len(lb.block)
	lb.block = append(lb.block, l...)
	lb.entries[signal] = append(lb.entries[signal], labelEntry{lb.tenant, k, model.Labels(lb.block[begin:len(lb.block):len(lb.block)])})
	lb.bytes += int64(len(l)) + labelEntryBytes
}

// labelRun is a sealed label buffer: sorted by (tenant, key), each key once, immutable. It holds about as many label
// sets as arrive in ten seconds; selecting from it scans it.
type labelRun struct {
	signal   model.Signal
	count    int   // of entries before those that share a key have gone
	bytes    int64 // guarded by Head.mu
	flushing bool  // guarded by Head.mu: it may not be combined any more

	once    sync.Once
	from    []*labelRun // what it was combined from, oldest first; until sorted
	entries []labelEntry
}

// seal makes a run for each signal, and a buffer that goes on in the block of this one. Sorting is left to whoever needs
// it first.
func (lb *labelBuffer) seal() (runs []*labelRun, next *labelBuffer) {
	next = newLabelBuffer()
	next.block, next.tenant = lb.block, lb.tenant
	for signal, entries := range lb.entries {
		runs = append(runs, &labelRun{signal: signal, count: len(entries), entries: entries, bytes: lb.bytes / int64(len(lb.entries))})
	}
	runs[0].bytes += lb.bytes % int64(len(lb.entries))
	return runs, next
}

// combineLabels makes one run of two neighbours.
func combineLabels(older, newer *labelRun) *labelRun {
	return &labelRun{
		signal: older.signal, count: older.count + newer.count, bytes: older.bytes + newer.bytes, from: []*labelRun{older, newer},
	}
}

// sorted returns the entries in order, of those that share a key the first.
func (r *labelRun) sorted() []labelEntry {
	r.once.Do(func() {
		for _, o := range r.from {
			r.entries = append(r.entries, o.sorted()...)
		}
		r.from = nil
		r.entries = sortLabels(r.entries)
	})
	return r.entries
}

// sortLabels orders entries by tenant and key and keeps of those that share a key the first. Entries of one tenant, which
// mostly are all, are sorted by digits as rows are: a fifth of the time of comparing them.
func sortLabels(entries []labelEntry) []labelEntry {
	if slices.ContainsFunc(entries, func(e labelEntry) bool { return e.tenant != entries[0].tenant }) {
		slices.SortStableFunc(entries, compareEntries)
		return slices.CompactFunc(entries, func(a, b labelEntry) bool { return compareEntries(a, b) == 0 })
	}
	order, tmp := make([]sortEntry, len(entries)), make([]sortEntry, len(entries))
	for i := range entries {
		order[i] = sortEntry{hi: entries[i].key.Hi, row: uint32(i)}
	}
	out := make([]labelEntry, 0, len(entries))
	for _, o := range sortByHi(order, tmp) {
		e := entries[o.row]
		// Keys that agree in the upper half are few: the place among them is found from the end.
		at := len(out)
		for at > 0 && e.key.Less(out[at-1].key) {
			at--
		}
		if at == 0 || out[at-1].key != e.key {
			out = slices.Insert(out, at, e)
		}
	}
	return out
}

// tenant returns the entries of a tenant.
func (r *labelRun) tenant(name string) []labelEntry {
	entries := r.sorted()
	from := sort.Search(len(entries), func(i int) bool { return entries[i].tenant >= name })
	n := sort.Search(len(entries)-from, func(i int) bool { return entries[from+i].tenant > name })
	return entries[from : from+n]
}

// matches reports whether a label set satisfies all matchers.
func matches(l model.Labels, ms []model.Matcher) bool {
	for i := range ms {
		if !ms[i].Match(string(l.Get(ms[i].Name))) {
			return false
		}
	}
	return true
}

// labelRunStream walks a run as merging wants it.
type labelRunStream struct {
	entries []labelEntry
	at      int
	none    model.SeriesRows
}

func (s *labelRunStream) Next(context.Context) bool { s.at++; return s.at <= len(s.entries) }
func (s *labelRunStream) Tenant() string            { return s.entries[s.at-1].tenant }
func (s *labelRunStream) Key() model.Key            { return s.entries[s.at-1].key }
func (s *labelRunStream) Labels() model.Labels      { return s.entries[s.at-1].labels }
func (s *labelRunStream) Rows() *model.SeriesRows   { return &s.none }
func (s *labelRunStream) Text() part.Text           { return nil }
func (s *labelRunStream) Err() error                { return nil }

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
		return w.entries[0].labels, nil
	}
	return nil, nil
}

package logql

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/heap"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
)

// place orders entries of one time: the number of the stream, that of the piece in it, and that of the row, in the order of
// arrival.
type place struct{ stream, part, row int32 }

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.stream, o.stream), cmp.Compare(p.part, o.part), cmp.Compare(p.row, o.row))
}

// found is an entry of the answer. Its bytes are in one piece of memory: the line and the three sets of labels.
type found struct {
	time int64
	place
	tenant int32
	sum    rowSum // if it was asked for
	bytes  []byte
	ends   [3]uint32 // of the line, the stream's labels and the metadata; the parsed ones follow
}

// foundBytes is about what an entry costs beside its bytes, here and in the result.
const foundBytes = 160

// copy fills the bytes.
func (f *found) copy(l *line.Result) {
	f.bytes = make([]byte, 0, sizeOf(l))
	f.bytes = append(append(f.bytes, l.Line...), l.Stream...)
	f.ends[0], f.ends[1] = uint32(len(l.Line)), uint32(len(f.bytes))
	f.bytes = append(f.bytes, l.Metadata...)
	f.ends[2] = uint32(len(f.bytes))
	f.bytes = append(f.bytes, l.Parsed...)
}

func (f *found) line() []byte           { return f.bytes[:f.ends[0]:f.ends[0]] }
func (f *found) stream() model.Labels   { return model.Labels(f.bytes[f.ends[0]:f.ends[1]:f.ends[1]]) }
func (f *found) metadata() model.Labels { return model.Labels(f.bytes[f.ends[1]:f.ends[2]:f.ends[2]]) }
func (f *found) parsed() model.Labels   { return model.Labels(f.bytes[f.ends[2]:]) }

// top collects the first entries in a direction, at most as many as the limit says. It is safe for concurrent use.
type top struct {
	direction Direction
	limit     int // 0: none
	quota     *model.Quota

	// last is the time of the last entry that is kept, once there are as many as the limit: no farther one is wanted.
	last atomic.Int64

	mu      sync.Mutex
	entries []found
	heap    heap.Heap[lastEntry] // of the entries, the last one first; empty without a limit
}

// lastEntry is an entry in the heap, by its index. It has the rank of the entry's time and place, so that a smaller
// rank is wanted sooner in either direction.
type lastEntry struct {
	time int64
	place
	index int32
}

// Less orders the last entry first.
func (e lastEntry) Less(o lastEntry) bool {
	return e.time > o.time || e.time == o.time && e.place.compare(o.place) > 0
}

func (t *top) rank(f *found, index int) lastEntry {
	e := lastEntry{t.direction.rank(f.time), f.place, int32(index)}
	if t.direction == Backward {
		e.place = place{^e.stream, ^e.part, ^e.row}
	}
	return e
}

func newTop(d Direction, limit int, q *model.Quota) *top {
	t := &top{direction: d, limit: limit, quota: q}
	t.last.Store(d.farthest())
	return t
}

// bound returns the time beyond which no entry is wanted any more.
func (t *top) bound() int64 { return t.last.Load() }

// wants reports whether an entry of that time could be kept.
func (t *top) wants(at int64) bool { return t.direction.compareTimes(at, t.last.Load()) <= 0 }

// compare orders entries: what is wanted first is less.
func (t *top) compare(a, b *found) int {
	if c := t.direction.compareTimes(a.time, b.time); c != 0 {
		return c
	}
	if t.direction == Backward {
		return b.place.compare(a.place)
	}
	return a.place.compare(b.place)
}

// offer keeps a copy of the entry if it is among the first. f.bytes is ignored.
func (t *top) offer(f found, l *line.Result) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	entry, full := t.rank(&f, len(t.entries)), t.limit > 0 && len(t.entries) == t.limit
	if full {
		last := t.heap.First()
		if !last.Less(entry) {
			return nil
		}
		entry.index = last.index
	}
	if err := t.quota.TakeBytes(int64(sizeOf(l)) + foundBytes); err != nil {
		return err
	}
	f.copy(l)
	switch {
	case full:
		if err := t.quota.TakeBytes(-int64(len(t.entries[entry.index].bytes)) - foundBytes); err != nil {
			return err
		}
		t.entries[entry.index] = f
		t.heap.ReplaceFirst(entry)
	default:
		t.entries = append(t.entries, f)
		if t.limit > 0 {
			t.heap.Push(entry)
		}
	}
	if t.limit > 0 && len(t.entries) == t.limit {
		t.last.Store(t.entries[t.heap.First().index].time)
	}
	return nil
}

func (t *top) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.limit > 0 && len(t.entries) == t.limit
}

// take returns the entries in their order and leaves none.
func (t *top) take() []found {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.entries
	t.entries = nil
	t.heap.Reset()
	slices.SortFunc(out, func(a, b found) int { return t.compare(&a, &b) })
	return out
}

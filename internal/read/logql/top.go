package logql

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/heap"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/selection"
)

// found is an entry of the answer. Its bytes are in one piece of memory: the line and the three sets of
// labels.
type found struct {
	time int64
	selection.Position
	tenant int32
	sum    lineSum // if it was asked for
	bytes  []byte
	ends   [3]uint32 // of the line, the stream's labels and the metadata; the parsed ones follow
}

// foundBytes is about what an entry costs besides its bytes, here and in the result.
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

// top collects the first entries in a direction, at most as many as the limit says. It is safe for concurrent
// use.
type top struct {
	direction Direction
	limit     int // 0: none
	quota     *model.Quota
	seeds     *[2]maphash.Seed // nil: entries need no sums

	// last is the time of the last entry that is kept, once there are as many as the limit: no farther one is
	// wanted.
	last atomic.Int64

	mu      sync.Mutex
	entries []found
	heap    heap.Heap[int64, selection.Position] // of the entries, the last one first; empty without a limit
}

// item returns what the heap holds of an entry. The entry that is wanted last is the least one.
func (t *top) item(f *found, index int) heap.Item[int64, selection.Position] {
	position := f.Position
	if t.direction == Forward {
		position = ^position
	}
	return heap.Item[int64, selection.Position]{Key: ^t.direction.Rank(f.time), Tie: position, Index: index}
}

func newTop(d Direction, limit int, q *model.Quota, seeds *[2]maphash.Seed) *top {
	t := &top{direction: d, limit: limit, quota: q, seeds: seeds}
	t.last.Store(d.Farthest())
	return t
}

// Bound returns the time of the last entry, if there are as many as the limit.
func (t *top) Bound() int64 { return t.last.Load() }

// Limit returns how many entries are collected; 0 means all.
func (t *top) Limit() int { return t.limit }

// compare orders entries: what is wanted first is less.
func (t *top) compare(a, b *found) int {
	if c := t.direction.CompareTimes(a.time, b.time); c != 0 {
		return c
	}
	if t.direction == Backward {
		return cmp.Compare(b.Position, a.Position)
	}
	return cmp.Compare(a.Position, b.Position)
}

// Offer keeps a copy of the line if it is among the first.
func (t *top) Offer(l *selection.Line) error {
	f := found{time: l.Time, Position: l.Position, tenant: l.Tenant}
	t.mu.Lock()
	defer t.mu.Unlock()
	full, index := t.limit > 0 && len(t.entries) == t.limit, len(t.entries)
	if full {
		if index = t.heap.First().Index; t.compare(&f, &t.entries[index]) >= 0 {
			return nil
		}
	}
	if err := t.quota.TakeBytes(int64(sizeOf(&l.Result)) + foundBytes); err != nil {
		return err
	}
	f.copy(&l.Result)
	if t.seeds != nil {
		f.sum = sumOf(t.seeds, l.Stream, l.Time, l.Text, l.Metadata)
	}
	switch {
	case full:
		if err := t.quota.TakeBytes(-int64(len(t.entries[index].bytes)) - foundBytes); err != nil {
			return err
		}
		t.entries[index] = f
		t.heap.ReplaceFirst(t.item(&f, index))
	default:
		t.entries = append(t.entries, f)
		if t.limit > 0 {
			t.heap.Push(t.item(&f, index))
		}
	}
	if t.limit > 0 && len(t.entries) == t.limit {
		t.last.Store(t.entries[t.heap.First().Index].time)
	}
	return nil
}

// Full reports whether there are as many entries as the limit.
func (t *top) Full() bool {
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

func sizeOf(l *line.Result) int { return len(l.Line) + len(l.Stream) + len(l.Metadata) + len(l.Parsed) }

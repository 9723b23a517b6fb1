package sketch

import (
	"cmp"
	"slices"
	"strings"
)

// Frequent counts names. It keeps at most a fixed number of them, and forgets rare ones.
//
// It is the sketch of Misra and Gries in batches, as in DataSketches: when the table is full, the median
// count is taken off all of them, and those with nothing left go. Each time at least half of the names lose
// that much, so no count is ever too low by more than 2 × total / capacity. Space-saving was tried: it needs
// a heap next to the table, for the same bound.
type Frequent struct {
	capacity int
	counts   map[string]uint64
	under    uint64
	total    uint64
	bytes    int64
}

// Counted is a name with its count.
type Counted struct {
	Name  string
	Count uint64
}

// NewFrequent returns a sketch of at most capacity names.
func NewFrequent(capacity int) *Frequent {
	return &Frequent{capacity: max(2, capacity), counts: make(map[string]uint64)}
}

// entryBytes estimates what a name takes besides its text.
const entryBytes = 64

// Add counts a name n times.
func (f *Frequent) Add(name []byte, n uint64) {
	f.total += n
	if _, known := f.counts[string(name)]; known {
		f.counts[string(name)] += n
		return
	}
	if len(f.counts) >= f.capacity {
		f.purge()
	}
	f.counts[string(name)] = n
	f.bytes += int64(len(name)) + entryBytes
}

// AddRest counts things whose names were forgotten, in a sketch whose counts may be too low by some number.
func (f *Frequent) AddRest(n, under uint64) {
	f.total += n
	f.under += under
}

// AddAll adds the counts of another sketch.
func (f *Frequent) AddAll(o *Frequent) {
	listed := uint64(0)
	for name, n := range o.counts {
		f.Add([]byte(name), n)
		listed += n
	}
	f.AddRest(o.total-listed, o.under)
}

// purge takes the median count off all names.
func (f *Frequent) purge() {
	all := make([]uint64, 0, len(f.counts))
	for _, n := range f.counts {
		all = append(all, n)
	}
	slices.Sort(all)
	median := all[len(all)/2]
	f.under += median
	for name, n := range f.counts {
		if n <= median {
			delete(f.counts, name)
			f.bytes -= int64(len(name)) + entryBytes
		} else {
			f.counts[name] = n - median
		}
	}
}

// Undercount is what any count may be too low by, and that of a name that is missing; 0: all are exact.
func (f *Frequent) Undercount() uint64 { return f.under }

// Total is the sum of all that was added.
func (f *Frequent) Total() uint64 { return f.total }

// Bytes is about the memory of the names.
func (f *Frequent) Bytes() int64 { return f.bytes }

// Len is the number of names that are kept.
func (f *Frequent) Len() int { return len(f.counts) }

// Count returns the count of a name, at least.
func (f *Frequent) Count(name string) uint64 { return f.counts[name] }

// Each calls do with each name that is kept, in any order.
func (f *Frequent) Each(do func(name string, count uint64)) {
	for name, n := range f.counts {
		do(name, n)
	}
}

// Most returns the names with the greatest counts, at most limit of them, greatest first, then by name.
func (f *Frequent) Most(limit int) []Counted {
	all := make([]Counted, 0, len(f.counts))
	for name, n := range f.counts {
		all = append(all, Counted{name, n})
	}
	return Most(all, limit)
}

// Most sorts by count, greatest first, then by name, and cuts the list.
func Most(all []Counted, limit int) []Counted {
	slices.SortFunc(all, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name))
	})
	return all[:min(limit, len(all))]
}

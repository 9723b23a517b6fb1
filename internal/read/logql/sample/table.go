package sample

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/window"
)

// series is what a worker knows of a series.
type series struct {
	labels  model.Labels
	hash    uint64
	window  window.Series
	count   *window.Count // the same, if the aggregation counts
	charged int64         // besides what the window has charged
}

// seriesBytes is about what a series costs besides its labels and its cells, with its share of a table.
const seriesBytes = 256

// bytes is what the series has charged to the worker that has it.
func (s *series) bytes() int64 { return s.charged + s.window.Charged() }

// table finds series by their labels. A query may have a series for each line, so that they are made many at
// a time, and their labels lie next to each other.
type table struct {
	slots []slot // a power of two, at most half of them used
	all   []*series
	// What is left of the memory that further series, counts and labels share.
	series []series
	counts []window.Count
	labels []byte
}

type slot struct {
	hash   uint64
	series *series // nil: free
}

// Bounds of how much memory is made at a time.
const (
	minSlots, minSlab    = 16, 4
	maxSlab, maxLabelRun = 256, 16 << 10
)

// find returns the series with these labels, or nil.
func (t *table) find(hash uint64, labels model.Labels) *series {
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; len(t.slots) > 0; i = (i + 1) & mask {
		switch x := &t.slots[i]; {
		case x.series == nil:
			return nil
		case x.hash == hash && bytes.Equal(x.series.labels, labels):
			return x.series
		}
	}
	return nil
}

// insert adds a series that the table does not have.
func (t *table) insert(s *series) {
	if t.all = append(t.all, s); 2*len(t.all) > len(t.slots) {
		old := t.slots
		t.slots = make([]slot, max(minSlots, 2*len(old)))
		for _, x := range old {
			if x.series != nil {
				t.put(x)
			}
		}
	}
	t.put(slot{s.hash, s})
}

func (t *table) put(x slot) {
	mask := uint64(len(t.slots) - 1)
	i := x.hash & mask
	for t.slots[i].series != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = x
}

// add adds a series without samples, of labels that the table does not have.
func (t *table) add(hash uint64, labels model.Labels, a window.Aggregation, cells *window.Cells) *series {
	slab := min(max(len(t.all), minSlab), maxSlab)
	if len(t.series) == 0 {
		t.series = make([]series, slab)
	}
	s := &t.series[0]
	t.series = t.series[1:]
	s.labels, s.hash = t.keep(labels), hash
	if a.Counts() {
		if len(t.counts) == 0 {
			t.counts = a.NewCounts(cells, slab)
		}
		s.count = &t.counts[0]
		s.window, t.counts = s.count, t.counts[1:]
	} else {
		s.window = a.New(cells)
	}
	t.insert(s)
	return s
}

// keep copies labels.
func (t *table) keep(l model.Labels) model.Labels {
	if cap(t.labels)-len(t.labels) < len(l) {
		t.labels = make([]byte, 0, max(len(l), min(maxLabelRun, 32*len(t.all))))
	}
	from := len(t.labels)
	t.labels = append(t.labels, l...)
	return model.Labels(slices.Clip(t.labels[from:]))
}

// take empties the table and returns its series, in the order in which they came.
func (t *table) take() []*series {
	all := t.all
	*t = table{}
	return all
}

// hashOf returns the hash of labels in all tables of an evaluation.
func (e *evaluation) hashOf(labels model.Labels) uint64 { return maphash.Bytes(e.seed, labels) }

package aggregate

import (
	"math"
	"slices"

	"github.com/shaledb/shale/internal/write/graphite/rules"
)

// Target is an aggregate that points of some path belong to.
type Target struct {
	Path      string
	Method    rules.Method
	Frequency int64 // seconds
}

// name identifies a buffer.
type name struct{ tenant, path string }

// buffer collects the points of one aggregate.
type buffer struct {
	id uint64
	name
	method    rules.Method
	frequency int64 // seconds
	// rules is the generation of the rules that the buffer was last used under.
	rules     uint64
	intervals []interval // few: as many as late points are waited for
	// retired means that the name belongs to another buffer, or to none.
	retired bool
}

// interval is the points of one time.
type interval struct {
	start int64 // Unix seconds
	count int64
	// value is the running sum, least or greatest value, as the method needs.
	value  float64
	values []float64 // in order of arrival, if the method needs them all
	// active means that points have come since the aggregate was last computed.
	active bool
}

// What a buffer takes in memory, with its share of the maps; slices of values have up to twice the memory
// that they need.
const (
	bufferBytes   = 320
	intervalBytes = 64
	valueBytes    = 16
)

func (b *buffer) bytes() int64 { return bufferBytes + int64(len(b.tenant)+len(b.path)) }

func (b *buffer) startOf(t int64) int64 {
	r := t % b.frequency
	if r < 0 {
		r += b.frequency // as Python's modulo
	}
	return t - r
}

// at returns the interval that begins at a time, or nil.
func (b *buffer) at(start int64) *interval {
	for i := range b.intervals {
		if b.intervals[i].start == start {
			return &b.intervals[i]
		}
	}
	return nil
}

func (b *buffer) forget(start int64) {
	b.intervals = slices.DeleteFunc(b.intervals, func(i interval) bool { return i.start == start })
}

// add takes a value. Carbon sums in the order of arrival, from 0, and of equal values keeps the first.
func (i *interval) add(m rules.Method, v float64) {
	switch {
	case m.NeedsValues():
		i.values = append(i.values, v)
	case m == rules.Sum || m == rules.Average:
		i.value += v
	case i.count == 0 || m == rules.Min && v < i.value || m == rules.Max && v > i.value:
		i.value = v
	}
	i.count++
	i.active = true
}

// aggregate computes the value of the interval.
func (i *interval) aggregate(m rules.Method) float64 {
	switch {
	case i.count == 0:
		return math.NaN()
	case m.NeedsValues():
		return m.Percentile(i.values)
	case m == rules.Average:
		return i.value / float64(i.count)
	case m == rules.Count:
		return float64(i.count)
	}
	return i.value
}

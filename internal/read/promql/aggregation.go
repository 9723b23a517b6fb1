package promql

import (
	"bytes"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/kahansum"

	"github.com/shaledb/shale/internal/model"
)

// aggregation adds the values of series, which arrive one after the other, to their groups, step by step.
// It adds in the order of the series and with upstream's compensation, so that sums are equal bit for bit.
type aggregation struct {
	*node
	names   [][]byte // that groups keep, or drop if the aggregation is without; sorted
	groups  []group
	byKey   map[string]int
	key     []byte // of the last series: its labels that tell groups apart, as they are stored
	current int    // the group of that series
	free    []cell
	builder labels.ScratchBuilder
	notes   annotations.Annotations
	quota   *model.Quota
	bounds  lastBounds // of histograms that were the first in their cell

	// notesFirsts asks for the first keys of groups. adding is the key of the series that is being added.
	notesFirsts bool
	adding      model.Key
}

// group is a group of series. Groups are in upstream's order: that of their first series with a value.
type group struct {
	labels labels.Labels
	cells  []cell // one for each step
	// firsts has for each step with a value the key of the first series that has one; nil unless they are asked
	// for.
	firsts []model.Key
	// histograms has one for each step too, once a histogram was added up.
	histograms []histogramCell
}

// cell is a group at one step. rest is the rounding error of the value. A count of 0 means that no series
// has a value. If mean is set, the sum has overflowed and value is a running mean.
type cell struct {
	value, rest float64
	count       uint32
	mean        bool
}

const cellBytes = 24

// cellBytes returns what the cells of a group take.
func (a *aggregation) cellBytes() int64 {
	n := int64(cellBytes)
	if a.notesFirsts {
		n += model.KeyBytes
	}
	return n * int64(a.steps())
}

func newAggregation(n *node, quota *model.Quota) *aggregation {
	a := &aggregation{node: n, byKey: make(map[string]int), current: -1, quota: quota}
	for _, name := range n.aggregate.Grouping {
		a.names = append(a.names, []byte(name))
	}
	if n.aggregate.Without {
		a.names = append(a.names, []byte(model.NameLabel))
	}
	slices.SortFunc(a.names, bytes.Compare)
	a.names = slices.CompactFunc(a.names, bytes.Equal)
	return a
}

// groupsBy reports whether a label tells groups apart. Most functions have already dropped the name of the
// metric.
func (a *aggregation) groupsBy(name []byte) bool {
	if a.dropsName && string(name) == model.NameLabel {
		return false
	}
	_, named := slices.BinarySearchFunc(a.names, name, bytes.Compare)
	return named != a.aggregate.Without
}

// groupOf returns the group of a series. If needed, it charges and creates one.
func (a *aggregation) groupOf(l model.Labels) (*group, error) {
	last := len(a.key)
	for rest := l; ; {
		name, _, next, ok := rest.Next()
		if !ok && len(rest) > 0 {
			_, err := malformed(l)
			return nil, err
		}
		if !ok || a.oneGroup() {
			break
		}
		if a.groupsBy(name) {
			a.key = append(a.key, rest[:len(rest)-len(next)]...)
		} else if !a.aggregate.Without && bytes.Compare(name, a.names[len(a.names)-1]) > 0 {
			break // no later label is in the list
		}
		rest = next
	}
	if a.current >= 0 && bytes.Equal(a.key[:last], a.key[last:]) {
		a.key = a.key[:last]
		return &a.groups[a.current], nil
	}
	a.key = append(a.key[:0], a.key[last:]...)
	i, ok := a.byKey[string(a.key)]
	if !ok {
		if err := a.quota.TakeBytes(keptBytes + 2*int64(len(a.key)) + a.cellBytes()); err != nil {
			return nil, toUpstream(err)
		}
		l, err := labelsOf(&a.builder, a.key)
		if err != nil {
			return nil, err
		}
		i = len(a.groups)
		a.groups = append(a.groups, group{labels: l, cells: a.newCells()})
		if a.notesFirsts {
			a.groups[i].firsts = make([]model.Key, a.steps())
		}
		a.byKey[string(a.key)] = i
	}
	a.current = i
	return &a.groups[i], nil
}

// newCells returns the cells of a group. Small groups share an allocation.
func (a *aggregation) newCells() []cell {
	n := a.steps()
	if n > len(a.free) {
		a.free = make([]cell, n*max(1, min(1024/n, len(a.groups))))
	}
	c := a.free[:n:n]
	a.free = a.free[n:]
	return c
}

// add adds floats at some steps to a group. The first value of a cell is not changed.
func (a *aggregation) add(g *group, at []int32, values []float64) {
	for i, v := range values {
		if len(g.histograms) > 0 && !g.histograms[at[i]].takesFloat() {
			continue
		}
		c := &g.cells[at[i]]
		if c.count++; c.count == 1 {
			c.value = v
			if g.firsts != nil {
				g.firsts[at[i]] = a.adding
			}
			continue
		}
		switch a.aggregate.Op {
		case parser.SUM:
			c.value, c.rest = kahansum.Inc(v, c.value, c.rest)
		case parser.AVG:
			c.average(v)
		case parser.MIN:
			if c.value > v || math.IsNaN(c.value) {
				c.value = v
			}
		case parser.MAX:
			if c.value < v || math.IsNaN(c.value) {
				c.value = v
			}
		}
	}
}

// average adds a value to an average. If the sum overflows, it keeps a running mean from there on, as
// upstream does.
func (c *cell) average(v float64) {
	count := float64(c.count)
	if !c.mean {
		sum, rest := kahansum.Inc(v, c.value, c.rest)
		if !math.IsInf(sum, 0) {
			c.value, c.rest = sum, rest
			return
		}
		c.mean = true
		c.value /= count - 1
		c.rest /= count - 1
	}
	kept := (count - 1) / count
	c.value, c.rest = kahansum.Inc(v/count, kept*c.value, kept*c.rest)
}

// floatOf returns the float of a cell.
func (a *aggregation) floatOf(c *cell) float64 {
	switch a.aggregate.Op {
	case parser.SUM:
		return c.value + c.rest
	case parser.AVG:
		if c.mean {
			return c.value + c.rest
		}
		return c.value/float64(c.count) + c.rest/float64(c.count)
	case parser.COUNT:
		return float64(c.count)
	case parser.GROUP:
		return 1
	}
	return c.value
}

// appendValues appends the values of a group to a result.
func (a *aggregation) appendValues(g *group, r *result) {
	for i := range g.cells {
		c := &g.cells[i]
		if c.count == 0 {
			continue
		}
		if len(g.histograms) == 0 {
			r.at, r.values = append(r.at, int32(i)), append(r.values, a.floatOf(c))
			continue
		}
		if h, ok := a.histogramOf(c, &g.histograms[i]); ok {
			r.add(i, a.floatOf(c), h)
		}
	}
}

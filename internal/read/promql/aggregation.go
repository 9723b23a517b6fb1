package promql

import (
	"bytes"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
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
}

// group is a group of series. Groups are in upstream's order: that of their first series with a value.
type group struct {
	labels labels.Labels
	cells  []cell // one for each step
}

// cell is a group at one step. rest is the rounding error of the value. A count of 0 means that no series
// has a value.
type cell struct{ value, rest, count float64 }

const cellBytes = 24

func newAggregation(n *node) *aggregation {
	a := &aggregation{node: n, byKey: make(map[string]int), current: -1}
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

// groupsBy reports whether a label tells groups apart. A function has already dropped the name of the
// metric.
func (a *aggregation) groupsBy(name []byte) bool {
	if a.call != nil && string(name) == model.NameLabel {
		return false
	}
	_, named := slices.BinarySearchFunc(a.names, name, bytes.Compare)
	return named != a.aggregate.Without
}

// groupOf returns the group of a series, and creates it if needed.
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
		l, err := labelsOf(&a.builder, a.key)
		if err != nil {
			return nil, err
		}
		i = len(a.groups)
		a.groups = append(a.groups, group{labels: l, cells: a.newCells()})
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

// add adds values at some steps to the cells of a group. The first value of a cell is not changed.
func (a *aggregation) add(cells []cell, at []int32, values []float64) error {
	for i, v := range values {
		c := &cells[at[i]]
		c.count++
		if c.count == 1 {
			c.value = v
			continue
		}
		switch a.aggregate.Op {
		case parser.SUM:
			c.value, c.rest = kahansum.Inc(v, c.value, c.rest)
		case parser.AVG:
			c.value, c.rest = kahansum.Inc(v, c.value, c.rest)
			if math.IsInf(c.value, 0) {
				// From here on upstream computes differently, to tell a sum that overflows from an infinite value.
				return errNeedsUpstream
			}
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
	return nil
}

// appendValues appends the values of a group and their steps.
func (a *aggregation) appendValues(g *group, at []int32, values []float64) ([]int32, []float64) {
	for i := range g.cells {
		c := &g.cells[i]
		if c.count == 0 {
			continue
		}
		v := c.value
		switch a.aggregate.Op {
		case parser.SUM:
			v += c.rest
		case parser.AVG:
			v = v/c.count + c.rest/c.count
		case parser.COUNT:
			v = c.count
		case parser.GROUP:
			v = 1
		}
		at, values = append(at, int32(i)), append(values, v)
	}
	return at, values
}

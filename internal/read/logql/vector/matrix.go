package vector

import (
	"math/bits"

	"github.com/shaledb/shale/internal/model"
)

// Steps are the times at which a query is evaluated: Start, Start+Step, and so on, Count of them, in Unix
// nanoseconds. An instant query has one step, and its Step is 0.
type Steps struct {
	Start, Step int64
	Count       int
}

// Time returns the time of step i.
func (s Steps) Time(i int) int64 { return s.Start + int64(i)*s.Step }

// Matrix is the value of an expression at all steps of a query. The order of its series matters only to sort,
// sort_desc, topk and bottomk in an instant query; elsewhere it is the order of labels.
type Matrix struct {
	Steps  Steps
	Series []Series
}

// Series is one series of a matrix. A series without any present value is not part of a matrix.
type Series struct {
	// Labels are canonical, but a value may be empty where a stage made it so.
	Labels model.Labels
	// Values has a value for each step. It counts only where Present has the step.
	Values  []float64
	Present Set
}

// Set is a set of steps, a bit each.
type Set []uint64

// NewSet returns an empty set for that many steps.
func NewSet(steps int) Set { return make(Set, (steps+63)/64) }

// Add adds step i.
func (s Set) Add(i int) { s[i>>6] |= 1 << (i & 63) }

// Remove removes step i.
func (s Set) Remove(i int) { s[i>>6] &^= 1 << (i & 63) }

// Has reports whether step i is in the set.
func (s Set) Has(i int) bool { return s[i>>6]>>(i&63)&1 != 0 }

// Len returns the number of steps in the set.
func (s Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

//go:build invariants

package head

import "fmt"

// checkOrder panics unless the rows are in the order of (key, time).
func (r *runRows) checkOrder() {
	for i := 1; i < len(r.keys); i++ {
		c := r.keys[i-1].Compare(r.keys[i])
		if c > 0 || c == 0 && r.times[i-1] > r.times[i] {
			panic(fmt.Sprintf("BUG: row %d of a run is out of order", i))
		}
	}
}

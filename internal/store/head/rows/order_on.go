//go:build invariants

package rows

import "fmt"

// checkOrder panics unless the rows are in the order of (key, time).
func (r *FamilyRows) checkOrder() {
	for i := 1; i < len(r.Keys); i++ {
		c := r.Keys[i-1].Compare(r.Keys[i])
		if c > 0 || c == 0 && r.Times[i-1] > r.Times[i] {
			panic(fmt.Sprintf("BUG: row %d of a run is out of order", i))
		}
	}
}

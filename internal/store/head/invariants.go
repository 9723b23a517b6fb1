package head

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// checkParts panics unless the parts of each group have ranges of sequence numbers that follow each other: a merge of
// neighbours relies on it, and so does "the last arrival wins".
func checkParts(m *manifest) {
	type where struct {
		kind   kind
		signal model.Signal
		group  group
	}
	last := make(map[where]partInfo)
	for _, p := range m.Parts {
		at := where{p.Kind, p.Signal, p.Group}
		if before, ok := last[at]; ok && p.SeqLo <= before.SeqHi {
			panic(fmt.Sprintf("BUG: %s holds [%d, %d] and stands after %s with [%d, %d]", p.File, p.SeqLo, p.SeqHi, before.File, before.SeqLo, before.SeqHi))
		}
		if p.SeqLo > p.SeqHi || p.SeqHi > m.Covered {
			panic(fmt.Sprintf("BUG: %s holds [%d, %d] and parts cover %d", p.File, p.SeqLo, p.SeqHi, m.Covered))
		}
		last[at] = p
	}
}

// checkOrder panics unless the rows are in the order of (key, time).
func (r *runRows) checkOrder() {
	for i := 1; i < len(r.keys); i++ {
		c := r.keys[i-1].Compare(r.keys[i])
		if c > 0 || c == 0 && r.times[i-1] > r.times[i] {
			panic(fmt.Sprintf("BUG: row %d of a run is out of order", i))
		}
	}
}

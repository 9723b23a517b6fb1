//go:build invariants

package local

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// CheckOrder panics unless the parts of each group have ranges of sequence numbers that follow each other: a
// merge of neighbours relies on it, and so does "the last arrival wins".
func (m *Manifest) CheckOrder() {
	type where struct {
		Kind   Kind
		signal model.Signal
		Group  Group
	}
	last := make(map[where]Info)
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

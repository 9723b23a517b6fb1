package remote

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/read/remote/wire"
)

// TestWithout: a peer is told each deletion that hides rows which it is asked for, at its place, however many
// deletions the bucket carries out, and that some have been. It must have applied all of their records.
func TestWithout(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		needs := []wire.Need{{Node: "p0", Epoch: 1}, {Node: "p1", Epoch: 1}, {Node: "p0", Epoch: 2}}
		for i := range needs {
			needs[i].After = uint64(900 + random.IntN(100))
		}
		var deletions []Deletion
		fences := map[string][]uint64{}
		for n := range 1000 {
			epoch, of := uint64(1+n/500), []uint64{uint64(n), uint64(n + random.IntN(3))}
			terms := fmt.Sprintf(`"%d"`, n)
			for _, need := range needs {
				seq := uint64(0)
				if need.Epoch == epoch {
					seq = of[need.Node[1]-'0']
				}
				fences[terms] = append(fences[terms], seq)
			}
			deletions = append(deletions, Deletion{Terms: []byte(terms), Fence: func(node string, e uint64) uint64 {
				if e != epoch {
					return 0
				}
				return of[node[1]-'0']
			}})
		}
		r := wire.Request{Journals: slices.Clone(needs)}
		r.Deletions = without(r.Journals, deletions)
		if n := len(r.Deletions); n == 0 || n > 103 {
			t.Fatalf("%d deletions are named", n)
		}
		for i := range needs {
			told, most := map[string]uint64{}, uint64(0)
			for _, h := range r.Hidden(&r.Journals[i]) {
				told[string(h.Terms)] = h.Seq
			}
			for terms, all := range fences {
				seq := all[i]
				most = max(most, seq)
				if got, has := told[terms]; has && got != seq || !has && seq > needs[i].After {
					t.Fatalf("deletion %s of %+v: told %d, want %d", terms, needs[i], got, seq)
				}
			}
			if len(told) == 0 || r.Journals[i].AtLeast != most {
				t.Fatalf("%+v is told %d deletions and must have applied %d, want %d", needs[i], len(told), r.Journals[i].AtLeast, most)
			}
		}
		if _, err := json.Marshal(&r); err != nil {
			t.Fatal(err)
		}
	}
}

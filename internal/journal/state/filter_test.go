package state

import (
	"math/rand/v2"
	"testing"
)

// TestFilter: a filter has all keys that were added, and few of the others, also among keys of one partition.
func TestFilter(t *testing.T) {
	const n, partition = 10_000, 63
	f := NewFilter(n)
	r := rand.New(rand.NewPCG(1, 1))
	key := func() uint64 { return r.Uint64()&^0xff | partition }
	var added []uint64
	for range n {
		k := key()
		f.Add(k)
		added = append(added, k)
	}
	for _, k := range added {
		if !f.Has(k) {
			t.Fatalf("%x was added and is not there", k)
		}
	}
	wrong := 0
	for range n {
		if f.Has(key()) {
			wrong++
		}
	}
	if wrong > n/20 {
		t.Errorf("%d of %d other keys seem to be there", wrong, n)
	}
	if NewFilter(1<<40) != nil || len(NewFilter(0)) == 0 {
		t.Error("the size of a filter is not bounded")
	}
}

package series

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// Pairs come out by name and value as comparing whole ones would have it: values that begin alike for longer
// than a piece, that end where others go on, and with the bytes that a piece is filled up with.
func TestPairsAreSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	ends := []string{"", "\x00", "\x00\x00", "\x01", "\x07", "\x08", "\xff", "a", "seven77", "seven77\x00", "eight888", "\x00\x00\x00\x00\x00\x00\x00\x00"}
	type pair struct{ name, value string }
	for round := range 200 {
		p := newPostings(uint64(round))
		var want []pair
		ranks := uint32(1 + r.IntN(300))
		for rank := range ranks {
			var l []string
			for n := range 1 + r.IntN(4) {
				value := ""
				for range 1 + r.IntN(4) {
					value += ends[r.IntN(len(ends))]
				}
				if r.IntN(3) == 0 {
					value = fmt.Sprintf("agent-%06d.metric-%04d", r.IntN(20), r.IntN(50))
				}
				if value == "" {
					continue
				}
				name := fmt.Sprintf("n%0*d", 1+7*(n%2), n)
				l = append(l, name, value)
				want = append(want, pair{name, value})
			}
			if err := p.add(rank, model.LabelsOf(l...)); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortFunc(want, func(a, b pair) int {
			if c := bytes.Compare([]byte(a.name), []byte(b.name)); c != 0 {
				return c
			}
			return bytes.Compare([]byte(a.value), []byte(b.value))
		})
		want = slices.Compact(want)
		var got []pair
		for _, o := range p.sorted() {
			s := p.pairs.get(o.id)
			got = append(got, pair{string(p.name(s)), string(p.value(s))})
		}
		if !slices.Equal(got, want) {
			t.Fatalf("round %d:\n%q\nwant\n%q", round, got, want)
		}
	}
}

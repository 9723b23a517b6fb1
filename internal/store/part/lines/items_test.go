package lines

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMinimizers compares the minimizers of runs with those that each window by itself gives.
func TestMinimizers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 6))
		letters := rapid.SampledFrom([]string{"0123456789abcdef", "ab", "aA", "0123456789ABCDEFGHIJKLMNOPQRSabcdefghijklmnopqrstuvwxyz"}).Draw(rt, "letters")
		run := make([]byte, rapid.IntRange(longRun, 400).Draw(rt, "length"))
		for i := range run {
			run[i] = letters[r.IntN(len(letters))]
		}
		var want []uint64
		for i := 0; i+longRun <= len(run); i++ {
			var least uint64
			for k := i; k < i+longWindow; k++ {
				gram := uint64(0)
				for n, c := range run[k : k+longGram] {
					if c >= 'A' && c <= 'Z' {
						c += 'a' - 'A'
					}
					gram |= uint64(c) << (8 * n)
				}
				if x := gram * gramOrder; k == i || x < least {
					least = x
				}
			}
			want = append(want, Spread(least))
		}
		if got := appendMinimizers(nil, run); !slices.Equal(got, slices.Compact(want)) {
			rt.Fatalf("%q: %x, should be %x", run, got, want)
		}
	})
}

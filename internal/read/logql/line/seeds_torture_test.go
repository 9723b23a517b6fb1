//go:build torture

package line_test

import "math/rand/v2"

// seeds are others at each run, and more. A failure names its seed.
func seeds() []uint64 {
	all := make([]uint64, 20)
	for i := range all {
		all[i] = rand.Uint64()
	}
	return all
}

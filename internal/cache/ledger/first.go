package ledger

import "sync/atomic"

// firstWays is the number of places in which a pair of key and query may be.
const firstWays = 4

// firsts tells the first touch of a key by a query from later ones. It remembers the last pairs, so a touch
// that comes after very many others counts as a first one again. It may be used by many goroutines; two of
// them that note one pair at the same time may both be the first.
type firsts struct {
	pairs []atomic.Uint64
	mask  uint64
}

func newFirsts(bytes int64) firsts {
	n := uint64(1024)
	for int64(n)*16 <= bytes {
		n *= 2
	}
	return firsts{make([]atomic.Uint64, n), n - 1}
}

// note remembers a pair, and reports whether it was unknown.
func (f *firsts) note(key, query uint64) bool {
	x := key ^ query*0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	x = (x ^ x>>32) | 1 // 0 is an empty place
	places := f.pairs[x>>8&f.mask&^(firstWays-1):][:firstWays]
	for i := range places {
		if places[i].Load() == x {
			return false
		}
	}
	places[x>>4&(firstWays-1)].Store(x)
	return true
}

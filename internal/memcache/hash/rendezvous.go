package hash

import "github.com/zeebo/xxh3"

// Rendezvous gives each key to the server that has the greatest hash with it. A server that leaves or comes
// moves its own keys, and no others.
type Rendezvous struct{ seeds []uint64 }

// NewRendezvous returns a picker. What counts is the name of each server, not its place in the list.
func NewRendezvous(servers []string) *Rendezvous {
	r := &Rendezvous{make([]uint64, len(servers))}
	for i, s := range servers {
		r.seeds[i] = xxh3.HashString(s)
	}
	return r
}

// Pick is [Picker.Pick].
func (r *Rendezvous) Pick(key []byte) (best int) {
	k := xxh3.Hash(key)
	most := mix(k ^ r.seeds[0])
	for i, seed := range r.seeds[1:] {
		if score := mix(k ^ seed); score > most || score == most && seed > r.seeds[best] {
			best, most = i+1, score
		}
	}
	return best
}

// mix is the finaliser of SplitMix64, which makes an even hash of any number.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

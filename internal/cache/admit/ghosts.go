package admit

import "math/bits"

// ghostWays is the number of hashes in a bucket, a cache line of them.
const ghostWays = 8

// Ghosts is a table of hashes in buckets, each in the order of age. An entry has the upper 48 bits of a hash,
// and below them the 16 bits of the query that wanted the value; 0 is an empty place. It is not safe for
// concurrent use.
type Ghosts struct {
	entries []uint64
}

// NewGhosts returns an empty table of about n hashes.
func NewGhosts(n int) Ghosts {
	return Ghosts{make([]uint64, max(n/ghostWays, 1)*ghostWays)}
}

const ghostHash = ^uint64(0xffff)

func (g Ghosts) bucket(hash uint64) []uint64 {
	i, _ := bits.Mul64(hash&ghostHash, uint64(len(g.entries)/ghostWays))
	return g.entries[i*ghostWays:][:ghostWays]
}

// Put adds a hash, which may push the oldest of its bucket out.
func (g Ghosts) Put(hash uint64, query uint16) {
	b := g.bucket(hash)
	i := g.find(b, hash)
	if i < 0 {
		i = ghostWays - 1
	}
	copy(b[1:i+1], b[:i])
	b[0] = hash&ghostHash | uint64(query)
}

// Take removes a hash that another query has left, and reports whether there was one.
func (g Ghosts) Take(hash uint64, query uint16) bool {
	b := g.bucket(hash)
	i := g.find(b, hash)
	if i < 0 || uint16(b[i]) == query {
		return false
	}
	copy(b[i:], b[i+1:])
	b[ghostWays-1] = 0
	return true
}

func (g Ghosts) find(bucket []uint64, hash uint64) int {
	for i, e := range bucket {
		if e != 0 && e&ghostHash == hash&ghostHash {
			return i
		}
	}
	return -1
}

func (g Ghosts) list() []uint64 {
	var list []uint64
	for _, e := range g.entries {
		if e != 0 {
			list = append(list, e)
		}
	}
	return list
}

package hash

import (
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/facette/natsort"
)

// Jump is the jump hash of dskit, which Loki, Mimir and Thanos use: over the servers in natural order. A
// server that leaves moves the keys of all that come after it.
type Jump struct{ servers []int }

// NewJump returns a picker. What counts is the natural order of the servers, not that of the list.
func NewJump(servers []string) *Jump {
	j := &Jump{make([]int, len(servers))}
	for i := range servers {
		j.servers[i] = i
	}
	slices.SortStableFunc(j.servers, func(a, b int) int {
		switch {
		case natsort.Compare(servers[a], servers[b]):
			return -1
		case natsort.Compare(servers[b], servers[a]):
			return 1
		}
		return 0
	})
	return j
}

// Pick is [Picker.Pick].
func (j *Jump) Pick(key []byte) int { return j.servers[jump(xxhash.Sum64(key), len(j.servers))] }

// jump is the jump consistent hash of Lamping and Veach.
func jump(key uint64, buckets int) int {
	b, next := int64(-1), int64(0)
	for next < int64(buckets) {
		b = next
		key = key*2862933555777941757 + 1
		next = int64(float64(b+1) * (float64(int64(1)<<31) / float64(key>>33+1)))
	}
	return int(b)
}

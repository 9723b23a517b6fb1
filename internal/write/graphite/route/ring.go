package route

import (
	"fmt"
	"slices"
	"sort"
)

// ring puts destinations in an order for each key.
type ring interface {
	// nodes calls yield with destinations, by their index, until it returns false. One may come twice.
	nodes(key string, yield func(node int) bool)
}

// consistent is the ring of consistent hashing: a destination that comes or goes moves few keys.
type consistent struct {
	hash  hash
	count int // of destinations
	ring  []point
}

// point is one of the places that a destination has on the ring.
type point struct {
	at   int64
	node int
}

// places is how many each destination has.
const places = 100

func newConsistent(h hash, all []Destination) *consistent {
	r := &consistent{hash: h, count: len(all)}
	taken := map[int64]bool{}
	for i, d := range all {
		for n := range places {
			key := fmt.Sprintf("%s:%d", d.node(), n)
			if h == fnv1aCH {
				key = fmt.Sprintf("%d-%s", n, d.Instance)
				if d.Instance == "" {
					key = fmt.Sprintf("%d-None", n)
				}
			}
			at := h.of(key)
			for taken[at] {
				at++
			}
			taken[at] = true
			r.ring = append(r.ring, point{at, i})
		}
	}
	slices.SortFunc(r.ring, func(a, b point) int { return int(a.at - b.at) })
	return r
}

func (r *consistent) nodes(key string, yield func(int) bool) {
	if r.count == 1 && !yield(0) {
		return
	}
	at := r.hash.of(key)
	i := sort.Search(len(r.ring), func(i int) bool { return r.ring[i].at >= at }) % len(r.ring)
	// As in carbon, the last point of a turn is not looked at. A destination that has no other point, which
	// can be if all others lie together, is never found.
	last := (i + len(r.ring) - 1) % len(r.ring)
	seen := make([]bool, r.count)
	for left := r.count; left > 0 && i != last; i = (i + 1) % len(r.ring) {
		node := r.ring[i].node
		if seen[node] {
			continue
		}
		seen[node] = true
		left--
		if !yield(node) {
			return
		}
	}
}

// fast is the ring of fast hashing: the remainder of the hash says where to begin.
type fast struct {
	hash   hash
	sorted []int
}

func newFast(h hash, all []Destination) *fast {
	r := &fast{hash: h}
	for i := range all {
		r.sorted = append(r.sorted, i)
	}
	slices.SortStableFunc(r.sorted, func(a, b int) int {
		return int(h.of(all[a].node()) - h.of(all[b].node()))
	})
	return r
}

func (r *fast) nodes(key string, yield func(int) bool) {
	n := int64(len(r.sorted))
	begin := (r.hash.of(key)%n + n) % n // as the remainder of Python, which is never negative
	for i := range n {
		if !yield(r.sorted[(begin+i)%n]) {
			return
		}
	}
}

package hash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Twemproxy spreads keys over servers as a pool of twemproxy does: by one of its hashes and distributions,
// with a hash tag, over servers that are not ejected. The order of servers is twemproxy's own: by the length
// of their names, then by the names.
type Twemproxy struct {
	distribution string
	hash         func(key []byte) uint32
	tag          string
	servers      []Server
}

// Distributions are the names of the distributions of twemproxy.
func Distributions() []string { return []string{"ketama", "modula", "random"} }

// Hashes are the names of the hashes of twemproxy.
func Hashes() []string { return slices.Sorted(maps.Keys(hashes)) }

// NewTwemproxy returns the spread of a pool. A tag has two characters, or none. SortTwemproxy says in which
// order the servers must be.
func NewTwemproxy(distribution, hash, tag string, servers []Server) (*Twemproxy, error) {
	t := &Twemproxy{distribution, hashes[hash], tag, servers}
	switch {
	case !slices.Contains(Distributions(), distribution):
		return nil, fmt.Errorf("%q is not a distribution of twemproxy: expected one of %s", distribution, strings.Join(Distributions(), ", "))
	case t.hash == nil:
		return nil, fmt.Errorf("%q is not a hash of twemproxy: expected one of %s", hash, strings.Join(Hashes(), ", "))
	case len(tag) != 0 && len(tag) != 2:
		return nil, fmt.Errorf("a hash tag of %d characters: expected two", len(tag))
	case len(servers) == 0:
		return nil, fmt.Errorf("no servers")
	}
	return t, nil
}

// LessTwemproxy is the order of the servers of a pool.
func LessTwemproxy(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// Ring is where keys belong while certain servers are in use. It is safe for concurrent use.
type Ring struct {
	t     *Twemproxy
	alive []int // numbers of the servers that are in use
	// slots is of modula and random: the number of a server, as often as its weight.
	slots  []int
	ketama *Ketama
}

// Ring returns where keys belong while only some servers are in use; nil: all are. It is nil if none is.
func (t *Twemproxy) Ring(inUse func(server int) bool) *Ring {
	r := &Ring{t: t}
	var servers []Server
	for i, s := range t.servers {
		if inUse == nil || inUse(i) {
			r.alive = append(r.alive, i)
			servers = append(servers, s)
		}
	}
	if len(servers) == 0 {
		return nil
	}
	switch t.distribution {
	case "ketama":
		r.ketama = NewKetama(servers, t.hash)
	case "modula":
		for i, s := range servers {
			for range s.Weight {
				r.slots = append(r.slots, r.alive[i])
			}
		}
	default: // random does not weigh
		r.slots = r.alive
	}
	return r
}

// Pick is [Picker.Pick].
func (r *Ring) Pick(key []byte) int {
	if len(r.t.servers) == 1 {
		return 0
	}
	if r.t.tag != "" {
		key = r.t.tagged(key)
	}
	switch r.t.distribution {
	case "ketama":
		return r.alive[r.ketama.Pick(key)]
	case "modula":
		return r.slots[r.t.hash(key)%uint32(len(r.slots))]
	}
	return r.slots[rand.IntN(len(r.slots))]
}

// tagged returns the part of a key that is hashed: what lies between the two characters of the tag, if there
// is anything.
func (t *Twemproxy) tagged(key []byte) []byte {
	for i, c := range key {
		if c != t.tag[0] {
			continue
		}
		for j, c := range key[i+1:] {
			if c != t.tag[1] {
				continue
			}
			if j == 0 {
				return key
			}
			return key[i+1 : i+1+j]
		}
		return key
	}
	return key
}

package hash

import (
	"crypto/md5"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Server is a server of a ring. The name is what twemproxy hashes: see KetamaName.
type Server struct {
	Name   string
	Weight int
}

// KetamaName returns the name that twemproxy gives a server without an alias: HOST:PORT, or only HOST if the
// port is 11211.
func KetamaName(server string) string { return strings.TrimSuffix(server, ":11211") }

const (
	pointsPerServer = 160
	// One MD5 gives four points.
	pointsPerHash = 4
)

// Ketama is the ring of twemproxy, point for point.
type Ketama struct {
	points []point
	single bool
	hash   func(key []byte) uint32
}

type point struct {
	value  uint32
	server int
}

// NewKetama returns the ring of servers, for keys that are hashed by a function, which in twemproxy is
// fnv1a_64 by default.
func NewKetama(servers []Server, hash func(key []byte) uint32) *Ketama {
	k := &Ketama{single: len(servers) == 1, hash: hash}
	total := 0
	for _, s := range servers {
		total += s.Weight
	}
	for i, s := range servers {
		// twemproxy computes the share in 32 bits, adds to it in 64, and rounds to 32.
		share := float32(s.Weight) / float32(total)
		wanted := float32(share*pointsPerServer) / pointsPerHash * float32(len(servers))
		hashes := int(math.Floor(float64(float32(float64(wanted) + 1e-10))))
		for n := range hashes {
			sum := md5.Sum([]byte(s.Name + "-" + strconv.Itoa(n)))
			for at := range pointsPerHash {
				k.points = append(k.points, point{binary.LittleEndian.Uint32(sum[4*at:]), i})
			}
		}
	}
	slices.SortStableFunc(k.points, func(a, b point) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	return k
}

// Pick is [Picker.Pick].
func (k *Ketama) Pick(key []byte) int {
	if k.single {
		return 0
	}
	h := k.hash(key)
	i := sort.Search(len(k.points), func(i int) bool { return k.points[i].value >= h })
	if i == len(k.points) {
		i = 0
	}
	return k.points[i].server
}

// FNV1a64 is what twemproxy calls fnv1a_64: it has 32 bits, and its bytes are signed.
func FNV1a64(key []byte) uint32 {
	const offset, prime = 0xcbf29ce484222325, 0x100000001b3
	h := uint32(offset & math.MaxUint32)
	for _, c := range key {
		h = (h ^ uint32(int32(int8(c)))) * uint32(prime&math.MaxUint32)
	}
	return h
}

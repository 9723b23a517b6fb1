package route

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
)

// hash is a value of ROUTER_HASH_TYPE.
type hash string

const (
	carbonCH hash = "carbon_ch"
	fnv1aCH  hash = "fnv1a_ch"
	mmh3CH   hash = "mmh3_ch"
)

// of returns where a key lies. It may be negative, as in carbon.
func (h hash) of(key string) int64 {
	switch h {
	case fnv1aCH:
		f := fnv.New32a()
		_, _ = f.Write([]byte(key))
		v := f.Sum32()
		return int64(v>>16 ^ v&0xffff)
	case mmh3CH:
		return int64(int32(murmur3([]byte(key))))
	}
	sum := md5.Sum([]byte(key))
	return int64(binary.BigEndian.Uint16(sum[:]))
}

// node returns a destination as Python prints the tuple of its host and instance.
func (d Destination) node() string {
	if d.Instance == "" {
		return fmt.Sprintf("('%s', None)", d.Host)
	}
	return fmt.Sprintf("('%s', '%s')", d.Host, d.Instance)
}

// murmur3 is MurmurHash3 of 32 bits with the seed 0, as mmh3.hash of Python computes it.
func murmur3(b []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	var h uint32
	n := len(b)
	for ; len(b) >= 4; b = b[4:] {
		k := bits.RotateLeft32(binary.LittleEndian.Uint32(b)*c1, 15) * c2
		h = bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
	}
	var k uint32
	for i := len(b) - 1; i >= 0; i-- {
		k = k<<8 | uint32(b[i])
	}
	h ^= bits.RotateLeft32(k*c1, 15) * c2
	h ^= uint32(n)
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

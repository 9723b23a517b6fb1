package hash

import (
	"crypto/md5"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// hashes are those of twemproxy, by the names of its configuration. Some are not what their names say:
//
//   - bytes are signed in one_at_a_time, all of fnv and one of hsieh, so that those from 0x80 on are extended
//   - crc16 keeps the bits that it shifts out, and crc32 has 15 bits
//   - fnv1a_64 has 32 bits, and fnv1_64 has 64 of which the lower half counts
//   - murmur has a seed that depends on the length
var hashes = map[string]func(key []byte) uint32{
	"one_at_a_time": oneAtATime,
	"md5":           func(key []byte) uint32 { sum := md5.Sum(key); return binary.LittleEndian.Uint32(sum[:]) },
	"crc16":         crc16,
	"crc32":         func(key []byte) uint32 { return crc32.ChecksumIEEE(key) >> 16 & 0x7fff },
	"crc32a":        func(key []byte) uint32 { return crc32.ChecksumIEEE(key) },
	"fnv1_64":       fnv1of64,
	"fnv1a_64":      FNV1a64,
	"fnv1_32":       fnv1of32,
	"fnv1a_32":      fnv1aOf32,
	"hsieh":         hsieh,
	"murmur":        murmur,
	"jenkins":       jenkins,
}

// extend is a signed char as a number of 32 bits.
func extend(c byte) uint32 { return uint32(int32(int8(c))) }

func oneAtATime(key []byte) (h uint32) {
	for _, c := range key {
		h += extend(c)
		h += h << 10
		h ^= h >> 6
	}
	h += h << 3
	h ^= h >> 11
	return h + h<<15
}

func crc16(key []byte) (crc uint32) {
	for _, c := range key {
		crc = crc<<8 ^ uint32(crc16Table[byte(crc>>8)^c])
	}
	return crc
}

// crc16Table is of the polynomial 0x1021.
var crc16Table = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()

func fnv1of64(key []byte) uint32 {
	h := uint64(0xcbf29ce484222325)
	for _, c := range key {
		h = h*0x100000001b3 ^ uint64(int64(int8(c)))
	}
	return uint32(h)
}

func fnv1of32(key []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range key {
		h = h*16777619 ^ extend(c)
	}
	return h
}

func fnv1aOf32(key []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range key {
		h = (h ^ extend(c)) * 16777619
	}
	return h
}

func hsieh(key []byte) (h uint32) {
	if len(key) == 0 {
		return 0
	}
	two := func(b []byte) uint32 { return uint32(binary.LittleEndian.Uint16(b)) }
	for ; len(key) >= 4; key = key[4:] {
		h += two(key)
		h = h<<16 ^ (two(key[2:])<<11 ^ h)
		h += h >> 11
	}
	switch len(key) {
	case 3:
		h += two(key)
		h ^= h << 16
		h ^= extend(key[2]) << 18
		h += h >> 11
	case 2:
		h += two(key)
		h ^= h << 11
		h += h >> 17
	case 1:
		h += uint32(key[0])
		h ^= h << 10
		h += h >> 1
	}
	h ^= h << 3
	h += h >> 5
	h ^= h << 4
	h += h >> 17
	h ^= h << 25
	return h + h>>6
}

func murmur(key []byte) uint32 {
	const m = 0x5bd1e995
	n := uint32(len(key))
	h := 0xdeadbeef*n ^ n
	for ; len(key) >= 4; key = key[4:] {
		k := binary.LittleEndian.Uint32(key) * m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	if len(key) > 0 {
		for i, c := range key {
			h ^= uint32(c) << (8 * i)
		}
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

// jenkins is lookup3 of Bob Jenkins with a seed of 13.
func jenkins(key []byte) uint32 {
	a := 0xdeadbeef + uint32(len(key)) + 13
	b, c := a, a
	rot := bits.RotateLeft32
	for ; len(key) > 12; key = key[12:] {
		a += binary.LittleEndian.Uint32(key)
		b += binary.LittleEndian.Uint32(key[4:])
		c += binary.LittleEndian.Uint32(key[8:])
		a, c = (a-c)^rot(c, 4), c+b
		b, a = (b-a)^rot(a, 6), a+c
		c, b = (c-b)^rot(b, 8), b+a
		a, c = (a-c)^rot(c, 16), c+b
		b, a = (b-a)^rot(a, 19), a+c
		c, b = (c-b)^rot(b, 4), b+a
	}
	if len(key) == 0 {
		return c
	}
	var last [12]byte
	copy(last[:], key)
	a += binary.LittleEndian.Uint32(last[:])
	b += binary.LittleEndian.Uint32(last[4:])
	c += binary.LittleEndian.Uint32(last[8:])
	c = (c ^ b) - rot(b, 14)
	a = (a ^ c) - rot(c, 11)
	b = (b ^ a) - rot(a, 25)
	c = (c ^ b) - rot(b, 16)
	a = (a ^ c) - rot(c, 4)
	b = (b ^ a) - rot(a, 14)
	return (c ^ b) - rot(b, 24)
}

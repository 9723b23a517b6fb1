package memcached

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/memcache/meta"
)

// frameVersion is in the name of each value, so that processes of different versions do not read each
// other's.
const frameVersion = "1"

// A frame is the CRC-32C of all that follows (4 bytes), the length of the full name (2), the name, and the
// value. Numbers are little-endian. The name is there because the key may be a hash of it, and because a
// server or a proxy may give the value of another key.
const frameBytes = 4 + 2

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errChecksum = errors.New("the checksum does not match")
	errName     = errors.New("it is the value of another key")
)

// appendName appends the full name of a value. Those that do not depend on the bucket are the same for all
// buckets.
func (t *Tier) appendName(b []byte, k cache.Key) []byte {
	if k.Kind == cache.Counts {
		return k.Append(append(b, t.common...))
	}
	return k.Append(append(b, t.prefix...))
}

// keyOf returns the key of a name: the name, or the prefix and a hash if it is too long.
func (t *Tier) keyOf(name []byte) []byte {
	if meta.ValidKey(name) {
		return name
	}
	sum := sha256.Sum256(name)
	return hex.AppendEncode(append([]byte(t.prefix), '#'), sum[:])
}

// appendFrame appends a frame.
func appendFrame(b, name, value []byte) []byte {
	from := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(name)))
	b = append(append(b, name...), value...)
	binary.LittleEndian.PutUint32(b[from:], crc32.Checksum(b[from+4:], castagnoli))
	return b
}

// unframe returns the value of a frame, which refers to it.
func unframe(frame, name []byte) ([]byte, error) {
	if len(frame) < frameBytes || binary.LittleEndian.Uint32(frame) != crc32.Checksum(frame[4:], castagnoli) {
		return nil, errChecksum
	}
	rest := frame[frameBytes:]
	n := int(binary.LittleEndian.Uint16(frame[4:]))
	if n > len(rest) || string(rest[:n]) != string(name) || n == len(rest) {
		return nil, errName
	}
	return rest[n:], nil
}

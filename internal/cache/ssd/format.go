package ssd

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
)

// A segment is a file of a fixed size: a header, records one after the other, and a footer at its end, which
// lists the records. A file is written over when its segment is reclaimed, so every checksum begins with the
// generation of the segment. Numbers are little-endian, checksums are CRC-32C.
//
//	header:  u64 magic, u32 version, u32 bytes of the segment, u64 generation, u32 checksum of these
//	record:  u32 checksum of generation and the rest, u32 length of the value, u16 length of the key, u16 0,
//	         u64 hash, key, value
//	footer:  an entry for each record: u64 hash, u32 offset, u32 length
//	trailer: u32 number of entries, u32 checksum of generation, number and entries, u64 generation, u64 magic
const (
	headerBytes  = 28
	recordBytes  = 20 // besides key and value
	entryBytes   = 16
	trailerBytes = 24

	headerMagic   = 0x3153434547455353 // "SSEGECS1"
	trailerMagic  = 0x31544f4f46474553 // "SEGFOOT1"
	formatVersion = 1
)

// sum returns a checksum that begins with the generation. The same bytes have another one in the next 2^32
// generations.
func sum(generation uint64, b ...[]byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	c := uint32(generation) ^ uint32(generation>>32)
	for _, part := range b {
		c = crc32.Update(c, table, part)
	}
	return c
}

// maxKeyBytes bounds the key of a record. The names of objects are far shorter.
const maxKeyBytes = 512

// appendKey appends the key as a record has it.
func appendKey(dst []byte, k cache.Key) []byte {
	dst = append(dst, byte(k.Kind))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(k.Off))
	dst = append(dst, k.Digest[:]...)
	return append(dst, k.Object...)
}

func keyBytes(k cache.Key) int { return 1 + 8 + len(k.Digest) + len(k.Object) }

func appendHeader(dst []byte, segmentBytes uint32, generation uint64) []byte {
	from := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, headerMagic)
	dst = binary.LittleEndian.AppendUint32(dst, formatVersion)
	dst = binary.LittleEndian.AppendUint32(dst, segmentBytes)
	dst = binary.LittleEndian.AppendUint64(dst, generation)
	return binary.LittleEndian.AppendUint32(dst, sum(0, dst[from:]))
}

// parseHeader returns the generation of a segment.
func parseHeader(b []byte, segmentBytes uint32) (generation uint64, err error) {
	if len(b) != headerBytes {
		return 0, corrupt("the header is truncated: %d of %d bytes", len(b), headerBytes)
	}
	if binary.LittleEndian.Uint64(b) != headerMagic || binary.LittleEndian.Uint32(b[24:]) != sum(0, b[:24]) {
		return 0, corrupt("the header is damaged, or of another kind of file")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return 0, corrupt("expected format version %d, got %d", formatVersion, v)
	}
	if n := binary.LittleEndian.Uint32(b[12:]); n != segmentBytes {
		return 0, corrupt("expected a segment of %d bytes, got one of %d", segmentBytes, n)
	}
	if generation = binary.LittleEndian.Uint64(b[16:]); generation == 0 {
		return 0, corrupt("the generation is 0")
	}
	return generation, nil
}

func appendRecord(dst []byte, generation, hash uint64, key, value []byte) []byte {
	from := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(key)))
	dst = append(dst, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, hash)
	dst = append(dst, key...)
	dst = append(dst, value...)
	binary.LittleEndian.PutUint32(dst[from:], sum(generation, dst[from+4:]))
	return dst
}

// recordLength returns the length of a record from its first recordBytes bytes, which may be anything.
func recordLength(b []byte) int {
	return recordBytes + int(binary.LittleEndian.Uint32(b[4:])) + int(binary.LittleEndian.Uint16(b[8:]))
}

// parseRecord returns key, value and hash of a whole record. Key and value are parts of it.
func parseRecord(b []byte, generation uint64) (hash uint64, key, value []byte, err error) {
	if len(b) < recordBytes {
		return 0, nil, nil, corrupt("the record is truncated: %d of at least %d bytes", len(b), recordBytes)
	}
	if n := recordLength(b); n != len(b) {
		return 0, nil, nil, corrupt("expected a record of %d bytes, got one of %d", len(b), n)
	}
	if binary.LittleEndian.Uint32(b) != sum(generation, b[4:]) {
		return 0, nil, nil, corrupt("the checksum of the record does not match")
	}
	n := recordBytes + int(binary.LittleEndian.Uint16(b[8:]))
	return binary.LittleEndian.Uint64(b[12:]), b[recordBytes:n:n], b[n:len(b):len(b)], nil
}

// located is an entry of a footer.
type located struct {
	hash   uint64
	off, n uint32
}

func footerLength(entries int) int { return entries*entryBytes + trailerBytes }

func appendFooter(dst []byte, generation uint64, entries []located) []byte {
	from := len(dst)
	for _, e := range entries {
		dst = binary.LittleEndian.AppendUint64(dst, e.hash)
		dst = binary.LittleEndian.AppendUint32(dst, e.off)
		dst = binary.LittleEndian.AppendUint32(dst, e.n)
	}
	list := dst[from:]
	count := binary.LittleEndian.AppendUint32(nil, uint32(len(entries)))
	check := sum(generation, count, list)
	dst = append(dst, count...)
	dst = binary.LittleEndian.AppendUint32(dst, check)
	dst = binary.LittleEndian.AppendUint64(dst, generation)
	return binary.LittleEndian.AppendUint64(dst, trailerMagic)
}

// parseTrailer returns the number of entries that come before the trailer of a segment.
func parseTrailer(b []byte, segmentBytes uint32, generation uint64) (entries int, err error) {
	if len(b) != trailerBytes || binary.LittleEndian.Uint64(b[16:]) != trailerMagic || binary.LittleEndian.Uint64(b[8:]) != generation {
		return 0, corrupt("the segment has no footer")
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n)*entryBytes+headerBytes+trailerBytes > uint64(segmentBytes) {
		return 0, corrupt("the footer has %d entries, more than fit a segment of %d bytes", n, segmentBytes)
	}
	return int(n), nil
}

// parseFooter returns the entries of a footer: the list and the trailer.
func parseFooter(b []byte, segmentBytes uint32, generation uint64) ([]located, error) {
	if len(b) < trailerBytes {
		return nil, corrupt("the footer is truncated: %d of at least %d bytes", len(b), trailerBytes)
	}
	list, trailer := b[:len(b)-trailerBytes], b[len(b)-trailerBytes:]
	n, err := parseTrailer(trailer, segmentBytes, generation)
	if err != nil {
		return nil, err
	}
	if len(list) != n*entryBytes || binary.LittleEndian.Uint32(trailer[4:]) != sum(generation, trailer[:4], list) {
		return nil, corrupt("the checksum of the footer does not match")
	}
	entries := make([]located, n)
	for i := range entries {
		e := list[i*entryBytes:]
		entries[i] = located{binary.LittleEndian.Uint64(e), binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:])}
		if e := &entries[i]; e.off < headerBytes || e.n < recordBytes || uint64(e.off)+uint64(e.n) > uint64(segmentBytes) || e.n > maxRecordBytes {
			return nil, corrupt("entry %d of the footer has %d bytes at offset %d of a segment of %d", i, e.n, e.off, segmentBytes)
		}
	}
	return entries, nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", model.ErrCorrupt, fmt.Sprintf(format, args...))
}

const segmentPrefix = "segment-"

func segmentName(slot int) string { return fmt.Sprintf("%s%05d", segmentPrefix, slot) }

// slotOf returns the slot of a file by its name, or false for other files.
func slotOf(name string) (slot int, ok bool) {
	digits, ok := strings.CutPrefix(name, segmentPrefix)
	if !ok {
		return 0, false
	}
	_, err := fmt.Sscanf(digits, "%d", &slot)
	return slot, err == nil && segmentName(slot) == name
}

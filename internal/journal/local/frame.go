package local

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/shaledb/shale/internal/model"
)

// frameHeader is the size of the header before each record:
//
//	 0  u32  CRC32C of the bytes 4 to 24
//	 4  u32  length of the record
//	 8  u64  sequence number
//	16  u32  how many records directly before this one were not yet durable when it was written
//	20  u32  CRC32C of the record
//
// All numbers are little-endian. The header has its own checksum, so that the appender can compute that of
// the record before the sequence number is known.
const frameHeader = 24

// MaxRecordBytes bounds one encoded batch.
const MaxRecordBytes = 128 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is a decoded frame header.
type frame struct {
	length   uint32
	seq      uint64
	unsynced uint32
	crc      uint32
}

// durable returns the last sequence number that was durable when the frame was written.
func (f frame) durable() uint64 { return f.seq - 1 - uint64(f.unsynced) }

// putFrame writes the header in front of a record in buf, which has room for it. The checksum of the record
// is already in place.
func putFrame(buf []byte, seq uint64, unsynced int) {
	binary.LittleEndian.PutUint32(buf[4:], uint32(len(buf)-frameHeader))
	binary.LittleEndian.PutUint64(buf[8:], seq)
	binary.LittleEndian.PutUint32(buf[16:], uint32(unsynced))
	binary.LittleEndian.PutUint32(buf, crc32.Checksum(buf[4:frameHeader], castagnoli))
}

func putRecordSum(buf []byte) {
	binary.LittleEndian.PutUint32(buf[20:], crc32.Checksum(buf[frameHeader:], castagnoli))
}

// parseFrame reads a frame header; ok reports whether its checksum is right and its fields are plausible.
func parseFrame(b []byte) (f frame, ok bool) {
	f = frame{
		length:   binary.LittleEndian.Uint32(b[4:]),
		seq:      binary.LittleEndian.Uint64(b[8:]),
		unsynced: binary.LittleEndian.Uint32(b[16:]),
		crc:      binary.LittleEndian.Uint32(b[20:]),
	}
	return f, f.seq > 0 && uint64(f.unsynced) < f.seq && f.length <= MaxRecordBytes &&
		binary.LittleEndian.Uint32(b) == crc32.Checksum(b[4:frameHeader], castagnoli)
}

// segmentHeader is the size of the header of every segment:
//
//	 0  8 bytes  "SHALEJNL"
//	 8  u32      version, 1
//	12  u32      zero
//	16  u64      key seed of the installation
//	24  u64      sequence number of the first record
//	32  u64      sequence number of the last valid record in earlier segments
//	40  u32      CRC32C of the bytes 0 to 40
const segmentHeader = 44

const (
	magic   = "SHALEJNL"
	version = 1
)

// maxSeq keeps sequence numbers from overflowing, whatever a file says.
const maxSeq = 1 << 62

// header is a decoded segment header.
type header struct {
	seed  model.KeySeed
	first uint64
	// before is first-1, unless the earlier segments end before the last record that is in parts of the head.
	before uint64
}

func (h header) append(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.seed))
	dst = binary.LittleEndian.AppendUint64(dst, h.first)
	dst = binary.LittleEndian.AppendUint64(dst, h.before)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

func parseHeader(b []byte) (header, error) {
	if len(b) < segmentHeader || string(b[:8]) != magic {
		return header{}, fmt.Errorf("%w: not a journal segment", model.ErrCorrupt)
	}
	if binary.LittleEndian.Uint32(b[40:]) != crc32.Checksum(b[:40], castagnoli) {
		return header{}, fmt.Errorf("%w: segment header has a wrong checksum", model.ErrCorrupt)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return header{}, fmt.Errorf("%w: expected journal version %d, got %d", model.ErrInvalid, version, v)
	}
	h := header{
		seed:   model.KeySeed(binary.LittleEndian.Uint64(b[16:])),
		first:  binary.LittleEndian.Uint64(b[24:]),
		before: binary.LittleEndian.Uint64(b[32:]),
	}
	if h.first == 0 || h.first > maxSeq || h.before >= h.first {
		return header{}, fmt.Errorf("%w: first record %d is not after record %d", model.ErrCorrupt, h.first, h.before)
	}
	return h, nil
}

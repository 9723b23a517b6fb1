package file

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

const (
	// PageBytes is the size at which a page is closed. It is big enough that a request to a bucket is worth
	// its latency, and small enough that one series does not cost much more than its own bytes.
	PageBytes = 64 << 10
	// MaxPageBytes bounds a decoded page, and so what a forged length can make a reader allocate.
	MaxPageBytes = 16 << 20
	// MaxFooterBytes bounds the decoded footer; it fits half a million tenants.
	MaxFooterBytes = 64 << 20

	// EnvelopeMin is the codec byte, the shortest length and the checksum.
	EnvelopeMin   = 1 + 1 + ChecksumBytes
	envelopeMax   = 1 + binary.MaxVarintLen32 + ChecksumBytes
	ChecksumBytes = 4
)

// Codecs of pages, as stored. Codecs of one section's pages, such as that of log lines, have numbers from
// firstOwnCodec on and are known to that section only.
const (
	CodecNone byte = 0
	CodecS2   byte = 1
	CodecZstd byte = 2

	FirstOwnCodec byte = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of bytes.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// zstdDecoders and zstdEncoders keep coders between uses: they are expensive to make and take about 1 MB
// each. Their number follows the number of goroutines that code at one time, and the collector empties the
// pools.
var (
	zstdDecoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(MaxFooterBytes))
		if err != nil {
			return err
		}
		return d
	}}
	zstdEncoders = sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
			zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(128<<10), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
		if err != nil {
			return err
		}
		return e
	}}
)

// WorthCoding reports whether a coded payload is at least 1/32 shorter. Other payloads are stored uncoded,
// which makes them free to decode.
func WorthCoding(coded, raw int) bool { return coded <= raw-raw/32 }

// SealPage appends the stored form of a page: codec, raw length, payload, CRC-32C of all of it.
func SealPage(dst, payload []byte, codec byte) ([]byte, error) {
	begin := len(dst)
	head := binary.AppendUvarint(append(dst, codec), uint64(len(payload)))
	out := head
	switch codec {
	case CodecS2:
		out = appendS2(head, payload)
	case CodecZstd:
		switch e := zstdEncoders.Get().(type) {
		case *zstd.Encoder:
			out = e.EncodeAll(payload, head)
			zstdEncoders.Put(e)
		case error:
			return dst, fmt.Errorf("%w: part: zstd encoder: %w", model.ErrTransient, e)
		}
	}
	if codec == CodecNone || !WorthCoding(len(out)-len(head), len(payload)) {
		out = append(head, payload...)
		out[begin] = CodecNone
	}
	return AppendChecksum(out, begin), nil
}

// AppendChecksum ends a stored page that begins at begin.
func AppendChecksum(dst []byte, begin int) []byte {
	return binary.LittleEndian.AppendUint32(dst, Checksum(dst[begin:]))
}

func appendS2(dst, payload []byte) []byte {
	n := len(dst)
	most := s2.MaxEncodedLen(len(payload))
	for cap(dst)-n < most {
		dst = append(dst[:cap(dst)], 0)
	}
	return dst[:n+len(s2.Encode(dst[n:n+most], payload))]
}

// VerifyPage verifies the checksum of a stored page.
func VerifyPage(stored []byte) error {
	if len(stored) < EnvelopeMin {
		return column.Corrupt("page of %d bytes; expected at least %d", len(stored), EnvelopeMin)
	}
	body := stored[:len(stored)-ChecksumBytes]
	if want, got := binary.LittleEndian.Uint32(stored[len(body):]), Checksum(body); want != got {
		return column.Corrupt("page: checksum is %08x, should be %08x", got, want)
	}
	return nil
}

// OpenPage returns the payload of a stored page with a codec of any section. The payload may alias stored.
// Its size is checked against limit before anything is allocated.
func OpenPage(stored []byte, limit int) ([]byte, error) {
	codec, raw, b, err := OpenEnvelope(stored, limit)
	if err != nil {
		return nil, err
	}
	return OpenBody(codec, raw, b)
}

// OpenEnvelope verifies a stored page and returns its codec, the length of its payload, and the coded
// payload.
func OpenEnvelope(stored []byte, limit int) (codec byte, raw int, coded []byte, err error) {
	if err := VerifyPage(stored); err != nil {
		return 0, 0, nil, err
	}
	s := column.Scan{Rest: stored[:len(stored)-ChecksumBytes]}
	codec, raw = s.Byte(), s.Below(uint64(limit))
	if s.Bad {
		return 0, 0, nil, column.Corrupt("page: decoded length out of bounds")
	}
	return codec, raw, s.Rest, nil
}

// OpenBody decodes what [OpenEnvelope] returned into a payload of raw bytes.
func OpenBody(codec byte, raw int, b []byte) ([]byte, error) {
	switch codec {
	case CodecNone:
		if len(b) != raw {
			return nil, column.Corrupt("page: %d bytes, should be %d", len(b), raw)
		}
		return b[:raw:raw], nil
	case CodecS2:
		if n, err := s2.DecodedLen(b); err != nil || n != raw {
			return nil, column.Corrupt("page: s2 length is %d, should be %d", n, raw)
		}
		out, err := s2.Decode(make([]byte, raw), b)
		if err != nil {
			return nil, column.Corrupt("page: s2: %v", err)
		}
		return out, nil
	case CodecZstd:
		return unzstd(b, raw)
	}
	return nil, column.Corrupt("page: unknown codec %d", codec)
}

func unzstd(b []byte, raw int) ([]byte, error) {
	// A frame with a false size must not make the decoder exceed the length of the envelope.
	var h zstd.Header
	if err := h.Decode(b); err != nil || !h.HasFCS || h.FrameContentSize != uint64(raw) {
		return nil, column.Corrupt("page: zstd frame does not hold %d bytes", raw)
	}
	switch d := zstdDecoders.Get().(type) {
	case *zstd.Decoder:
		out, err := d.DecodeAll(b, make([]byte, 0, raw))
		zstdDecoders.Put(d)
		if err != nil {
			return nil, column.Corrupt("page: zstd: %v", err)
		}
		if len(out) != raw {
			return nil, column.Corrupt("page: zstd gave %d bytes, should be %d", len(out), raw)
		}
		return out, nil
	case error:
		return nil, fmt.Errorf("%w: part: zstd decoder: %w", model.ErrTransient, d)
	}
	return nil, column.Corrupt("page: no decoder")
}

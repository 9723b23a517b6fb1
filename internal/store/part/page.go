package part

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/model"
)

const (
	// pageBytes is the size at which a page is closed. It is big enough that a request to a bucket is worth its latency,
	// and small enough that one series does not cost much more than its own bytes.
	pageBytes = 64 << 10
	// maxPageBytes bounds a decoded page, and so what a forged length can make a reader allocate.
	maxPageBytes = 16 << 20
	// maxFooterBytes bounds the decoded footer; it fits half a million tenants.
	maxFooterBytes = 64 << 20

	// envelopeMin is the codec byte, the shortest length and the checksum.
	envelopeMin = 1 + 1 + crcBytes
	envelopeMax = 1 + binary.MaxVarintLen32 + crcBytes
	crcBytes    = 4
)

// Codecs of pages, as stored. Codecs of one section's pages, such as that of log lines, have numbers from
// firstOwnCodec on and are known to that section only.
const (
	codecNone byte = 0
	codecS2   byte = 1
	codecZstd byte = 2

	firstOwnCodec byte = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// zstdDecoders and zstdEncoders keep coders between uses: they are expensive to make and take about 1 MB each. Their
// number follows the number of goroutines that code at one time, and the collector empties the pools.
var (
	zstdDecoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxFooterBytes))
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

// worthCoding reports whether a coded payload is at least 1/32 shorter than it was. Other payloads are stored as they
// are, since they then cost nothing to read.
func worthCoding(coded, raw int) bool { return coded <= raw-raw/32 }

// sealPage appends the stored form of a page: codec, raw length, payload, CRC-32C of all of it.
func sealPage(dst, payload []byte, codec byte) ([]byte, error) {
	begin := len(dst)
	head := binary.AppendUvarint(append(dst, codec), uint64(len(payload)))
	out := head
	switch codec {
	case codecS2:
		out = appendS2(head, payload)
	case codecZstd:
		switch e := zstdEncoders.Get().(type) {
		case *zstd.Encoder:
			out = e.EncodeAll(payload, head)
			zstdEncoders.Put(e)
		case error:
			return dst, fmt.Errorf("%w: part: zstd encoder: %w", model.ErrTransient, e)
		}
	}
	if codec == codecNone || !worthCoding(len(out)-len(head), len(payload)) {
		out = append(head, payload...)
		out[begin] = codecNone
	}
	return appendChecksum(out, begin), nil
}

// appendChecksum ends a stored page that begins at begin.
func appendChecksum(dst []byte, begin int) []byte {
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[begin:]))
}

func appendS2(dst, payload []byte) []byte {
	n := len(dst)
	most := s2.MaxEncodedLen(len(payload))
	for cap(dst)-n < most {
		dst = append(dst[:cap(dst)], 0)
	}
	return dst[:n+len(s2.Encode(dst[n:n+most], payload))]
}

// verifyPage verifies the checksum of a stored page.
func verifyPage(stored []byte) error {
	if len(stored) < envelopeMin {
		return corrupt("page of %d bytes; expected at least %d", len(stored), envelopeMin)
	}
	body := stored[:len(stored)-crcBytes]
	if want, got := binary.LittleEndian.Uint32(stored[len(body):]), checksum(body); want != got {
		return corrupt("page: checksum is %08x, should be %08x", got, want)
	}
	return nil
}

// openPage returns the payload of a stored page with a codec of any section. The payload may alias stored. Its size is
// checked against limit before anything is allocated.
func openPage(stored []byte, limit int) ([]byte, error) {
	codec, raw, b, err := openEnvelope(stored, limit)
	if err != nil {
		return nil, err
	}
	return openBody(codec, raw, b)
}

// openEnvelope verifies a stored page and returns its codec, the length of its payload, and the coded payload.
func openEnvelope(stored []byte, limit int) (codec byte, raw int, coded []byte, err error) {
	if err := verifyPage(stored); err != nil {
		return 0, 0, nil, err
	}
	s := scan{b: stored[:len(stored)-crcBytes]}
	codec, raw = s.byte(), s.below(uint64(limit))
	if s.bad {
		return 0, 0, nil, corrupt("page: decoded length out of bounds")
	}
	return codec, raw, s.b, nil
}

// openBody returns the payload, of raw bytes, of what [openEnvelope] returned.
func openBody(codec byte, raw int, b []byte) ([]byte, error) {
	switch codec {
	case codecNone:
		if len(b) != raw {
			return nil, corrupt("page: %d bytes, should be %d", len(b), raw)
		}
		return b[:raw:raw], nil
	case codecS2:
		if n, err := s2.DecodedLen(b); err != nil || n != raw {
			return nil, corrupt("page: s2 length is %d, should be %d", n, raw)
		}
		out, err := s2.Decode(make([]byte, raw), b)
		if err != nil {
			return nil, corrupt("page: s2: %v", err)
		}
		return out, nil
	case codecZstd:
		return unzstd(b, raw)
	}
	return nil, corrupt("page: unknown codec %d", codec)
}

func unzstd(b []byte, raw int) ([]byte, error) {
	// A frame that lies about its size must not make the decoder grow beyond what the envelope allows.
	var h zstd.Header
	if err := h.Decode(b); err != nil || !h.HasFCS || h.FrameContentSize != uint64(raw) {
		return nil, corrupt("page: zstd frame does not hold %d bytes", raw)
	}
	switch d := zstdDecoders.Get().(type) {
	case *zstd.Decoder:
		out, err := d.DecodeAll(b, make([]byte, 0, raw))
		zstdDecoders.Put(d)
		if err != nil {
			return nil, corrupt("page: zstd: %v", err)
		}
		if len(out) != raw {
			return nil, corrupt("page: zstd gave %d bytes, should be %d", len(out), raw)
		}
		return out, nil
	case error:
		return nil, fmt.Errorf("%w: part: zstd decoder: %w", model.ErrTransient, d)
	}
	return nil, corrupt("page: no decoder")
}

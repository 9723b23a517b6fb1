package part

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/model"
)

const (
	// pageBytes is where a page is closed. Big enough that a request to a bucket is worth its latency, small enough that
	// one series does not cost much more than its own bytes.
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

// Page codecs, as stored.
const (
	codecNone byte = 0
	codecS2   byte = 1
	codecZstd byte = 2
	// codecLines is for pages of lines: see fieldCoder.
	codecLines byte = 3
)

// Addr is the place of a page in its file. Len is the length of the stored page with its envelope.
type Addr struct {
	Off int64
	Len uint32
}

// Pages gives the pages of one file, decoded: checksum verified, decompressed. What it returns is never changed and may
// be shared. It is called by many goroutines at once.
type Pages interface {
	Page(ctx context.Context, a Addr) ([]byte, error)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// zstdDecoders and zstdEncoders keep coders, which are expensive to make (about 1 MB), between uses. Their number follows
// the number of goroutines that code at one time, and the collector empties the pools.
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

// fieldCoders and fieldDecoders keep the memory of those, which is about that of a few pages.
var (
	fieldCoders   = sync.Pool{New: func() any { return &fieldCoder{ints: intCoder{dense: true}} }}
	fieldDecoders = sync.Pool{New: func() any { return &fieldDecoder{} }}
)

// sealLines appends the stored form of a page of lines, of which each ends where ends says, counted from begin; and adds their
// items, if there is a filter to be.
func sealLines(dst, lines []byte, begin uint32, ends []uint32, items *filterItems) ([]byte, error) {
	if len(lines) > maxFieldBytes && items == nil {
		return sealPage(dst, lines, codecZstd)
	}
	at := len(dst)
	head := binary.AppendUvarint(append(dst, codecLines), uint64(len(lines)))
	c := fieldCoders.Get().(*fieldCoder)
	out, ok := c.append(head, lines, begin, ends, items)
	c.items = nil
	fieldCoders.Put(c)
	if !ok || len(out)-len(head) > len(lines)-len(lines)/32 {
		return sealPage(dst, lines, codecZstd)
	}
	return binary.LittleEndian.AppendUint32(out, checksum(out[at:])), nil
}

// sealPage appends the stored form of a page: codec, raw length, payload, CRC32C of all of it. A payload that the codec
// does not shorten by at least 1/32 is stored as it is, since it then costs nothing to read.
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
	if codec == codecNone || len(out)-len(head) > len(payload)-len(payload)/32 {
		out = append(head, payload...)
		out[begin] = codecNone
	}
	return binary.LittleEndian.AppendUint32(out, checksum(out[begin:])), nil
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
		return corrupt("page of %d bytes", len(stored))
	}
	body := stored[:len(stored)-crcBytes]
	if want, got := binary.LittleEndian.Uint32(stored[len(body):]), checksum(body); want != got {
		return corrupt("page: checksum is %08x, should be %08x", got, want)
	}
	return nil
}

// DecodePage gives the payload of a page from its stored bytes. The payload may alias stored. Its size is bounded before
// anything is allocated.
func DecodePage(stored []byte) ([]byte, error) { return openPage(stored, maxPageBytes) }

func openPage(stored []byte, limit int) ([]byte, error) {
	codec, raw, b, err := openEnvelope(stored, limit)
	if err != nil {
		return nil, err
	}
	return openBody(codec, raw, b)
}

// openEnvelope verifies a stored page and gives its codec, the length of its payload, and what the codec has made of that.
func openEnvelope(stored []byte, limit int) (codec byte, raw int, b []byte, err error) {
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

// openBody gives the payload of a page.
func openBody(codec byte, raw int, b []byte) ([]byte, error) {
	switch codec {
	case codecLines:
		return unjoin(b, raw, 0, raw)
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

// unjoin gives the lines of a page behind the first skip of them.
func unjoin(b []byte, raw, skip, n int) ([]byte, error) {
	d := fieldDecoders.Get().(*fieldDecoder)
	out, err := d.decode(b, raw, skip, n)
	if d.size() <= keepBytes {
		fieldDecoders.Put(d)
	}
	return out, err
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

// FilePages reads and decodes a page each time it is asked for one. The counter, if there is one, counts them.
func FilePages(r io.ReaderAt, c *atomic.Int64) Pages { return filePages{FetchFile(r, c)} }

type filePages struct{ fetch Fetch }

func (f filePages) Page(ctx context.Context, a Addr) ([]byte, error) {
	return f.fetch(ctx, a, DecodePage)
}

// PageEnd is [Ends.PageEnd].
func (f filePages) PageEnd(ctx context.Context, a Addr, e PageEnd) ([]byte, error) {
	return f.fetch(ctx, a, e.decode)
}

// HasEnd is [Ends.HasEnd].
func (f filePages) HasEnd(Addr) bool { return false }

// FetchFile reads pages of a file. The counter, if there is one, counts them.
func FetchFile(r io.ReaderAt, c *atomic.Int64) Fetch {
	return func(ctx context.Context, a Addr, decode func(stored []byte) ([]byte, error)) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if a.Len > maxPageBytes+envelopeMax {
			return nil, corrupt("page at %d: stored length %d out of bounds", a.Off, a.Len)
		}
		stored, err := readFull(r, a.Off, int64(a.Len))
		if err != nil {
			return nil, err
		}
		if c != nil {
			c.Add(1)
		}
		payload, err := decode(stored)
		if err != nil {
			return nil, fmt.Errorf("at %d: %w", a.Off, err)
		}
		return payload, nil
	}
}

func readFull(r io.ReaderAt, off, n int64) ([]byte, error) {
	b := make([]byte, n)
	got, err := r.ReadAt(b, off)
	switch {
	case int64(got) == n:
		return b, nil
	case errors.Is(err, io.EOF):
		return nil, corrupt("file ends at %d, inside [%d, %d)", off+int64(got), off, off+n)
	}
	return nil, fmt.Errorf("%w: part: read [%d, %d): %w", model.ErrTransient, off, off+n, err)
}

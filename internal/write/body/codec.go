package body

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/model"
)

// MaxDecoded keeps every offset, and with at least two bytes a row every count of rows, below the 31 bits that spans and
// the ends of a batch have.
const MaxDecoded = 1<<31 - 1

// Encoding is how a body is compressed.
type Encoding int

// The encodings.
const (
	Plain Encoding = iota
	// Snappy is one snappy block.
	Snappy
	// Zstd is any number of zstd frames.
	Zstd
	Gzip
	// Deflate is what the name has come to mean: deflate, with or without the frame of zlib.
	Deflate
	// LZ4 is any number of LZ4 frames.
	LZ4
)

// Codec reads and decompresses the bodies of one protocol. It is safe for concurrent use.
type Codec struct {
	protocol, rows                string
	zstd                          *zstd.Decoder
	buffers, gzips, flates, zlibs sync.Pool
}

// New returns a codec for a protocol; its name, and what a request has fewer of when it is smaller, are for messages.
func New(protocol, rows string) *Codec {
	// Without a stream it starts no goroutine, and what DecodeAll gives lies in the memory that it is given: a window is
	// never allocated.
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderMaxMemory(MaxDecoded), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // an option out of range, and all are constants
	}
	c := &Codec{protocol: protocol, rows: rows, zstd: z}
	c.buffers.New = func() any { return new(Buffer) }
	c.gzips.New = func() any { return new(gzip.Reader) }
	c.flates.New = func() any { return flate.NewReader(nil) }
	return c
}

// Decode decompresses in into out. Memory is checked against the limit, of which 0 is the largest, and reserved before it
// is taken.
func (c *Codec) Decode(e Encoding, in []byte, out *Buffer, limit int64, grow func(int64) error) error {
	if limit <= 0 || limit > MaxDecoded {
		limit = MaxDecoded
	}
	switch e {
	case Snappy:
		return c.decodeSnappy(in, out, limit, grow)
	case Zstd:
		return c.decodeZstd(in, out, limit, grow)
	case Gzip:
		return c.decodeGzip(in, out, limit, grow)
	case Deflate:
		return c.decodeDeflate(in, out, limit, grow)
	case LZ4:
		return c.decodeLZ4(in, out, limit, grow)
	}
	if int64(len(in)) > limit {
		return c.tooLarge("body", int64(len(in)), "limits.decoded-bytes", limit)
	}
	if err := grow(int64(len(in))); err != nil {
		return err
	}
	out.Bytes = append(out.Bytes[:0], in...)
	return nil
}

func (c *Codec) decodeSnappy(in []byte, out *Buffer, limit int64, grow func(int64) error) error {
	n, err := s2.DecodedLen(in)
	if err != nil {
		return fmt.Errorf("%w: %s body: not a snappy block: %w at byte 0 of the body", model.ErrInvalid, c.protocol, err)
	}
	if int64(n) > limit {
		return c.tooLarge("decoded body", int64(n), "limits.decoded-bytes", limit)
	}
	if err := grow(int64(n)); err != nil {
		return err
	}
	out.resize(n)
	if _, err := s2.Decode(out.Bytes, in); err != nil {
		return fmt.Errorf("%w: %s body: the snappy block of %d bytes, which declares %d decoded bytes: %w", model.ErrInvalid, c.protocol, len(in), n, err)
	}
	return nil
}

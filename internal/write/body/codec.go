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

// MaxDecoded bounds a decoded body, so that every offset fits into the 31 bits of a span. A row has at
// least two bytes, so that every count of rows fits into the ends of a batch.
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
	// Deflate is deflate with or without the frame of zlib, as senders use the name.
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

// New returns a codec for a protocol. Error messages name the protocol, and the rows of which a sender
// should send fewer.
func New(protocol, rows string) *Codec {
	// Without a stream it starts no goroutine. DecodeAll decodes into the memory that it is given, and
	// allocates no window.
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderMaxMemory(MaxDecoded), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // an option is out of range, but all are constants
	}
	c := &Codec{protocol: protocol, rows: rows, zstd: z}
	c.buffers.New = func() any { return new(Buffer) }
	c.gzips.New = func() any { return new(gzip.Reader) }
	c.flates.New = func() any { return flate.NewReader(nil) }
	return c
}

// Decode decompresses in into out. The decoded size may not exceed limit; 0 means MaxDecoded. grow
// reserves memory, and is called before it is allocated.
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
	out.resize(len(in))
	copy(out.Bytes, in)
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

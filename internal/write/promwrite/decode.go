package promwrite

import (
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/model"
)

// maxDecoded keeps every offset, and with at least two bytes a sample every count of rows, below the 31 bits that spans
// and the ends of a batch have.
const maxDecoded = 1<<31 - 1

// decoder decompresses bodies. It is safe for concurrent use.
type decoder struct {
	zstd *zstd.Decoder
}

func newDecoder() *decoder {
	// Without a stream it starts no goroutine, and what DecodeAll gives lies in the memory that it is given: a window is
	// never allocated.
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderMaxMemory(maxDecoded), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // an option out of range, and all are constants
	}
	return &decoder{z}
}

// decode decompresses in into out. Memory is checked against the limit and reserved before it is taken.
func (d *decoder) decode(e encoding, in []byte, out *buffer, limit int64, grow func(int64) error) error {
	if limit <= 0 || limit > maxDecoded {
		limit = maxDecoded
	}
	if e == zstdFrames {
		return d.decodeZstd(in, out, limit, grow)
	}
	return decodeSnappy(in, out, limit, grow)
}

func decodeSnappy(in []byte, out *buffer, limit int64, grow func(int64) error) error {
	n, err := s2.DecodedLen(in)
	if err != nil {
		return fmt.Errorf("%w: remote write body: not a snappy block: %w at byte 0 of the body", model.ErrInvalid, err)
	}
	if int64(n) > limit {
		return tooLarge("decoded body", int64(n), "limits.decoded-bytes", limit)
	}
	if err := grow(int64(n)); err != nil {
		return err
	}
	out.resize(n)
	if _, err := s2.Decode(out.bytes, in); err != nil {
		return fmt.Errorf("%w: remote write body: the snappy block of %d bytes, which declares %d decoded bytes: %w", model.ErrInvalid, len(in), n, err)
	}
	return nil
}

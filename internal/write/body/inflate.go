package body

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/dustin/go-humanize/english"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	"github.com/shaledb/shale/internal/model"
)

// firstInflated is the least memory for the content of a stream whose size is not known. Log lines and
// samples decode to at least four times their compressed size.
const firstInflated = 64 << 10

func (c *Codec) decodeGzip(in []byte, out *Buffer, limit int64, grow func(int64) error) error {
	z := c.gzips.Get().(*gzip.Reader)
	defer c.gzips.Put(z)
	src := bytes.NewReader(in)
	if err := z.Reset(src); err != nil {
		return fmt.Errorf("%w: %s body: not a gzip stream: %w", model.ErrInvalid, c.protocol, err)
	}
	return c.inflate("gzip", z, src, len(in), out, limit, grow)
}

// decodeDeflate decodes zlib if the body begins with the head of a zlib stream, and bare deflate if not.
// A bare stream that looks like that head begins with a stored block whose padding is not zero, which no
// encoder makes.
func (c *Codec) decodeDeflate(in []byte, out *Buffer, limit int64, grow func(int64) error) error {
	src := bytes.NewReader(in)
	if len(in) >= 2 && in[0]&0x0f == 8 && (int(in[0])<<8|int(in[1]))%31 == 0 {
		z, err := c.takeZlib(src)
		if err != nil {
			return fmt.Errorf("%w: %s body: not a zlib stream: %w", model.ErrInvalid, c.protocol, err)
		}
		defer c.zlibs.Put(z)
		return c.inflate("zlib", z, src, len(in), out, limit, grow)
	}
	z := c.flates.Get().(io.ReadCloser)
	defer c.flates.Put(z)
	if err := z.(flate.Resetter).Reset(src, nil); err != nil {
		return fmt.Errorf("%w: %s body: not a deflate stream: %w", model.ErrInvalid, c.protocol, err)
	}
	return c.inflate("deflate", z, src, len(in), out, limit, grow)
}

func (c *Codec) takeZlib(src io.Reader) (io.Reader, error) {
	z, _ := c.zlibs.Get().(io.Reader)
	if z == nil {
		return zlib.NewReader(src)
	}
	return z, z.(zlib.Resetter).Reset(src, nil)
}

// inflate reads a stream to its end. The size of its content is not known, so the reservation doubles
// whenever it is used up. src is what z reads from, and nothing may be left in it.
func (c *Codec) inflate(
	what string, z io.Reader, src *bytes.Reader, compressed int, out *Buffer, limit int64, grow func(int64) error,
) error {
	room := min(max(firstInflated, 4*int64(compressed)), limit+1)
	if err := grow(room); err != nil {
		return err
	}
	out.Bytes = out.Bytes[:0]
	out.reach(int(room))
	for {
		begin := len(out.Bytes)
		n, err := io.ReadFull(z, out.Bytes[begin:out.reached])
		out.Bytes = out.Bytes[:begin+n]
		switch {
		case int64(len(out.Bytes)) > limit:
			return c.tooLarge("decoded body", int64(len(out.Bytes)), "limits.decoded-bytes", limit)
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && ended(z):
			if src.Len() > 0 {
				return fmt.Errorf("%w: %s body: %d %s after the %s stream", model.ErrInvalid, c.protocol, src.Len(), english.PluralWord(src.Len(), "byte", ""), what)
			}
			return nil
		case err != nil:
			return fmt.Errorf("%w: %s body: the %s stream of %d bytes, after %d decoded bytes: %w", model.ErrInvalid, c.protocol, what, compressed, len(out.Bytes), err)
		}
		step := min(room, limit+1-room)
		if err := grow(step); err != nil {
			return err
		}
		room += step
		out.reach(int(room))
	}
}

// ended reports whether a stream is at its end, for which [io.ReadFull] returns the same error as for a
// stream that is cut off. It reads a byte of a stream that goes on.
func ended(z io.Reader) bool {
	var one [1]byte
	n, err := z.Read(one[:])
	return n == 0 && errors.Is(err, io.EOF)
}

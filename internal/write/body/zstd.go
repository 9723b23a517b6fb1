package body

import (
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/model"
)

const (
	// maxWindow is the largest window of a zstd frame, as of zstd's own tools.
	maxWindow = 128 << 20
	// maxFrames is how many frames a body may have. Senders make one; tools that work in parallel make a few.
	maxFrames = 1 << 10
	// maxBlock is the most that a block of a frame holds.
	maxBlock = 128 << 10
)

// zstdFrame is a piece of a body and the most bytes that its content has.
type zstdFrame struct {
	begin, end int
	content    uint64
	// exact says that the frame itself tells the size of its content.
	exact bool
}

// nextFrame finds the next frame of a body at p, without decompressing it: the head tells the size of the content, or
// else the heads of the blocks bound it.
func (c *Codec) nextFrame(in []byte, p int) (f zstdFrame, err error) {
	var h zstd.Header
	if err := h.Decode(in[p:]); err != nil {
		return f, fmt.Errorf("%w: %s body: not a zstd frame: %w at byte %d of the body", model.ErrInvalid, c.protocol, err, p)
	}
	cut := func() (zstdFrame, error) {
		return f, fmt.Errorf("%w: %s body: the zstd frame at byte %d of the body is cut off", model.ErrInvalid, c.protocol, p)
	}
	f.begin, f.end = p, p+h.HeaderSize
	if !h.Skippable && h.WindowSize > maxWindow {
		return f, fmt.Errorf("%w: %s body: the zstd frame at byte %d of the body has a window of %d bytes and %d are allowed",
			model.ErrInvalid, c.protocol, p, h.WindowSize, maxWindow)
	}
	if h.Skippable {
		if uint64(h.SkippableSize) > uint64(len(in)-f.end) {
			return cut()
		}
		f.end += int(h.SkippableSize)
		f.exact = true
		return f, nil
	}
	least := uint64(0) // bytes that the blocks have for certain
	for last := false; !last; {
		if len(in)-f.end < 3 {
			return cut()
		}
		head := int(in[f.end]) | int(in[f.end+1])<<8 | int(in[f.end+2])<<16
		f.end += 3
		last = head&1 != 0
		size := head >> 3
		switch head >> 1 & 3 {
		case 0: // as it is
			f.content, least = f.content+uint64(size), least+uint64(size)
			f.end += size
		case 1: // one byte, so many times
			f.content, least = f.content+uint64(size), least+uint64(size)
			f.end++
		default:
			f.content += maxBlock
			f.end += size
		}
		if f.end > len(in) {
			return cut()
		}
	}
	if h.HasCheckSum {
		f.end += 4
	}
	if f.end > len(in) {
		return cut()
	}
	if h.HasFCS {
		// A size that the blocks cannot have is a lie, and no question of limits.
		if said := h.FrameContentSize; said < least || said > f.content {
			return f, fmt.Errorf("%w: %s body: the zstd frame at byte %d of the body says that it has %d bytes of content, and its blocks have %d to %d",
				model.ErrInvalid, c.protocol, p, said, least, f.content)
		}
		f.content, f.exact = h.FrameContentSize, true
	}
	return f, nil
}

// decodeZstd decompresses the frames of a body, one behind the other.
func (c *Codec) decodeZstd(in []byte, out *Buffer, limit int64, grow func(int64) error) error {
	var room uint64
	exact := true
	for p, n := 0, 0; p < len(in) || n == 0; n++ {
		f, err := c.nextFrame(in, p)
		if err != nil {
			return err
		}
		if n == maxFrames {
			return fmt.Errorf("%w: %s body: more than %d zstd frames", model.ErrInvalid, c.protocol, maxFrames)
		}
		if f.exact && f.content > uint64(limit) {
			return c.tooLarge("decoded body", int64(f.content), "limits.decoded-bytes", limit)
		}
		p, room, exact = f.end, room+f.content, exact && f.exact
	}
	if exact && room > uint64(limit) {
		return c.tooLarge("decoded body", int64(room), "limits.decoded-bytes", limit)
	}
	room = min(room, uint64(limit))
	if err := grow(int64(room)); err != nil {
		return err
	}
	out.resize(int(room))
	n := 0
	for p := 0; p < len(in); {
		f, err := c.nextFrame(in, p)
		if err != nil {
			return err
		}
		least := min(uint64(n)+f.content, room)
		content, err := c.zstd.DecodeAll(in[f.begin:f.end], out.Bytes[n:n:least])
		over := len(content) > int(least)-n
		switch short := least-uint64(n) < f.content; {
		case short && (err != nil || over): // an error is what it is, unless the room was too small for what might have come
			return c.tooLarge("decoded body", limit+1, "limits.decoded-bytes", limit)
		case over:
			return fmt.Errorf("%w: %s body: the zstd frame at byte %d of the body has more than the %d bytes of content that it says or may have",
				model.ErrInvalid, c.protocol, f.begin, f.content)
		case err != nil:
			return fmt.Errorf("%w: %s body: the zstd frame of %d bytes at byte %d of the body: %w", model.ErrInvalid, c.protocol, f.end-f.begin, f.begin, err)
		}
		p, n = f.end, n+len(content)
	}
	out.Bytes = out.Bytes[:n]
	return nil
}

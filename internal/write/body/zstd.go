package body

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/model"
)

const (
	// maxWindow is the largest window of a zstd frame that zstd's own tools accept.
	maxWindow = 128 << 20
	// maxFrames bounds the frames of a body. Senders make one; tools that work in parallel make a few.
	maxFrames = 1 << 10
	// maxBlock is the most that a block of a frame holds.
	maxBlock = 128 << 10
)

// decodeZstd decompresses zstd frames. DecodeAll writes straight into the memory that was reserved, so
// that a frame needs no window. A streaming decoder copies the content once more, and allocates the
// window that the head names: 8 MiB if the sender does not declare the size. It was slower in
// BenchmarkReceive.
func (c *Codec) decodeZstd(in []byte, out *Buffer, limit int64, grow func(int64) error) error {
	declared, most, err := c.zstdContent(in)
	if err != nil {
		return err
	}
	if declared > uint64(limit) {
		return c.tooLarge("decoded body", int64(declared), "limits.decoded-bytes", limit)
	}
	room := min(most, uint64(limit))
	if err := grow(int64(room)); err != nil {
		return err
	}
	out.resize(int(room))
	decoded, err := c.zstd.DecodeAll(in, out.Bytes[:0:room])
	switch {
	case err != nil && most > room: // the error does not tell damage from too little room
		return c.tooLarge("decoded body", limit+1, "limits.decoded-bytes", limit)
	case err != nil:
		return fmt.Errorf("%w: %s body: the zstd stream of %d bytes: %w", model.ErrInvalid, c.protocol, len(in), err)
	}
	out.Bytes = decoded
	return nil
}

// zstdContent walks the frames of a body without decompressing them. It returns how many bytes of
// content they declare, and the most that they can have, with those that declare nothing.
func (c *Codec) zstdContent(in []byte) (declared, most uint64, err error) {
	for p, n := 0, 0; p < len(in) || n == 0; n++ {
		if n == maxFrames {
			return 0, 0, fmt.Errorf("%w: %s body: more than %d zstd frames", model.ErrInvalid, c.protocol, maxFrames)
		}
		var h zstd.Header
		if err := h.Decode(in[p:]); err != nil {
			return 0, 0, fmt.Errorf("%w: %s body: not a zstd frame: %w at byte %d of the body", model.ErrInvalid, c.protocol, err, p)
		}
		size, content, err := zstdFrame(in[p:], &h)
		if err != nil {
			return 0, 0, fmt.Errorf("%w: %s body: the zstd frame at byte %d of the body %w", model.ErrInvalid, c.protocol, p, err)
		}
		if h.HasFCS {
			declared += content
		}
		p, most = p+size, most+content
	}
	return declared, most, nil
}

// errCut and the other errors of zstdFrame are predicates of the frame.
var errCut = errors.New("is cut off")

// zstdFrame returns the size of the first frame of in, and the most bytes of content that it can have:
// what its head declares, or else a bound from the heads of its blocks.
func zstdFrame(in []byte, h *zstd.Header) (size int, content uint64, err error) {
	size = h.HeaderSize
	if h.Skippable {
		if size += int(h.SkippableSize); size > len(in) {
			return 0, 0, errCut
		}
		return size, 0, nil
	}
	if h.WindowSize > maxWindow {
		return 0, 0, fmt.Errorf("has a window of %d bytes and %d are allowed", h.WindowSize, maxWindow)
	}
	least := uint64(0) // of stored blocks and repeated bytes, whose heads tell their content
	for last := false; !last; {
		if len(in)-size < 3 {
			return 0, 0, errCut
		}
		head := int(in[size]) | int(in[size+1])<<8 | int(in[size+2])<<16
		size += 3
		last = head&1 != 0
		switch n := head >> 3; head >> 1 & 3 {
		case 0: // stored
			least += uint64(n)
			content += uint64(n)
			size += n
		case 1: // one byte, repeated
			least += uint64(n)
			content += uint64(n)
			size++
		default:
			content += maxBlock
			size += n
		}
		if size > len(in) {
			return 0, 0, errCut
		}
	}
	if h.HasCheckSum {
		size += 4
	}
	switch {
	case size > len(in):
		return 0, 0, errCut
	case !h.HasFCS:
		return size, content, nil
	case h.FrameContentSize < least || h.FrameContentSize > content: // a lie, whatever the limit
		return 0, 0, fmt.Errorf("says that it has %d bytes of content, and its blocks have %d to %d", h.FrameContentSize, least, content)
	}
	return size, h.FrameContentSize, nil
}

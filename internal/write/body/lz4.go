package body

import (
	"bytes"
	"fmt"

	"github.com/pierrec/lz4/v4"

	"github.com/shaledb/shale/internal/model"
)

// The magic numbers of LZ4 frames, https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md.
var (
	lz4Magic       = []byte{0x04, 0x22, 0x4d, 0x18}
	lz4LegacyMagic = []byte{0x02, 0x21, 0x4c, 0x18}
)

const (
	// lz4LegacyBlock is the size of a block in a legacy frame, as sent: 8 MiB that did not compress.
	lz4LegacyBlock = 8<<20 + 8<<20/255 + 16
	// lz4History is what the reader keeps of a linked frame, besides one block.
	lz4History = 192 << 10
	// maxLZ4Legacy is the most magic numbers of legacy frames in a body. The reader calls itself for each
	// one that follows another, so that a body full of them would overflow the stack.
	maxLZ4Legacy = 16
)

// decodeLZ4 decompresses LZ4 frames. Readers are not pooled: a reader keeps the end of a linked frame,
// and the next body could copy from it. They start no goroutine, since their default concurrency is 1.
func (c *Codec) decodeLZ4(in []byte, out *Buffer, limit int64, grow func(int64) error) error {
	if len(in) == 0 {
		return fmt.Errorf("%w: %s body: not an LZ4 stream: the body is empty", model.ErrInvalid, c.protocol)
	}
	if n := bytes.Count(in, lz4LegacyMagic); n > maxLZ4Legacy {
		return fmt.Errorf("%w: %s body: not an LZ4 stream: %d legacy frames, and %d are allowed",
			model.ErrInvalid, c.protocol, n, maxLZ4Legacy)
	}
	if err := grow(lz4Buffers(in)); err != nil {
		return err
	}
	src := bytes.NewReader(in)
	z := lz4.NewReader(src)
	defer z.Reset(nil) // gives the buffers of its blocks back
	return c.inflate("LZ4", z, src, len(in), out, limit, grow)
}

// lz4Buffers returns the most memory that a reader of in takes: two buffers of the largest block of
// any frame, and a third one with the history if the blocks of a frame are linked. Every frame begins
// with a magic number, so that a search for it finds all of them. A match inside a block only makes
// the reservation larger.
func lz4Buffers(in []byte) (most int64) {
	if bytes.Contains(in, lz4LegacyMagic) {
		most = 3*lz4LegacyBlock + lz4History
	}
	for {
		_, frame, found := bytes.Cut(in, lz4Magic)
		if !found || len(frame) < 2 {
			return most
		}
		linked, block := frame[0]&0x20 == 0, int64(1)<<(8+2*(frame[1]>>4&7))
		if linked {
			most = max(most, 3*block+lz4History)
		}
		most, in = max(most, 2*block), frame
	}
}

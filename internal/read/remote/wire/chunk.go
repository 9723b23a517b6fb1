package wire

import (
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
)

// Chunk is a [model.TextChunk] whose page is a number.
type Chunk struct {
	model.TimeRange
	Rows  int
	Bytes int64
	Order uint64
	// Page numbers the pages of an answer from 0, each when its first chunk comes. Index is that of the chunk
	// among all chunks of its page, in the order in which they come.
	Page, Index int
}

// AppendChunks appends the chunks of one series to the body of a frame.
func AppendChunks(dst []byte, chunks []Chunk) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(chunks)))
	for i := range chunks {
		c := &chunks[i]
		dst = binary.AppendVarint(dst, c.Min)
		dst = binary.AppendUvarint(dst, uint64(c.Max)-uint64(c.Min))
		dst = binary.AppendUvarint(dst, uint64(c.Rows))
		dst = binary.AppendUvarint(dst, uint64(c.Bytes))
		dst = binary.AppendUvarint(dst, c.Order)
		dst = binary.AppendUvarint(dst, uint64(c.Page))
		dst = binary.AppendUvarint(dst, uint64(c.Index))
	}
	return dst
}

// chunkBytes is the least size of a chunk.
const chunkBytes = 7

// TakeChunks appends the chunks of the next series to dst, and returns the rest of the body.
func TakeChunks(body []byte, dst []Chunk) (_ []Chunk, rest []byte, err error) {
	ok := true
	next := func(most uint64) uint64 {
		v, n := binary.Uvarint(body)
		if n <= 0 || v > most {
			ok = false
			return 0
		}
		body = body[n:]
		return v
	}
	count := next(uint64(len(body) / chunkBytes))
	for i := uint64(0); i < count && ok; i++ {
		var c Chunk
		at, n := binary.Varint(body)
		if n <= 0 {
			ok = false
			break
		}
		body = body[n:]
		c.Min = at
		c.Max = int64(uint64(at) + next(uint64(1<<63-1-at)))
		c.Rows = int(next(1 << 32))
		c.Bytes = int64(next(1 << 40))
		c.Order = next(1 << 31)
		c.Page, c.Index = int(next(1<<31)), int(next(1<<31))
		dst = append(dst, c)
	}
	if !ok {
		return dst, nil, damaged("a chunk is cut short or out of bounds")
	}
	return dst, body, nil
}

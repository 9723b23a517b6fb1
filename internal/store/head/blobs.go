package head

import "unsafe"

// Blobs, which are values that are no float, lie in blocks beside the rows. A row refers to its blob by block, offset and
// length, so that sorting and combining move references and never blobs.
const (
	blobBlockBytes = 1 << blobOffsetBits

	blobOffsetBits = 18
	blobLengthBits = 24
	// maxBlobBlocks bounds the blocks of one run.
	maxBlobBlocks = 1 << (64 - blobOffsetBits - blobLengthBits)
)

// maxBlobBytes bounds one blob: a page of a part must hold it.
const maxBlobBytes = 1 << 20

func blobRef(block, offset, length int) uint64 {
	return uint64(block)<<(blobOffsetBits+blobLengthBits) | uint64(offset)<<blobLengthBits | uint64(length)
}

// rebase makes a reference point so many blocks further.
func rebase(ref uint64, blocks uint32) uint64 {
	return ref + uint64(blocks)<<(blobOffsetBits+blobLengthBits)
}

// blobs are blocks that are read only.
type blobs [][]byte

func (b blobs) at(ref uint64) []byte {
	begin := ref >> blobLengthBits & (1<<blobOffsetBits - 1)
	end := begin + ref&(1<<blobLengthBits-1)
	return b[ref>>(blobOffsetBits+blobLengthBits)][begin:end:end]
}

// join returns the blocks of both, and by how many blocks references into the second move. What follows in a buffer goes
// on in the last block of what was sealed before, so that block is often the same.
func (b blobs) join(o blobs) (blobs, uint32) {
	if len(o) == 0 {
		return b, 0
	}
	at := len(b)
	if at > 0 && unsafe.SliceData(b[at-1]) == unsafe.SliceData(o[0]) {
		at--
	}
	return append(b[:at:at], o...), uint32(at)
}

// blobBuffer fills blocks. Readers of sealed rows see only what was written before they were sealed.
type blobBuffer struct {
	blocks blobs // as long as their capacity
	used   int   // of the last block
}

// add copies a blob and returns a reference to it, and the bytes by which the buffer has grown.
func (b *blobBuffer) add(blob []byte) (ref uint64, grown int64) {
	if b.left() < max(len(blob), 1) { // an empty blob needs an offset, too
		// What does not fit into a block gets one for itself, in which nothing else fits.
		n := max(blobBlockBytes, len(blob))
		b.blocks, b.used, grown = append(b.blocks, make([]byte, n)), 0, int64(n)
	}
	last := len(b.blocks) - 1
	ref = blobRef(last, b.used, len(blob))
	b.used += copy(b.blocks[last][b.used:], blob)
	return ref, grown
}

// left is the room in the last block.
func (b *blobBuffer) left() int {
	if len(b.blocks) == 0 {
		return 0
	}
	last := b.blocks[len(b.blocks)-1]
	if len(last) > blobBlockBytes {
		return 0 // its offsets do not fit a reference
	}
	return len(last) - b.used
}

// rest returns a buffer that goes on in the last block of this one, which must not be added to any more.
func (b *blobBuffer) rest() blobBuffer {
	if b.left() == 0 {
		return blobBuffer{}
	}
	return blobBuffer{blocks: b.blocks[len(b.blocks)-1:], used: b.used}
}

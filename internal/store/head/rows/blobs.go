package rows

import (
	"unsafe"

	"github.com/shaledb/shale/internal/model"
)

// Blobs are values other than floats. They lie in blocks apart from the rows. A row refers to its blob by
// block, offset and length, so that sorting and combining move references and never blobs.
const (
	BlobBlockBytes = 1 << blobOffsetBits
	// largeBlob is the size from which a blob gets a block of its own: blobs of just over half a block would
	// waste the other half.
	largeBlob = BlobBlockBytes / 4

	blobOffsetBits = 18
	blobLengthBits = 24
	// maxBlobBlocks bounds the blocks of one run.
	maxBlobBlocks = 1 << (64 - blobOffsetBits - blobLengthBits)
)

// MaxBlobBytes bounds one blob: a page of a part must hold it.
const MaxBlobBytes = 1 << 20

func blobRef(block, offset, length int) uint64 {
	return uint64(block)<<(blobOffsetBits+blobLengthBits) | uint64(offset)<<blobLengthBits | uint64(length)
}

// rebase moves a reference by a number of blocks.
func rebase(ref uint64, blocks uint32) uint64 {
	return ref + uint64(blocks)<<(blobOffsetBits+blobLengthBits)
}

// Blobs are read-only blocks.
type Blobs [][]byte

func (b Blobs) Blob(ref uint64) []byte {
	begin := ref >> blobLengthBits & (1<<blobOffsetBits - 1)
	end := begin + ref&(1<<blobLengthBits-1)
	return b[ref>>(blobOffsetBits+blobLengthBits)][begin:end:end]
}

// join returns the blocks of both, and by how many blocks references into the second move. A buffer continues
// in a block of the one sealed before it, so the last block of b is often the first of o.
func (b Blobs) join(o Blobs) (Blobs, uint32) {
	if len(o) == 0 {
		return b, 0
	}
	at := len(b)
	if at > 0 && unsafe.SliceData(b[at-1]) == unsafe.SliceData(o[0]) {
		at--
	}
	return append(b[:at:at], o...), uint32(at)
}

// blobBuffer fills blocks. Readers of sealed rows see only bytes that were written before the rows were
// sealed.
type blobBuffer struct {
	blocks Blobs // as long as their capacity
	// filling is the block that small blobs go to, and left its free end. Only blocks of large blobs follow it.
	filling int
	left    []byte
}

// add copies a blob and returns a reference to it, and the bytes by which the buffer has grown.
func (b *blobBuffer) add(blob []byte) (ref uint64, grown int64) {
	if len(blob) >= largeBlob {
		b.blocks = append(b.blocks, append(make([]byte, 0, len(blob)), blob...))
		return blobRef(len(b.blocks)-1, 0, len(blob)), int64(len(blob))
	}
	if len(b.left) < max(len(blob), 1) { // an empty blob needs an offset, too
		b.left = make([]byte, BlobBlockBytes)
		b.blocks, b.filling, grown = append(b.blocks, b.left), len(b.blocks), BlobBlockBytes
	}
	ref = blobRef(b.filling, BlobBlockBytes-len(b.left), len(blob))
	b.left = b.left[copy(b.left, blob):]
	return ref, grown
}

// rest returns a buffer that continues in the block of this one, which must not be added to any more.
func (b *blobBuffer) rest() blobBuffer {
	if len(b.left) == 0 {
		return blobBuffer{}
	}
	return blobBuffer{blocks: b.blocks[b.filling : b.filling+1 : b.filling+1], left: b.left}
}

// blobSpace is the memory that the blobs of rows take in a buffer, with the free ends of blocks: small blobs
// that are just too large for the rest of a block can waste a third of what they take.
func blobSpace(r *model.Rows) (n int64) {
	used := 0
	for i, k := range r.Kinds {
		if k == model.KindFloat {
			continue
		}
		size := len(r.Blob(i))
		if n += int64(size); size >= largeBlob {
			continue
		}
		if used += size; used > BlobBlockBytes {
			n += int64(BlobBlockBytes - (used - size))
			used = size
		}
	}
	return n
}

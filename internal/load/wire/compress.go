package wire

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/model"
)

// Compression is how bodies are compressed.
type Compression uint8

// The compressions. Prometheus sends snappy, vmagent zstd unless the server refuses it.
const (
	Snappy Compression = iota
	Zstd
)

var compressionNames = [...]string{"snappy", "zstd"}

// String returns the value of the header Content-Encoding.
func (c Compression) String() string { return compressionNames[c] }

// UnmarshalText reads the name of a compression. Its error is of class [model.ErrInvalid].
func (c *Compression) UnmarshalText(text []byte) error {
	i := slices.Index(compressionNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("%w: compression %q: want snappy or zstd", model.ErrInvalid, text)
	}
	*c = Compression(i)
	return nil
}

// packer compresses a body part by part.
type packer interface {
	Begin()
	// parts reports whether each part is compressed at once, so that its memory can be reused.
	parts() bool
	Add(raw []byte)
	// End returns the compressed body, valid until the next begin, and its size without compression.
	End() (compressed []byte, size int)
}

func NewPacker(c Compression) packer {
	if c == Zstd {
		// vmagent uses the fastest level too. A window as large as the usual body needs no extra memory.
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			panic("BUG: zstd options: " + err.Error())
		}
		return &zstdPacker{encoder: e}
	}
	return &snappyPacker{}
}

// WindowBytes is the block size of other snappy encoders.
const WindowBytes = 64 << 10

// snappyPacker makes a snappy stream: its length and then elements. The elements of a part refer neither to
// bytes outside of it nor further back than WindowBytes, so parts can be concatenated.
type snappyPacker struct {
	out  []byte // room for the length, then blocks
	size int
}

func (p *snappyPacker) Begin() {
	p.out, p.size = slices.Grow(p.out[:0], binary.MaxVarintLen64)[:binary.MaxVarintLen64], 0
}

func (p *snappyPacker) parts() bool { return true }

func (p *snappyPacker) Add(raw []byte) {
	p.size += len(raw)
	for len(raw) > 0 {
		block := raw[:min(len(raw), WindowBytes)]
		raw = raw[len(block):]
		at := len(p.out)
		p.out = slices.Grow(p.out, s2.MaxEncodedLen(len(block)))
		encoded := s2.EncodeSnappy(p.out[at:cap(p.out)], block)
		_, used := binary.Uvarint(encoded)
		p.out = append(p.out, encoded[used:]...) // moves it over its own length
	}
}

func (p *snappyPacker) End() ([]byte, int) {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(p.size))
	out := p.out[binary.MaxVarintLen64-n:]
	copy(out, length[:n])
	return out, p.size
}

// zstdPacker makes a frame that states the size of its content, so that receivers can refuse it before they
// read it.
type zstdPacker struct {
	encoder  *zstd.Encoder
	raw, out []byte
}

func (p *zstdPacker) Begin()         { p.raw = p.raw[:0] }
func (p *zstdPacker) parts() bool    { return false }
func (p *zstdPacker) Add(raw []byte) { p.raw = append(p.raw, raw...) }

func (p *zstdPacker) End() ([]byte, int) {
	p.out = p.encoder.EncodeAll(p.raw, p.out[:0])
	return p.out, len(p.raw)
}

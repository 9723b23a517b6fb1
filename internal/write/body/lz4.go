package body

import (
	"encoding/binary"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// The format of LZ4 frames, https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md. Of the libraries at hand none
// reads it, and it is short.
const (
	lz4Magic         = 0x184d2204
	lz4SkippableMask = 0xfffffff0
	lz4Skippable     = 0x184d2a50
)

// lz4Frame is the head of a frame.
type lz4Frame struct {
	independent, blockSums, contentSum bool
	blockMax                           int
	content                            uint64 // the declared size
	sized                              bool
}

// lz4Head reads the head of the frame at p and returns where its blocks begin.
func lz4Head(in []byte, p int) (f lz4Frame, next int, err error) {
	if len(in)-p < 7 {
		return f, 0, fmt.Errorf("the frame at byte %d is cut off", p)
	}
	flags, size := in[p+4], in[p+5]
	end := p + 6
	f = lz4Frame{independent: flags&0x20 != 0, blockSums: flags&0x10 != 0, contentSum: flags&0x04 != 0, sized: flags&0x08 != 0}
	if flags>>6 != 1 || flags&0x02 != 0 || flags&0x01 != 0 || size&0x8f != 0 || size>>4 < 4 {
		return f, 0, fmt.Errorf("the frame at byte %d is of a kind that is not known, or needs a dictionary", p)
	}
	f.blockMax = 1 << (8 + 2*(size>>4))
	if f.sized {
		if len(in)-end < 9 {
			return f, 0, fmt.Errorf("the frame at byte %d is cut off", p)
		}
		f.content = binary.LittleEndian.Uint64(in[end:])
		end += 8
	}
	if byte(xxh32(in[p+4:end])>>8) != in[end] {
		return f, 0, fmt.Errorf("the head of the frame at byte %d does not match its checksum", p)
	}
	return f, end + 1, nil
}

// lz4Block finds the block at p. A size of 0 is the end of the frame.
func (f *lz4Frame) block(in []byte, p int) (data []byte, plain bool, next int, err error) {
	if len(in)-p < 4 {
		return nil, false, 0, fmt.Errorf("the block at byte %d is cut off", p)
	}
	word := binary.LittleEndian.Uint32(in[p:])
	size, plain := int(word&0x7fffffff), word>>31 != 0
	next = p + 4
	if size > f.blockMax || size > len(in)-next {
		return nil, false, 0, fmt.Errorf("the block at byte %d says that it has %d bytes, of which %d are there and %d are allowed", p, size, len(in)-next, f.blockMax)
	}
	data = in[next : next+size]
	next += size
	if f.blockSums && size > 0 {
		if len(in)-next < 4 {
			return nil, false, 0, fmt.Errorf("the block at byte %d is cut off", p)
		}
		if binary.LittleEndian.Uint32(in[next:]) != xxh32(data) {
			return nil, false, 0, fmt.Errorf("the block at byte %d does not match its checksum", p)
		}
		next += 4
	}
	return data, plain, next, nil
}

// lz4Each calls frame at the head of each frame, block for its blocks and end behind them.
func lz4Each(in []byte, frame func(*lz4Frame) error, block func(f *lz4Frame, data []byte, plain bool) error, end func(f *lz4Frame, sum uint32) error) error {
	for p, n := 0, 0; p < len(in) || n == 0; n++ {
		if n == maxFrames {
			return fmt.Errorf("more than %d frames", maxFrames)
		}
		if len(in)-p < 8 {
			return fmt.Errorf("the frame at byte %d is cut off", p)
		}
		magic := binary.LittleEndian.Uint32(in[p:])
		if magic&lz4SkippableMask == lz4Skippable {
			size := uint64(binary.LittleEndian.Uint32(in[p+4:]))
			if size > uint64(len(in)-p-8) {
				return fmt.Errorf("the frame at byte %d is cut off", p)
			}
			p += 8 + int(size)
			continue
		}
		if magic != lz4Magic {
			return fmt.Errorf("not a frame at byte %d", p)
		}
		f, next, err := lz4Head(in, p)
		if err != nil {
			return err
		}
		if err := frame(&f); err != nil {
			return err
		}
		for {
			data, plain, after, err := f.block(in, next)
			if err != nil {
				return err
			}
			next = after
			if len(data) == 0 {
				break
			}
			if err := block(&f, data, plain); err != nil {
				return err
			}
		}
		var sum uint32
		if f.contentSum {
			if len(in)-next < 4 {
				return fmt.Errorf("the frame at byte %d is cut off", p)
			}
			sum = binary.LittleEndian.Uint32(in[next:])
			next += 4
		}
		if err := end(&f, sum); err != nil {
			return err
		}
		p = next
	}
	return nil
}

// maxLZ4Ratio is how many bytes a byte of a block can stand for.
const maxLZ4Ratio = 255

// decodeLZ4 walks the frames twice: once for what their content has at most, once to decompress it.
func (c *Codec) decodeLZ4(in []byte, out *Buffer, limit int64, grow func(int64) error) error {
	var most, declared uint64
	sized := true
	bad := func(err error) error {
		return fmt.Errorf("%w: %s body: LZ4: %w", model.ErrInvalid, c.protocol, err)
	}
	err := lz4Each(in, func(f *lz4Frame) error {
		sized = sized && f.sized
		if declared += f.content; f.content > MaxDecoded {
			declared = MaxDecoded + 1
		}
		return nil
	}, func(f *lz4Frame, data []byte, plain bool) error {
		if plain {
			most += uint64(len(data))
		} else {
			most += uint64(min(f.blockMax, maxLZ4Ratio*len(data)))
		}
		return nil
	}, func(*lz4Frame, uint32) error { return nil })
	if err != nil {
		return bad(err)
	}
	if sized && declared > uint64(limit) {
		return c.tooLarge("decoded body", int64(declared), "limits.decoded-bytes", limit)
	}
	if sized {
		most = min(most, declared)
	}
	room := min(most, uint64(limit))
	if err := grow(int64(room)); err != nil {
		return err
	}
	out.resize(int(room))
	dst := out.Bytes[:0:room]
	begin, over := 0, false
	err = lz4Each(in, func(*lz4Frame) error { begin = len(dst); return nil }, func(f *lz4Frame, data []byte, plain bool) error {
		from := begin
		if f.independent {
			from = len(dst)
		}
		var ok bool
		switch {
		case !plain:
			dst, ok, over = lz4Decode(dst, from, data, min(cap(dst), len(dst)+f.blockMax))
		case len(data) > cap(dst)-len(dst):
			ok, over = false, true
		default:
			dst, ok = append(dst, data...), true
		}
		if !ok {
			return fmt.Errorf("a block that cannot be decompressed, after %d decoded bytes", len(dst))
		}
		return nil
	}, func(f *lz4Frame, sum uint32) error {
		switch {
		case f.sized && uint64(len(dst)-begin) != f.content:
			return fmt.Errorf("a frame says that it has %d bytes of content, and has %d", f.content, len(dst)-begin)
		case f.contentSum && xxh32(dst[begin:]) != sum:
			return fmt.Errorf("the content of a frame does not match its checksum")
		}
		return nil
	})
	switch {
	case err != nil && over && room == uint64(limit) && most > room:
		return c.tooLarge("decoded body", limit+1, "limits.decoded-bytes", limit)
	case err != nil:
		return bad(err)
	}
	out.Bytes = dst
	return nil
}

// lz4Decode appends the content of a block to dst, which may become so long as most; matches may reach back to from. Over
// says that the room was too small.
func lz4Decode(dst []byte, from int, src []byte, most int) (_ []byte, ok, over bool) {
	length := func(n, p int) (int, int) {
		for n >= 15 && p < len(src) {
			b := int(src[p])
			n, p = n+b, p+1
			if b != 255 || n > most {
				return n, p
			}
		}
		if n >= 15 {
			return n, -1
		}
		return n, p
	}
	for p := 0; p < len(src); {
		token := int(src[p])
		n, next := length(token>>4, p+1)
		if next < 0 || n > len(src)-next {
			return dst, false, false
		}
		if n > most-len(dst) {
			return dst, false, true
		}
		dst = append(dst, src[next:next+n]...)
		if p = next + n; p == len(src) {
			return dst, true, false
		}
		if len(src)-p < 2 {
			return dst, false, false
		}
		offset := int(binary.LittleEndian.Uint16(src[p:]))
		n, next = length(token&15, p+2)
		if n += 4; next < 0 || offset == 0 || offset > len(dst)-from {
			return dst, false, false
		}
		if n > most-len(dst) {
			return dst, false, true
		}
		p = next
		for n > 0 { // a match may overlap what it makes
			k := min(n, offset)
			dst = append(dst, dst[len(dst)-offset:len(dst)-offset+k]...)
			n -= k
		}
	}
	return dst, true, false
}

//go:build e2e

package badinput

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const zstdMagic = "\x28\xb5\x2f\xfd"

func compression() group {
	g := group{file: "remote-write-zstd", title: "Remote write 1.0 with zstd"}
	add := func(input string, samples int, body func() []byte) {
		g.attacks = append(g.attacks, attack{input: input, samples: samples, do: func(_ *testing.T, s *server) (string, string) {
			status, text := s.post([]string{"Content-Encoding", "zstd"}, body())
			return fmt.Sprint(status), text
		}})
	}
	pack := func(b []byte) []byte {
		z, err := zstd.NewWriter(nil)
		if err != nil {
			panic(err) // there are no options that could be wrong
		}
		return z.EncodeAll(b, nil)
	}
	good := func() []byte { return series(good("bi_zstd2"), one()) }
	rle := func(n int) []byte {
		// A block that repeats one byte 128 Ki times.
		head := binary.LittleEndian.AppendUint32(nil, 128<<10<<3|1<<1)[:3]
		return bytes.Repeat(append(head, 0), n)
	}
	skip := func(n uint32) []byte { return binary.LittleEndian.AppendUint32([]byte("\x50\x2a\x4d\x18"), n) }
	add("no body", 0, func() []byte { return nil })
	add("text", 0, func() []byte { return []byte("hello world, this is no zstd") })
	add("a snappy block", 0, func() []byte { return message(good()) })
	add("the magic number alone", 0, func() []byte { return []byte(zstdMagic) })
	add("the magic number of zstd 0.7", 0, func() []byte { return []byte("\x27\xb5\x2f\xfd\x00\x00") })
	add("cut in the middle", 0, func() []byte { b := pack(good()); return b[:len(b)/2] })
	add("the checksum cut off", 0, func() []byte { b := pack(good()); return b[:len(b)-4] })
	add("a wrong checksum", 0, func() []byte { b := pack(good()); b[len(b)-1] ^= 1; return b })
	add("garbage after the frame", 0, func() []byte { return append(pack(good()), "garbage"...) })
	add("compressed twice", 0, func() []byte { return pack(pack(good())) })
	add("two frames", 1, func() []byte { b := good(); return append(pack(b[:7]), pack(b[7:])...) })
	add("100,000 empty frames", 0, func() []byte { return bytes.Repeat([]byte(zstdMagic+"\x20\x00\x01\x00\x00"), 100_000) })
	add("a skippable frame alone", 0, func() []byte { return append(skip(3), "abc"...) })
	add("a skippable frame of 4 GB announced", 0, func() []byte { return append(skip(0xffffffff), "abc"...) })
	add("100,000 skippable frames", 0, func() []byte { return bytes.Repeat(skip(0), 100_000) })
	add("a content size of 2^64-1", 0, func() []byte { return []byte(zstdMagic + "\xe0\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00") })
	add("a content size of 8 MiB and 3 bytes of content", 0, func() []byte { return append([]byte(zstdMagic+"\xa0\x00\x00\x80\x00\x19\x00\x00"), "abc"...) })
	add("a content size of 0 and 3 bytes of content", 0, func() []byte { return append([]byte(zstdMagic+"\x20\x00\x19\x00\x00"), "abc"...) })
	add("a content size of 100 and 2,000 bytes of content, compressed", 0, func() []byte {
		z, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false))
		if err != nil {
			panic(err) // the options are valid
		}
		b := z.EncodeAll(bytes.Repeat([]byte("0123456789"), 200), nil)
		return append([]byte(zstdMagic+"\x20\x64"), b[7:]...) // instead of a size of two bytes
	})
	add("a window of 3.75 TB", 0, func() []byte { return append(append([]byte(zstdMagic+"\x00\xff"), rle(1)...), 1, 0, 0) })
	add("a window of 256 MiB", 0, func() []byte { return append([]byte(zstdMagic+"\x00\x90\x19\x00\x00"), "abc"...) })
	add("a window of 128 MiB and 3 bytes of content", 0, func() []byte { return append([]byte(zstdMagic+"\x00\x88\x19\x00\x00"), "abc"...) })
	add("a dictionary", 0, func() []byte { return []byte(zstdMagic + "\x01\x58\x07\x01\x00\x00") })
	add("the reserved bit", 0, func() []byte { return []byte(zstdMagic + "\x08\x58\x01\x00\x00") })
	add("a reserved block", 0, func() []byte { return []byte(zstdMagic + "\x00\x58\x07\x00\x00") })
	add("a block of 2 MB", 0, func() []byte { return append([]byte(zstdMagic+"\x00\x58\x01\x00\xf8"), make([]byte, 1000)...) })
	add("zeros just over limits.decoded-bytes", 0, func() []byte { return pack(make([]byte, decodedMiB<<20+1)) })
	add("zeros of limits.decoded-bytes", 0, func() []byte { return pack(make([]byte, decodedMiB<<20)) })
	add("a bomb: 128 GB in 4 MB, no size announced", 0, func() []byte { return append(append([]byte(zstdMagic+"\x00\x58"), rle(1_000_000)...), 1, 0, 0) })
	add("a bomb: 9 MB in 72 blocks, no size announced", 0, func() []byte { return append(append([]byte(zstdMagic+"\x00\x58"), rle(72)...), 1, 0, 0) })
	add("a bomb: 1,000 frames of 8 MiB", 0, func() []byte { return bytes.Repeat(pack(make([]byte, decodedMiB<<20)), 1000) })
	return g
}

package body

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

// The heads of frames with blocks of 64 KiB and without checksums but the one of the head.
const (
	lz4Independent = "\x04\x22\x4d\x18\x60\x40\x82"
	lz4Linked      = "\x04\x22\x4d\x18\x40\x40\xc0"
)

func packLZ4(t testing.TB, b []byte, options ...lz4.Option) []byte {
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	if err := w.Apply(append(options, lz4.BlockSizeOption(lz4.Block64Kb))...); err != nil {
		t.Fatal(err)
	}
	return writeAll(t, w, &out, b)
}

// storedLZ4 makes two frames whose blocks are stored, with a skippable frame between them.
func storedLZ4(b []byte) []byte {
	half := len(b) / 2
	frame := func(b []byte) []byte {
		out := []byte(lz4Independent)
		for len(b) > 0 {
			n := min(len(b), 1<<16)
			out = binary.LittleEndian.AppendUint32(out, uint32(n)|1<<31)
			out = append(out, b[:n]...)
			b = b[n:]
		}
		return append(out, 0, 0, 0, 0)
	}
	out := append(frame(b[:half]), 0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c')
	return append(out, frame(b[half:])...)
}

// linkedLZ4 makes a frame whose blocks refer to the blocks before them, which the library does not
// write. It compresses badly: it finds matches of 4 bytes and more at a distance of 7 bytes.
func linkedLZ4(b []byte) []byte {
	out := []byte(lz4Linked)
	for pos := 0; pos < len(b); {
		end := min(pos+1<<16, len(b))
		var block []byte
		literal := pos
		sequence := func(upTo, match int) {
			n, m := upTo-literal, match-4
			token := byte(min(n, 15) << 4)
			if match > 0 {
				token |= byte(min(m, 15))
			}
			block = append(block, token)
			length := func(n int) {
				if n < 15 {
					return
				}
				for n -= 15; n >= 255; n -= 255 {
					block = append(block, 255)
				}
				block = append(block, byte(n))
			}
			length(n)
			block = append(block, b[literal:upTo]...)
			if match > 0 {
				block = binary.LittleEndian.AppendUint16(block, 7)
				length(m)
			}
		}
		for i := pos; i < end; {
			m := 0
			for i >= 7 && i+m < end-5 && b[i+m] == b[i+m-7] {
				m++
			}
			if m < 4 {
				i++
				continue
			}
			sequence(i, m)
			i += m
			literal = i
		}
		sequence(end, 0)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(block)))
		out = append(out, block...)
		pos = end
	}
	return append(out, 0, 0, 0, 0)
}

// TestLZ4Program decodes frames that the lz4 program made.
func TestLZ4Program(t *testing.T) {
	racetest.SkipSerial(t)
	for _, frame := range []struct{ what, hex, content string }{
		{"with all checksums", "04224d187c402a0000000000000092100000006f68656c6c6f2006000c50656c6c6f0a9ca46e890000000073d47385", strings.Repeat("hello ", 6) + "hello\n"},
		// lz4 -BD -B4 -BX --content-size
		{"linked", "04224d185c40e0220200000000004f110100007f616263646566670700" + strings.Repeat("ff", 256) + "e1506566676162c93412400a0100000ffe" + strings.Repeat("ff", 257) + "e8506761626364c20b3d1c330000007f656667616263640700" + strings.Repeat("ff", 34) + "e35063646566677a002e7d00000000c7998bf8", strings.Repeat("abcdefg", 20_000)},
		// lz4 -l
		{"legacy", "02214c18350200007f616263646566670700" + strings.Repeat("ff", 548) + "e5506364656667", strings.Repeat("abcdefg", 20_000)},
	} {
		in, err := hex.DecodeString(frame.hex)
		if err != nil {
			t.Fatal(err)
		}
		out := new(Buffer)
		if err := New("test", "rows").Decode(LZ4, in, out, 0, free); err != nil || string(out.Bytes) != frame.content {
			t.Errorf("%s: %d bytes, %v", frame.what, len(out.Bytes), err)
		}
		for i := range in {
			damaged := bytes.Clone(in)
			damaged[i] ^= 0x10
			err := New("test", "rows").Decode(LZ4, damaged, out, 0, free)
			if frame.what != "legacy" && !errors.Is(err, model.ErrInvalid) { // the only frames here without checksums
				t.Errorf("%s, damaged at byte %d: %v", frame.what, i, err)
			}
		}
	}
}

func TestLZ4Reservation(t *testing.T) {
	small, large := lz4Independent, "\x04\x22\x4d\x18\x60\x70\x73"
	for in, want := range map[string]int64{
		"":               0,
		small:            2 * 64 << 10,
		small + "xxxxxx": 2 * 64 << 10,
		large:            2 * 4 << 20,
		small + large:    2 * 4 << 20,
		large + small:    2 * 4 << 20,
		lz4Linked:        3*64<<10 + lz4History,
		small + string(lz4LegacyMagic) + lz4Linked: 3*lz4LegacyBlock + lz4History,
		string(lz4Magic): 0,
	} {
		if got := lz4Buffers([]byte(in)); got != want {
			t.Errorf("%x: %d, want %d", in, got, want)
		}
	}
	// The buffers are reserved before anything else.
	full := errors.New("no room")
	err := New("test", "rows").Decode(LZ4, []byte(large), new(Buffer), 0, func(n int64) error {
		if n != 2*4<<20 {
			t.Errorf("%d bytes are reserved", n)
		}
		return full
	})
	if !errors.Is(err, full) {
		t.Error(err)
	}
}

// TestLZ4RemembersNothing decodes a linked frame that begins with a copy of what came before it: of
// another body, which may be another tenant's.
func TestLZ4RemembersNothing(t *testing.T) {
	c := New("test", "rows")
	for range 4 {
		if err := c.Decode(LZ4, linkedLZ4([]byte(strings.Repeat("secret", 100))), new(Buffer), 0, free); err != nil {
			t.Fatal(err)
		}
		out := new(Buffer)
		block := "\x02\x07\x00\x50xxxxx" // 6 bytes from 7 bytes before, then 5 literals
		err := c.Decode(LZ4, []byte(lz4Linked+string(rune(len(block)))+"\x00\x00\x00"+block+"\x00\x00\x00\x00"), out, 0, free)
		if !errors.Is(err, model.ErrInvalid) || len(out.Bytes) > 0 {
			t.Errorf("%q, %v", out.Bytes, err)
		}
	}
}

func TestLZ4LegacyBomb(t *testing.T) {
	in := bytes.Repeat(lz4LegacyMagic, 8<<20)
	err := New("test", "rows").Decode(LZ4, in, new(Buffer), 0, free)
	if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "legacy") {
		t.Error(err)
	}
}

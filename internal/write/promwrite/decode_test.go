package promwrite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	bodies "github.com/shaledb/shale/internal/write/body"
)

// maxFrames is how many zstd frames a body may have, and maxBlock the most that a block of a frame holds.
const (
	maxFrames = 1 << 10
	maxBlock  = 128 << 10
)

// pack makes one zstd frame that declares the size of its content.
func pack(t testing.TB, raw []byte, options ...zstd.EOption) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	return w.EncodeAll(raw, nil)
}

// stream makes a zstd frame that does not declare it.
func stream(t testing.TB, raw []byte, options ...zstd.EOption) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, options...)
	if err != nil {
		t.Fatal(err)
	}
	// Two writes with a flush between, or the encoder knows the size after all.
	half := len(raw) / 2
	for _, piece := range [][]byte{raw[:half], raw[half:]} {
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var h zstd.Header
	if err := h.Decode(out.Bytes()); err != nil || h.HasFCS {
		t.Fatalf("the test's own frame: %+v, %v", h, err)
	}
	return out.Bytes()
}

func TestZstd(t *testing.T) {
	noise := make([]byte, 300_000)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	d := bodies.New("remote write", "samples")
	for what, raw := range map[string][]byte{
		"empty": {}, "one byte": {7}, "a request": marshalV1(t, fleet(100)), "noise": noise,
		"zeros": make([]byte, 3<<20), "zeros and noise": append(make([]byte, 1<<20), noise...),
	} {
		skippable := binary.LittleEndian.AppendUint32([]byte("\x50\x2a\x4d\x18"), 5)
		skippable = append(skippable, "hello"...)
		for form, body := range map[string][]byte{
			"sized": pack(t, raw), "single segment": pack(t, raw, zstd.WithSingleSegment(true)), "without checksum": pack(t, raw, zstd.WithEncoderCRC(false)),
			"best": pack(t, raw, zstd.WithEncoderLevel(zstd.SpeedBestCompression)), "stream": stream(t, raw),
			"two frames":      append(pack(t, raw[:len(raw)/3]), pack(t, raw[len(raw)/3:])...),
			"two streams":     append(stream(t, raw[:len(raw)/3]), stream(t, raw[len(raw)/3:])...),
			"skippable first": append(skippable, pack(t, raw)...),
		} {
			reserved := int64(0)
			out := new(bodies.Buffer)
			err := d.Decode(bodies.Zstd, body, out, 4<<20, func(n int64) error {
				reserved += n
				if int64(cap(out.Bytes)) > max(reserved, 0) && cap(out.Bytes) > 64 {
					t.Errorf("%s, %s: %d bytes taken and %d reserved", what, form, cap(out.Bytes), reserved-n)
				}
				return nil
			})
			if err != nil || !bytes.Equal(out.Bytes, raw) {
				t.Errorf("%s, %s: %d bytes of %d, %v", what, form, len(out.Bytes), len(raw), err)
			}
			if most := int64(len(raw)) + 5*maxBlock; reserved < int64(len(raw)) || reserved > most {
				t.Errorf("%s, %s: %d bytes reserved for %d", what, form, reserved, len(raw))
			}
			// The same with less than is needed.
			if len(raw) > 1 {
				err := d.Decode(bodies.Zstd, body, new(bodies.Buffer), int64(len(raw)-1), func(int64) error { return nil })
				if r := new(write.Refused); !errors.As(err, &r) || r.Status != 413 || r.Limit != "limits.decoded-bytes" {
					t.Errorf("%s, %s: beyond the limit: %v", what, form, err)
				}
			}
			if len(body) > 4 {
				if err := d.Decode(bodies.Zstd, body[:len(body)-1], new(bodies.Buffer), 4<<20, func(int64) error { return nil }); !errors.Is(err, model.ErrInvalid) {
					t.Errorf("%s, %s: cut off: %v", what, form, err)
				}
			}
		}
	}
}

// TestDecodedBytesAreReservedFirst refuses the reservation and checks that nothing was allocated.
func TestDecodedBytesAreReservedFirst(t *testing.T) {
	refused := errors.New("refused")
	raw := make([]byte, 3<<20)
	for form, body := range map[bodies.Encoding][]byte{bodies.Snappy: snappy.Encode(nil, raw), bodies.Zstd: pack(t, raw)} {
		out := new(bodies.Buffer)
		err := bodies.New("remote write", "samples").Decode(form, body, out, 0, func(n int64) error {
			if n != int64(len(raw)) {
				t.Errorf("asks for %d", n)
			}
			return refused
		})
		if !errors.Is(err, refused) || cap(out.Bytes) > 0 {
			t.Errorf("%v, and %d bytes are taken", err, cap(out.Bytes))
		}
	}
	// Of unknown size: the most that it may have is asked for.
	out, asked := new(bodies.Buffer), int64(0)
	err := bodies.New("remote write", "samples").Decode(bodies.Zstd, stream(t, raw), out, 0, func(n int64) error { asked += n; return refused })
	if !errors.Is(err, refused) || cap(out.Bytes) > 0 || asked < int64(len(raw)) {
		t.Errorf("%v, %d bytes are asked for and %d taken", err, asked, cap(out.Bytes))
	}
}

// frame is the head of a zstd frame: descriptor, and what follows it.
func frame(descriptor byte, rest ...byte) []byte {
	return append([]byte{0x28, 0xb5, 0x2f, 0xfd, descriptor}, rest...)
}

// TestHostileZstd: the sizes that a frame announces are checked before they are used.
func TestHostileZstd(t *testing.T) {
	h, _ := newHandler(t, testLimits())
	for what, c := range hostileZstd(t) {
		w := send(h, c.body, "Content-Encoding", "zstd")
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
}

type hostileBody struct {
	body []byte
	code int
	text string
}

func hostileZstd(t *testing.T) map[string]hostileBody {
	huge := binary.LittleEndian.AppendUint64(nil, 1<<62)
	return map[string]hostileBody{
		"empty":                       {nil, 400, "not a zstd frame"},
		"snappy":                      {encode(t, fleet(1)), 400, "not a zstd frame"},
		"magic alone":                 {frame(0)[:4], 400, "not a zstd frame"},
		"content of 2^62":             {append(frame(0xe0, huge...), 1, 0, 0), 400, "says that it has 4611686018427387904 bytes of content, and its blocks have 0 to 0"},
		"content of 0, raw":           {frame(0x20, 0, 0x09, 0, 0, 'x'), 400, "says that it has 0 bytes of content, and its blocks have 1 to 1"},
		"content of 9, compressed":    {lie(t, 9), 400, "the zstd stream of"},
		"content of 5000, compressed": {lie(t, 5000), 400, "the zstd stream of"},
		"content of 5 MiB":            {pack(t, make([]byte, 5<<20)), 413, "limits.decoded-bytes"},
		"bomb of unknown size":        {stream(t, make([]byte, 64<<20)), 413, "limits.decoded-bytes"},
		"a second frame is the bomb":  {append(pack(t, []byte("x")), pack(t, make([]byte, 64<<20))...), 413, "limits.decoded-bytes"},
		"a window of 2 TiB":           {frame(0, 0xf8, 1, 0, 0), 400, "window of 2199023255552 bytes and 134217728 are allowed"},
		"a window of 256 MiB":         {frame(0, (28-10)<<3, 1, 0, 0), 400, "window"},
		"a dictionary":                {frame(1, 0x40, 7, 1, 0, 0), 400, "dictionary"},
		"wrong checksum":              {flip(pack(t, marshalV1(t, fleet(3))), -1), 400, "the zstd stream of"},
		"flipped in the middle":       {flip(pack(t, marshalV1(t, fleet(300))), 200), 400, ""},
		"garbage behind":              {append(pack(t, marshalV1(t, fleet(1))), "garbage"...), 400, "not a zstd frame"},
		"less content than announced": {frame(0xa0, 10, 0, 0, 0, 0x09, 0, 0, 'x'), 400, "says that it has 10 bytes of content, and its blocks have 1 to 1"},
		"too many frames":             {bytes.Repeat(pack(t, []byte("x")), maxFrames+1), 400, "more than 1024 zstd frames"},
		"skippable, cut off":          {[]byte("\x50\x2a\x4d\x18\xff\xff\xff\xffx"), 400, "cut off"},
		"no last block":               {frame(0, 0x40, 0x08, 0, 0, 'x'), 400, "cut off"},
	}
}

// lie makes a frame of a compressed block with 2,000 bytes, and says that they are n.
func lie(t *testing.T, n uint16) []byte {
	t.Helper()
	b := pack(t, bytes.Repeat([]byte("0123456789"), 200), zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false))
	if b[4] != 0x60 || b[7]>>1&3 != 2 {
		t.Fatalf("% x is not of the form that is wanted", b[:10])
	}
	// A size of two bytes counts from 256 on; one byte, from 0 on.
	if n >= 256 {
		binary.LittleEndian.PutUint16(b[5:], n-256)
		return b
	}
	return append(frame(0x20, byte(n)), b[7:]...)
}

// flip changes a byte, from the end if at is negative.
func flip(b []byte, at int) []byte {
	if at < 0 {
		at += len(b)
	}
	b[at] ^= 0x55
	return b
}

// FuzzZstd holds the decoder to zstd's own reader, within the limit.
func FuzzZstd(f *testing.F) {
	f.Add(pack(f, []byte("hello, hello, hello")))
	f.Add(stream(f, bytes.Repeat([]byte("0123456789"), 20_000)))
	f.Add(append(pack(f, nil), pack(f, make([]byte, 1000))...))
	f.Add(frame(0, 0x40, 0x0b, 0, 0, 'x'))
	f.Add(frame(0xe0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0))
	f.Add(frame(0x20, 0, 0x09, 0, 0, 'x'))
	d := bodies.New("remote write", "samples")
	f.Fuzz(func(t *testing.T, body []byte) {
		const limit = 1 << 20
		reserved := int64(0)
		out := new(bodies.Buffer)
		err := d.Decode(bodies.Zstd, body, out, limit, func(n int64) error {
			if reserved += n; reserved > limit {
				t.Fatalf("%d bytes reserved", reserved)
			}
			return nil
		})
		if err != nil {
			if !errors.Is(err, model.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		judge, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		defer judge.Close()
		if want, err := judge.DecodeAll(body, nil); err != nil || !bytes.Equal(out.Bytes, want) {
			t.Fatalf("%d bytes, want %d, %v", len(out.Bytes), len(want), err)
		}
	})
}

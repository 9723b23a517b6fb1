package body

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

func writeAll(t testing.TB, w io.WriteCloser, out *bytes.Buffer, b []byte) []byte {
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// compressors has one for each form that a body may have.
func compressors(t testing.TB) map[string]struct {
	e Encoding
	f func(b []byte) []byte
} {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]struct {
		e Encoding
		f func(b []byte) []byte
	}{
		"plain":  {Plain, func(b []byte) []byte { return b }},
		"snappy": {Snappy, func(b []byte) []byte { return snappy.Encode(nil, b) }},
		"zstd":   {Zstd, func(b []byte) []byte { return z.EncodeAll(b, nil) }},
		"gzip": {Gzip, func(b []byte) []byte {
			var out bytes.Buffer
			return writeAll(t, gzip.NewWriter(&out), &out, b)
		}},
		"deflate": {Deflate, func(b []byte) []byte {
			var out bytes.Buffer
			w, _ := flate.NewWriter(&out, 6)
			return writeAll(t, w, &out, b)
		}},
		"zlib": {Deflate, func(b []byte) []byte {
			var out bytes.Buffer
			return writeAll(t, zlib.NewWriter(&out), &out, b)
		}},
		"lz4, stored": {LZ4, storedLZ4},
		"lz4":         {LZ4, func(b []byte) []byte { return packLZ4(t, b) }},
		"lz4, sized": {LZ4, func(b []byte) []byte {
			return packLZ4(t, b, lz4.SizeOption(uint64(len(b))), lz4.BlockChecksumOption(true))
		}},
		"lz4, linked": {LZ4, linkedLZ4},
	}
}

func free(int64) error { return nil }

func TestDecode(t *testing.T) {
	c := New("test", "rows")
	all := compressors(t)
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 10, 100, 70_000, 300_000}).Draw(r, "bytes")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		b := make([]byte, n)
		for i := range b {
			b[i] = "abcdefg"[i%7]
			if rng.IntN(50) == 0 {
				b[i] = byte(rng.Uint32())
			}
		}
		for name, form := range all {
			in := form.f(b)
			out := c.Take()
			var reserved int64
			if err := c.Decode(form.e, in, out, 0, func(n int64) error { reserved += n; return nil }); err != nil {
				r.Fatalf("%s: %v", name, err)
			}
			if !bytes.Equal(out.Bytes, b) {
				r.Fatalf("%s: %d bytes came back as %d others", name, len(b), len(out.Bytes))
			}
			if reserved < int64(len(b)) {
				r.Fatalf("%s: %d bytes are reserved for %d", name, reserved, len(b))
			}
			c.Give(out)
		}
	})
}

func TestDecodeRefusesWhatIsTooLarge(t *testing.T) {
	c := New("test", "rows")
	b := []byte(strings.Repeat("abcdefg", 50_000))
	for name, form := range compressors(t) {
		in := form.f(b)
		var reserved int64
		out := new(Buffer)
		err := c.Decode(form.e, in, out, 100_000, func(n int64) error { reserved += n; return nil })
		var r *write.Refused
		if !errors.As(err, &r) || r.Status != http.StatusRequestEntityTooLarge || r.Limit != "limits.decoded-bytes" {
			t.Errorf("%s: %v", name, err)
		}
		if form.e == LZ4 {
			reserved -= lz4Buffers(in)
		}
		if reserved > 110_000 || cap(out.Bytes) > 130_000 {
			t.Errorf("%s: %d bytes are reserved, and %d taken", name, reserved, cap(out.Bytes))
		}
		full := errors.New("no room")
		if err := c.Decode(form.e, in, new(Buffer), 0, func(int64) error { return full }); !errors.Is(err, full) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeRefusesDamage(t *testing.T) {
	c := New("test", "rows")
	b := []byte(strings.Repeat("abcdefg", 500))
	for name, form := range compressors(t) {
		if form.e == Plain {
			continue
		}
		in := form.f(b)
		for _, n := range []int{0, 1, 5, len(in) / 2, len(in) - 1} {
			err := c.Decode(form.e, in[:n], new(Buffer), 0, free)
			if err == nil || !errors.Is(err, model.ErrInvalid) || !strings.HasPrefix(err.Error(), "invalid: test body: ") {
				t.Errorf("%s, cut off at %d: %v", name, n, err)
			}
		}
		if err := c.Decode(form.e, append(bytes.Clone(in), "garbage"...), new(Buffer), 0, free); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s, with something after it: %v", name, err)
		}
	}
}

type admitter struct{ p *write.Path }

func (a admitter) Admit(ctx context.Context, tenant string, n int64) (*write.Grant, error) {
	return a.p.Admit(ctx, tenant, n)
}

func TestRead(t *testing.T) {
	p := write.New(write.Options{Limits: write.Limits{MaxInflightBytes: 1 << 20}})
	c := New("test", "rows")
	for _, known := range []bool{true, false} {
		for _, n := range []int{0, 1, firstStep, 100_000} {
			b := bytes.Repeat([]byte("x"), n)
			r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(b))
			if !known {
				r.ContentLength = -1
			}
			in := c.Take()
			grant, err := c.Read(r, admitter{p}, "t", in, 100_000)
			if err != nil || !bytes.Equal(in.Bytes, b) {
				t.Fatalf("%d bytes, known %t: %d bytes %v", n, known, len(in.Bytes), err)
			}
			grant.Release()
		}
		var refused *write.Refused
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(make([]byte, 100_001)))
		if !known {
			r.ContentLength = -1
		}
		if _, err := c.Read(r, admitter{p}, "t", c.Take(), 100_000); !errors.As(err, &refused) || refused.Status != http.StatusRequestEntityTooLarge {
			t.Errorf("known %t: %v", known, err)
		}
		r = httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(make([]byte, 2<<20)))
		if !known {
			r.ContentLength = -1
		}
		if _, err := c.Read(r, admitter{p}, "t", c.Take(), 0); !errors.As(err, &refused) {
			t.Errorf("known %t: %v", known, err)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("abc"))
	r.ContentLength = 10
	if _, err := c.Read(r, admitter{p}, "t", c.Take(), 0); !errors.Is(err, model.ErrInvalid) {
		t.Error(err)
	}
	if g, err := p.Admit(context.Background(), "t", 1<<20); err != nil {
		t.Errorf("something is still reserved: %v", err)
	} else {
		g.Release()
	}
}

func TestHugeBuffersAreNotPooled(t *testing.T) {
	c := New("test", "rows")
	big := c.Take()
	big.resize(maxPooled + 1)
	c.Give(big)
	for range 4 {
		if b := c.Take(); cap(b.Bytes) > maxPooled {
			t.Fatal("a huge buffer came back")
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, form := range compressors(f) {
		for _, b := range []string{"", "abcdefgabcdefgabcdefg", strings.Repeat("x", 100_000)} {
			f.Add(uint8(form.e), form.f([]byte(b)))
		}
	}
	c := New("test", "rows")
	f.Fuzz(func(t *testing.T, e uint8, in []byte) {
		const limit = 1 << 20
		out := new(Buffer)
		var reserved int64
		err := c.Decode(Encoding(e%6), in, out, limit, func(n int64) error {
			if reserved += n; reserved > 8*limit+lz4Buffers(in) {
				return fmt.Errorf("%w: %d bytes are asked for", model.ErrInvalid, reserved)
			}
			return nil
		})
		if len(out.Bytes) > limit && err == nil || reserved < int64(len(out.Bytes)) && err == nil || cap(out.Bytes) > 2*limit {
			t.Errorf("%d bytes of %d reserved, room for %d: %v", len(out.Bytes), reserved, cap(out.Bytes), err)
		}
	})
}

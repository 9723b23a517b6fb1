package ingest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// objectOf is an object that counts reads.
type objectOf struct {
	data  []byte
	reads int
}

func (o *objectOf) GetRange(_ context.Context, _ string, off, n int64) ([]byte, error) {
	o.reads++
	return o.data[off : off+n], nil
}

// TestChunks: reads of any place and length get the bytes of the object, and neighbours cost one request.
func TestChunks(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	o := &objectOf{data: make([]byte, 11*chunkBytes+12345)}
	for i := range o.data {
		o.data[i] = byte(random.Uint32())
	}
	c := newChunks(t.Context(), o, "object", int64(len(o.data)))
	for range 200 {
		off := random.IntN(len(o.data))
		p := make([]byte, random.IntN(3*chunkBytes/2))
		n, err := c.ReadAt(p, int64(off))
		if whole := off+len(p) <= len(o.data); whole != (err == nil) || !whole && !errors.Is(err, io.EOF) {
			t.Fatalf("%d bytes at %d of %d: %d, %v", len(p), off, len(o.data), n, err)
		}
		if n != min(len(p), len(o.data)-off) || !bytes.Equal(p[:n], o.data[off:off+n]) {
			t.Fatalf("%d bytes at %d: other bytes", len(p), off)
		}
		if len(c.kept) > chunksKept {
			t.Fatalf("%d chunks are kept", len(c.kept))
		}
	}
	o.reads = 0
	c = newChunks(t.Context(), o, "object", int64(len(o.data)))
	for off := 0; off < 4*chunkBytes; off += 4 << 10 {
		if _, err := c.ReadAt(make([]byte, 4<<10), int64(off)); err != nil {
			t.Fatal(err)
		}
	}
	if o.reads != 4 {
		t.Errorf("%d requests for 4 chunks", o.reads)
	}
}

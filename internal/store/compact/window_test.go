package compact

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

// bytesBucket is one object. It fails while failures are left.
type bytesBucket struct {
	Bucket
	data            []byte
	reads, failures int
	most, bytes     int64
}

func (b *bytesBucket) GetRange(_ context.Context, _ string, off, n int64) ([]byte, error) {
	b.reads++
	if b.failures > 0 {
		b.failures--
		return nil, model.ErrTransient
	}
	b.most = max(b.most, n)
	b.bytes += n
	return bytes.Clone(b.data[off : off+n]), nil
}

func newWindows(b *bytesBucket, most int64) *windows {
	c := &Compactor{o: Options{Bucket: b, firstPause: time.Nanosecond}, metrics: newMetrics(nil), pace: &pacer{}}
	return &windows{m: &merge{c: c}, object: "x", size: int64(len(b.data)), most: most}
}

// TestWindows reads here and there. What was read stays as it is when other windows have taken its place, and
// the windows hold no more than they may.
func TestWindows(t *testing.T) {
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(i * 7919 >> 8)
	}
	rapid.Check(t, func(t *rapid.T) {
		b := &bytesBucket{data: data[:rapid.IntRange(1, len(data)).Draw(t, "size")]}
		most := rapid.Int64Range(1<<10, 512<<10).Draw(t, "window")
		ws := newWindows(b, most)
		type read struct {
			off int64
			got []byte
		}
		var reads []read
		largest := int64(0)
		places := make([]int64, 5)
		for range rapid.IntRange(1, 60).Draw(t, "reads") {
			p := &places[rapid.IntRange(0, 4).Draw(t, "place")]
			if *p >= ws.size || rapid.IntRange(0, 9).Draw(t, "jump") == 0 {
				*p = rapid.Int64Range(0, ws.size-1).Draw(t, "to")
			}
			n := min(rapid.Int64Range(0, 100<<10).Draw(t, "bytes"), ws.size-*p)
			largest = max(largest, n)
			got, err := ws.read(ctx, *p, n)
			if err != nil {
				t.Fatal(err)
			}
			reads = append(reads, read{*p, got})
			*p += n
		}
		for _, r := range reads {
			if !bytes.Equal(r.got, b.data[r.off:r.off+int64(len(r.got))]) {
				t.Fatalf("the bytes at %d are wrong", r.off)
			}
		}
		held := int64(0)
		for _, w := range ws.open {
			held += int64(len(w.bytes))
		}
		if held > windowsPerInput*max(most, largest) || b.most > max(most, largest) {
			t.Fatalf("%d bytes in windows of %d, reads of %d, of %d wanted", held, most, b.most, largest)
		}
		for _, bad := range [][2]int64{{ws.size, 1}, {-1, 1}, {0, ws.size + 1}, {0, -1}} {
			if _, err := ws.read(ctx, bad[0], bad[1]); !errors.Is(err, model.ErrCorrupt) {
				t.Fatalf("[%d, +%d): %v", bad[0], bad[1], err)
			}
		}
	})
}

// TestWindowsReadAhead reads an object from its beginning to its end, as a merge does that meets small
// tenants: in few requests, each byte once.
func TestWindowsReadAhead(t *testing.T) {
	b := &bytesBucket{data: make([]byte, 8<<20), failures: 2}
	ws := newWindows(b, 1<<20)
	for off := int64(0); off < ws.size; off += 256 {
		if _, err := ws.read(ctx, off, 256); err != nil {
			t.Fatal(err)
		}
	}
	if b.reads > 2+4+8 {
		t.Errorf("%d requests", b.reads)
	}
}

// TestWindowsReadGroups reads groups of units as a merge does that copies units: the rows of a unit, then its
// lines, which stand after the rows of the whole group. Hardly a byte is read twice.
func TestWindowsReadGroups(t *testing.T) {
	const units, lines = 25, 33 << 10
	for _, most := range []int64{512 << 10, 1 << 20, greatestWindow} {
		for _, rows := range []int64{2 << 10, 8 << 10} {
			b := &bytesBucket{data: make([]byte, 24*units*(rows+lines))}
			ws := newWindows(b, most)
			for off := int64(0); off < ws.size; off += units * (rows + lines) {
				for i := range int64(units) {
					for _, page := range [][2]int64{{off + i*rows, rows}, {off + units*rows + i*lines, lines}} {
						if _, err := ws.read(ctx, page[0], page[1]); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if b.bytes > ws.size+ws.size/20 || int64(b.reads) > 6*ws.size/most+20 {
				t.Errorf("windows of %d: %d requests for %d bytes of %d", most, b.reads, b.bytes, ws.size)
			}
		}
	}
}

func TestPacer(t *testing.T) {
	p := &pacer{rate: 1 << 20}
	began := time.Now()
	for range 12 {
		if err := p.wait(ctx, 128<<10); err != nil {
			t.Fatal(err)
		}
	}
	// A second's worth at once, the rest at the rate.
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("1.5 MiB at 1 MiB/s took %s", took)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := p.wait(canceled, 1<<30); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := (&pacer{}).wait(canceled, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

package whisperimport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// plainFile writes a file by hand, with the slots of its archives as they come.
func plainFile(method uint32, xff float32, archives [][2]uint32, slots ...[]point) []byte {
	b := binary.BigEndian.AppendUint32(nil, method)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, math.Float32bits(xff))
	b = binary.BigEndian.AppendUint32(b, uint32(len(archives)))
	offset := uint32(headerBytes + archiveBytes*len(archives))
	for _, a := range archives {
		for _, n := range []uint32{offset, a[0], a[1]} {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		offset += a[1] * pointBytes
	}
	for i, a := range archives {
		ring := make([]byte, a[1]*pointBytes)
		if i < len(slots) {
			for n, p := range slots[i] {
				binary.BigEndian.PutUint32(ring[pointBytes*n:], uint32(p.at))
				binary.BigEndian.PutUint64(ring[pointBytes*n+4:], p.bits)
			}
		}
		b = append(b, ring...)
	}
	return b
}

func TestDecodeRefuses(t *testing.T) {
	good := plainFile(1, 0.5, [][2]uint32{{60, 10}, {300, 10}})
	change := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	compressed, err := os.ReadFile("testdata/compressed/whisper/c1.wsp")
	if err != nil {
		t.Fatal(err)
	}
	block := int(binary.BigEndian.Uint32(compressed[compressedHeader:])) + 20
	changed := func(at int, to byte) []byte {
		b := bytes.Clone(compressed)
		b[at] = to
		return b
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "the file is empty"},
		{"header", good[:10], "truncated: 10 of 16 bytes"},
		{"archives", good[:20], "truncated: 20 of 40 bytes"},
		{"one byte short", good[:len(good)-1], "truncated: 279 of 280 bytes"},
		{"method 0", change(3, 0), "aggregation method 0 is unknown"},
		{"method 9", change(3, 9), "aggregation method 9 is unknown"},
		{"xff", change(8, 0xff), "xFilesFactor is"},
		{"no archives", change(15, 0), "the file has 0 archives"},
		{"many archives", change(15, 200), "the file has 200 archives"},
		{"offset", change(19, 1), "archive 0 begins at byte 1, expected 40"},
		{"step 0", change(23, 0), "step and number of points must be positive"},
		{"step 61", change(23, 61), "not a multiple of 61s"},
		{"compressed, short", compressed[:40], "truncated: 40 of 63 bytes"},
		{"compressed, archives", compressed[:100], "truncated: 100 of"},
		{"compressed, blocks", compressed[:len(compressed)-400], "truncated"},
		{"compressed, version", changed(len(magic), 3), "version 3 of compressed files is unknown"},
		{"compressed, header", changed(checksumAt+10, 1), "the header has the checksum"},
		{"compressed, block", changed(block, compressed[block]^1), "block 0 of step 60s has the checksum"},
	} {
		if _, err := decode(c.data, Python, testNow); err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%s: got error %v, want %s", c.name, err, c.want)
		}
	}
}

// Slots count only where whisper looks for them, and at times that it would show.
func TestDecodePlaces(t *testing.T) {
	const last = 1_700_000_100 // begin of the last slot
	const now = last + 30
	one := math.Float64bits(1)
	ring := make([]point, 10)
	ring[0] = point{last - 600, one}           // too old
	ring[1] = point{last - 539, one}           // not a multiple of the step
	ring[2] = point{last - 480, one}           // in its place
	ring[3] = point{last + 180, one}           // in the future
	ring[4] = point{last - 360 - 600*100, one} // a lap before
	ring[9] = point{last - 60, one}            // in its place
	f, err := decode(plainFile(1, 0.5, [][2]uint32{{60, 10}}, ring), Python, now)
	if err != nil {
		t.Fatal(err)
	}
	got := f.archives[0].points
	if len(got) != 2 || got[0].at != ring[2].at || got[1].at != ring[9].at || f.future != 1 || f.stale != 3 {
		t.Errorf("points %v, %d in the future, %d stale", got, f.future, f.stale)
	}
}

// The numbers from 6 on are of other methods in go-carbon, which no policy has.
func TestDialects(t *testing.T) {
	data := plainFile(6, 0.5, [][2]uint32{{60, 10}})
	python, err := decode(data, Python, testNow)
	if err != nil || !python.methodKnown || python.method.String() != "avg_zero" {
		t.Errorf("python: %+v, %v", python, err)
	}
	golang, err := decode(data, Go, testNow)
	if err != nil || golang.methodKnown {
		t.Errorf("go: %+v, %v", golang, err)
	}
}

// A block by hand: one raw point, then one of each form of times and values. The layout has the lowest byte
// of a number first, and the last bits of it alone.
func TestDecodeBlockByHand(t *testing.T) {
	const begin, step = 600, 60
	b := binary.BigEndian.AppendUint32(nil, begin)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(1))
	var w bitWriter
	w.write(2, 2)
	w.write(7, 1) // a step later, as the distance before was 0
	w.write(1, 0) // the same value
	w.write(1, 0) // the same distance
	two := math.Float64bits(1) ^ math.Float64bits(2)
	w.write(2, 3)
	w.write(5, 1)  // leading zeros
	w.write(6, 11) // length: 0x3ff0... to 0x4000... differ in 11 bits from bit 52 on
	w.write(11, two>>52)
	w.write(3, 6)
	w.write(9, 1<<8) // minus zero: the same distance
	w.write(2, 2)    // where the bits before were
	w.write(11, two>>52)
	w.write(4, 15)
	w.write(32, 60_000) // an absolute time
	w.write(2, 3)
	w.write(5, 0)
	w.write(6, 63) // 64 bits
	w.write(64, math.Float64bits(1)^math.Float64bits(-math.Pi))
	w.write(4, 15)
	w.write(32, 0)
	got, err := decodeBlock(append(b, w.b...), step, 60_000, 5)
	if err != nil {
		t.Fatal(err)
	}
	want := []point{{600, math.Float64bits(1)}, {660, math.Float64bits(1)}, {720, math.Float64bits(2)}, {780, math.Float64bits(1)}, {60_000, math.Float64bits(-math.Pi)}}
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("point %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

// bitWriter writes bits in the order that bitReader reads them.
type bitWriter struct {
	b    []byte
	free int
}

func (w *bitWriter) write(n int, v uint64) {
	for ; n > 0; n -= 8 {
		size := min(8, n)
		for i := size - 1; i >= 0; i-- {
			if w.free == 0 {
				w.b, w.free = append(w.b, 0), 8
			}
			w.free--
			w.b[len(w.b)-1] |= byte(v>>i&1) << w.free
		}
		v >>= size
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(plainFile(1, 0.5, [][2]uint32{{60, 10}, {300, 10}}, []point{{testNow - testNow%60, 1}}))
	for _, name := range []string{"c0", "c1"} {
		data, err := os.ReadFile("testdata/compressed/whisper/" + name + ".wsp")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decode(data, Go, testNow)
		if err != nil {
			return
		}
		for _, a := range got.archives {
			for i, p := range a.points {
				if p.at > testNow || p.at%a.Step != 0 || i > 0 && a.points[i-1].at >= p.at {
					t.Errorf("point %d of step %d", p.at, a.Step)
				}
			}
		}
		got.rows(testNow)
	})
}

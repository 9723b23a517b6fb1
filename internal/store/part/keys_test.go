package part

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSumUvarints compares with the decoder of the standard library, number by number.
func TestSumUvarints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := []uint64{rapid.Uint64().Draw(t, "first") >> rapid.IntRange(0, 63).Draw(t, "shift")}
		var b []byte
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			delta := rapid.Uint64().Draw(t, "delta") >> rapid.IntRange(0, 63).Draw(t, "shift")
			b = binary.AppendUvarint(b, delta)
			want = append(want, want[len(want)-1]+delta)
		}
		tail := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "tail")
		got := make([]uint64, len(want))
		got[0] = want[0]
		rest, bad := sumUvarints(got, append(slices.Clone(b), tail...))
		if wraps := !slices.IsSorted(want); bad != wraps || !bad && (!slices.Equal(got, want) || !slices.Equal(rest, tail)) {
			t.Fatalf("got %v, %v, %v; want %v, %v", got, rest, bad, want, tail)
		}
		if cut := len(b) - 1; cut >= 0 {
			if _, bad := sumUvarints(got, b[:cut]); !bad {
				t.Fatal("numbers that are cut off were taken")
			}
		}
	})
	for _, b := range [][]byte{nil, {0x80}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}} {
		if _, bad := sumUvarints(make([]uint64, 2), b); !bad {
			t.Errorf("%x was taken for a number", b)
		}
	}
}

func BenchmarkOpenKeys(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	payload := append([]byte{0}, binary.AppendUvarint(nil, maxPageKeys)...)
	payload = binary.BigEndian.AppendUint64(payload, 5)
	for range maxPageKeys - 1 {
		payload = binary.AppendUvarint(payload, r.Uint64N(1<<24))
	}
	payload = append(payload, make([]byte, 8*maxPageKeys)...)
	var d keyDir
	for b.Loop() {
		if err := d.open(payload); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/maxPageKeys, "ns/key")
}

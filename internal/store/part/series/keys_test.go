package series

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
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

// TestKeyDir: each key of a page is found, also between others and beyond them, and a page that is cut or
// changed is refused or gives keys, but does not panic.
func TestKeyDir(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var keys []model.Key
		k := model.Key{Hi: rapid.Uint64Max(1<<40).Draw(t, "first"), Lo: 1}
		shift := rapid.IntRange(20, 63).Draw(t, "shift")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range rapid.SampledFrom([]int{1, 2, 63, 64, 65, 300, 3000}).Draw(t, "n") {
			keys = append(keys, k)
			if k.Lo += 1 + r.Uint64N(4); r.IntN(2) == 0 { // some share their upper half
				k.Hi += r.Uint64() >> shift >> 4
			}
		}
		var page keyPage
		for i, k := range keys {
			page.add(uint32(7+i), k)
		}
		payload := page.payload(nil)
		var d keyDir
		if err := d.decode(payload); err != nil {
			t.Fatal(err)
		}
		if d.rank0 != 7 || d.count != len(keys) {
			t.Fatalf("%d keys from rank %d, want %d from 7", d.count, d.rank0, len(keys))
		}
		for range 50 {
			want := rapid.IntRange(0, len(keys)-1).Draw(t, "at")
			k := keys[want]
			switch rapid.IntRange(0, 3).Draw(t, "beside") {
			case 0: // directly after it
				k.Lo++
				want++
				for want < len(keys) && keys[want].Less(k) {
					want++
				}
			case 1:
				k = model.Key{}
				want = 0
			case 2:
				k, want = model.Key{Hi: 1 << 63}, len(keys)
			}
			if got, err := d.seek(k); err != nil || got != want {
				t.Fatalf("sought %v: got %d, %v, want %d", k, got, err, want)
			}
			if want < len(keys) {
				if err := d.load(want); err != nil || d.key(want) != keys[want] {
					t.Fatalf("key %d is %v, %v, want %v", want, d.key(want), err, keys[want])
				}
			}
		}
		if err := d.decode(payload); err != nil {
			t.Fatal(err)
		}
		for i, one := 0, rapid.SampledFrom([]int{1, 3, 20, 500}).Draw(t, "one of"); i < len(keys); i += 1 + r.IntN(one) {
			beside := model.Key{Hi: keys[i].Hi, Lo: keys[i].Lo - 1}
			for want, k := range map[int]model.Key{-1: beside, i: keys[i]} {
				if want < 0 && i > 0 && keys[i-1] == beside {
					continue // it is there
				}
				fresh := keyDir{}
				if err := fresh.decode(payload); err != nil {
					t.Fatal(err)
				}
				if got, _, err := fresh.find(k); got != want || err != nil {
					t.Fatalf("found %v, the first that is sought, at %d, %v, want %d", k, got, err, want)
				}
			}
			if r.IntN(4) > 0 && (i == 0 || keys[i-1] != beside) {
				if got, _, err := d.find(beside); got != -1 || err != nil {
					t.Fatalf("found %v, which is not there, at %d, %v", beside, got, err)
				}
			}
			if got, group, err := d.find(keys[i]); got != i || group != i/restartRanks || err != nil {
				t.Fatalf("found %v, number %d, at %d in %d, %v", keys[i], i, got, group, err)
			}
		}
		for g := range len(d.restarts)/restartBytes - 1 { // a byte more, or less, is that of a neighbour
			end := d.restarts[restartBytes*g+8:]
			was := binary.LittleEndian.Uint32(end)
			for _, other := range []uint32{was + 1, was - 1} {
				binary.LittleEndian.PutUint32(end, other)
				d.group = -1
				if d.load(g*restartRanks) == nil {
					t.Fatalf("restart %d ends at %d instead of %d", g, other, was)
				}
			}
			binary.LittleEndian.PutUint32(end, was)
		}
		i := rapid.IntRange(0, len(payload)-1).Draw(t, "byte")
		if d.decode(payload[:i]) == nil {
			t.Fatalf("%d of %d bytes were taken", i, len(payload))
		}
		payload[i] ^= byte(rapid.IntRange(1, 255).Draw(t, "change"))
		if d.decode(payload) == nil {
			_, _ = d.seek(keys[len(keys)/2])
			for _, k := range keys {
				_, _, _ = d.find(k)
			}
			for i := range d.count {
				_ = d.load(i)
			}
		}
	})
}

// BenchmarkSeekKey opens a page for one of its keys.
func BenchmarkSeekKey(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var page keyPage
	var keys []model.Key
	k := model.Key{Hi: 5}
	for i := range uint32(maxPageKeys) {
		keys = append(keys, k)
		page.add(i, k)
		k = model.Key{Hi: k.Hi + r.Uint64N(1<<24), Lo: r.Uint64()}
	}
	payload := page.payload(nil)
	b.ReportMetric(float64(len(payload))/maxPageKeys, "B/key")
	var d keyDir
	for i := 0; b.Loop(); i++ {
		if err := d.decode(payload); err != nil {
			b.Fatal(err)
		}
		if _, err := d.seek(keys[i*7919%len(keys)]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFindKeys asks a page for a few keys in order, each of which is there or, as of a part among a
// dozen, mostly not.
func BenchmarkFindKeys(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var page keyPage
	var here, elsewhere []model.Key
	k := model.Key{Hi: 5}
	for i := range uint32(maxPageKeys) {
		page.add(i, k)
		if r.IntN(20) == 0 {
			here = append(here, k)
			elsewhere = append(elsewhere, model.Key{Hi: k.Hi, Lo: k.Lo + 1})
		}
		k = model.Key{Hi: k.Hi + r.Uint64N(1<<24), Lo: r.Uint64()}
	}
	payload := page.payload(nil)
	for name, keys := range map[string][]model.Key{"here": here, "elsewhere": elsewhere} {
		b.Run(name, func(b *testing.B) {
			var d keyDir
			for b.Loop() {
				if err := d.decode(payload); err != nil {
					b.Fatal(err)
				}
				for _, k := range keys {
					if _, _, err := d.find(k); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
		})
	}
}

package hash

import (
	"fmt"
	"math"
	"testing"
)

func servers(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("10.0.0.%d:11211", i+1))
	}
	return list
}

// place returns the name of the server of each key.
func place(t testing.TB, kind string, list []string, keys int) []string {
	t.Helper()
	p, err := New(kind, list)
	if err != nil {
		t.Fatal(err)
	}
	places := make([]string, keys)
	for i := range places {
		places[i] = list[p.Pick(fmt.Appendf(nil, "data/%04x.part:stored:%d", i*31, i))]
	}
	return places
}

// TestLoss: of 33 servers, one is lost. Rendezvous hashing moves its keys and no others.
func TestLoss(t *testing.T) {
	const keys = 20_000
	for _, kind := range Kinds() {
		all := servers(33)
		before := place(t, kind, all, keys)
		load := map[string]int{}
		for _, s := range before {
			load[s]++
		}
		most := 0
		for _, n := range load {
			most = max(most, n)
		}
		lost := all[16]
		left := append(append([]string(nil), all[:16]...), all[17:]...)
		moved, strangers := 0, 0
		for i, s := range place(t, kind, left, keys) {
			if s != before[i] {
				if moved++; before[i] != lost {
					strangers++
				}
			}
		}
		t.Logf("%-10s %4.1f %% of the keys move, %4.1f %% needlessly; the busiest server has %.2f times the mean",
			kind, 100*float64(moved)/keys, 100*float64(strangers)/keys, float64(most)*33/keys)
		if kind != "jump" && strangers > 0 {
			t.Errorf("%s: %d keys of other servers move", kind, strangers)
		}
		if bound := map[string]float64{"rendezvous": 1.2, "ketama": 1.5, "jump": 1.2}[kind]; float64(most)*33/keys > bound {
			t.Errorf("%s: the busiest server has %d of %d keys", kind, most, keys)
		}
	}
}

// TestOrderOfTheList: the same servers in another order have the same keys.
func TestOrderOfTheList(t *testing.T) {
	for _, kind := range Kinds() {
		list := servers(12)
		before := place(t, kind, list, 1000)
		list[0], list[9], list[3] = list[9], list[3], list[0]
		for i, s := range place(t, kind, list, 1000) {
			if s != before[i] {
				t.Fatalf("%s: key %d moves from %s to %s", kind, i, before[i], s)
			}
		}
	}
	if _, err := New("crc", servers(1)); err == nil {
		t.Error("an unknown kind is taken")
	}
}

// TestJump has values of the reference implementation, in github.com/dgryski/go-jump.
func TestJump(t *testing.T) {
	for _, c := range []struct {
		key     uint64
		buckets int
		want    int
	}{{1, 1, 0}, {42, 57, 43}, {0xDEAD10CC, 1, 0}, {0xDEAD10CC, 666, 361}, {256, 1024, 520}} {
		if got := jump(c.key, c.buckets); got != c.want {
			t.Errorf("key %d of %d: got %d, want %d", c.key, c.buckets, got, c.want)
		}
	}
	// Natural order: 10 comes after 9.
	j := NewJump([]string{"m-10:1", "m-9:1"})
	if j.servers[0] != 1 {
		t.Error("the order of the servers is not natural")
	}
}

// TestKetamaByHand checks the ring against points worked out by hand from the rules of twemproxy.
func TestKetamaByHand(t *testing.T) {
	if got := KetamaName("10.0.0.1:11211") + " " + KetamaName("10.0.0.1:11212"); got != "10.0.0.1 10.0.0.1:11212" {
		t.Error(got)
	}
	// A weight of 1 of 6 in a ring of three gets half of the 40 hashes of an even share.
	k := NewKetama([]Server{{"a", 1}, {"b", 2}, {"c", 3}}, FNV1a64)
	count := [3]int{}
	for _, p := range k.points {
		count[p.server]++
	}
	if count != [3]int{80, 160, 240} {
		t.Errorf("%v points", count)
	}
	if got := FNV1a64([]byte{0xff}); got == FNV1a64([]byte{0x7f}) || got != uint32((0x84222325^math.MaxUint32)*0x1b3&math.MaxUint32) {
		t.Errorf("bytes are not signed: %x", got)
	}
}

func BenchmarkPick(b *testing.B) {
	key := []byte("shale:0123456789abcdef:data/0123456789abcdef.part:stored:123456")
	for _, kind := range Kinds() {
		p, err := New(kind, servers(33))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				p.Pick(key)
			}
		})
	}
}

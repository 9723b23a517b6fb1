package items

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
)

func put(s *Store, key, value string, cas uint64, expires, now uint32) bool {
	hash := xxh3.HashString(key)
	sh := s.Shard(hash)
	sh.Lock()
	defer sh.Unlock()
	it := sh.Insert(&Draft{Key: []byte(key), Hash: hash, Size: len(value), CAS: cas, Flags: uint32(cas) * 3, Expires: expires, Now: now})
	if it == nil {
		return false
	}
	copy(it.Value(), value)
	return true
}

func get(s *Store, key string, now uint32) (value string, cas uint64, ok bool) {
	hash := xxh3.HashString(key)
	sh := s.Shard(hash)
	sh.Lock()
	defer sh.Unlock()
	it, _ := sh.Find([]byte(key), hash, now)
	if it == nil {
		return "", 0, false
	}
	it.Use(now)
	if string(it.Key()) != key || it.Hash() != hash || it.Flags() != uint32(it.CAS())*3 {
		panic(fmt.Sprintf("%q is the item of %q", key, it.Key()))
	}
	return string(it.Value()), it.CAS(), true
}

// TestModel runs random steps against a store that is far too small for them: what it has is always what was
// stored last, and its counts are right.
func TestModel(t *testing.T) {
	evictions := int64(0)
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, err := New(int64(200_000+r.IntN(2_000_000)), 20_000)
		if err != nil {
			t.Fatal(err)
		}
		type item struct {
			value   string
			cas     uint64
			expires uint32
		}
		model := map[string]item{}
		now, cas, flushed, hits := uint32(1000), uint64(0), uint64(0), 0
		for range 20_000 {
			key := fmt.Sprint("key", r.IntN(3000))
			switch p := r.IntN(1000); {
			case p < 400:
				n := r.IntN(300)
				if r.IntN(50) == 0 {
					n = r.IntN(20_000 - len(key))
				}
				cas++
				it := item{strings.Repeat(string(rune('a'+r.IntN(26))), n), cas, 0}
				if r.IntN(4) == 0 {
					it.expires = now + uint32(r.IntN(50))
				}
				if !put(s, key, it.value, it.cas, it.expires, now) {
					t.Fatalf("seed %d: %d bytes are refused", seed, n)
				}
				model[key] = it
			case p < 950:
				want, there := model[key]
				there = there && want.cas >= flushed && (want.expires == 0 || want.expires > now)
				value, cas, ok := get(s, key, now)
				if ok && (!there || value != want.value || cas != want.cas) {
					t.Fatalf("seed %d: %s is %.20q of %d, expected %.20q of %d", seed, key, value, cas, want.value, want.cas)
				}
				if ok {
					hits++
				}
			case p < 990:
				hash := xxh3.HashString(key)
				sh := s.Shard(hash)
				sh.Lock()
				if it, _ := sh.Find([]byte(key), hash, now); it != nil {
					sh.Remove(it)
				}
				sh.Unlock()
				delete(model, key)
			case p < 999:
				now++
			default:
				flushed = cas
				s.Flush(flushed)
			}
		}
		c := s.Counts()
		items, size := int64(0), int64(0)
		for i := range s.shards {
			sh := &s.shards[i]
			for _, e := range sh.table.entries {
				if e.at != 0 {
					items, size = items+1, size+int64(len(sh.at(e.at)))
				}
			}
		}
		evictions += c[Evictions]
		if c[Items] != items || c[Bytes] != size || hits < 300 {
			t.Errorf("seed %d: %d items of %d bytes, counted %d of %d; %d hits, %d evictions", seed, items, size, c[Items], c[Bytes], hits, c[Evictions])
		}
	}
	if evictions < 1000 {
		t.Errorf("%d evictions", evictions)
	}
}

// TestUsedStays: an item that is used outlives a scan of items that are not.
func TestUsedStays(t *testing.T) {
	s, err := New(1<<20, 1000)
	if err != nil {
		t.Fatal(err)
	}
	value := strings.Repeat("v", 500)
	for n := range 300 {
		put(s, fmt.Sprint("hot", n), value, 1, 0, 1)
	}
	lost := 0
	for n := range 20_000 {
		put(s, fmt.Sprint("scan", n), value, 1, 0, 1)
		if _, _, ok := get(s, fmt.Sprint("hot", n%300), 1); !ok && n >= 300 {
			lost++
		}
	}
	if lost > 200 {
		t.Errorf("%d of 19,700 gets of used items missed", lost)
	}
	if c := s.Counts(); c[EvictedUnread] < c[Evictions]*9/10 {
		t.Errorf("%d of %d evictions were of unread items", c[EvictedUnread], c[Evictions])
	}
}

// TestNoAllocations: neither stores nor gets allocate once the table has its size.
func TestNoAllocations(t *testing.T) {
	s, err := New(1<<20, 1000)
	if err != nil {
		t.Fatal(err)
	}
	key, value := []byte("key00000"), bytes.Repeat([]byte("v"), 300)
	n := 0
	step := func() {
		n++
		for i, x := 7, n; i > 3; i, x = i-1, x/10 {
			key[i] = byte('0' + x%10)
		}
		hash := xxh3.Hash(key)
		sh := s.Shard(hash)
		sh.Lock()
		copy(sh.Insert(&Draft{Key: key, Hash: hash, Size: len(value), Now: 1}).Value(), value)
		it, _ := sh.Find(key, hash, 1)
		it.Use(1)
		sh.Unlock()
	}
	for range 20_000 {
		step()
	}
	if n := testing.AllocsPerRun(5000, step); n > 0 {
		t.Errorf("%v allocations a store and get", n)
	}
}

// TestFills: an empty store takes all items that it has room for, read or not.
func TestFills(t *testing.T) {
	s, err := New(4<<20, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3000 {
		put(s, fmt.Sprint(n), strings.Repeat("v", 1000), 1, 0, 1)
	}
	if c := s.Counts(); c[Items] < 2950 {
		t.Errorf("%d of 3000 items that fit are there", c[Items])
	}
}

func TestSizes(t *testing.T) {
	if _, err := New(1<<20, 1<<20); err == nil {
		t.Error("a store is smaller than its items")
	}
	s, err := New(64<<20, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Shards()); n != 4 {
		t.Errorf("%d shards", n)
	}
	for n := range 200 {
		if !put(s, fmt.Sprint(n), strings.Repeat("v", 1<<20-10), 1, 0, 1) {
			t.Fatal("an item of the greatest size is refused")
		}
	}
	c := s.Counts()
	if c[Items] < 30 {
		t.Errorf("%d items of 1 MB in 64", c[Items])
	}
	if put(s, "x", strings.Repeat("v", 20<<20), 1, 0, 1) {
		t.Error("an item that is larger than its ring is kept")
	}
}

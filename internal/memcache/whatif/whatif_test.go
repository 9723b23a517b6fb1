package whatif

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/memcache/slab"
	"github.com/shaledb/shale/internal/racetest"
)

// small returns an LRU with one class of 10 chunks of 100 bytes, and pages of its own as many as are free.
func small(t *testing.T, free float64) (s *lru, left *[]int32) {
	t.Helper()
	left = &[]int32{}
	s = newLRU(Defaults(), func(i int32) { *left = append(*left, i) })
	s.grow(100)
	for i := range s.classes {
		s.classes[i].page = 1000
	}
	s.free = free
	return s, left
}

func (s *lru) fill(from, to int32, now int64) {
	for i := from; i < to; i++ {
		s.set(i, 1, 100, 100, 0, now)
	}
}

func (s *lru) in(l uint8) (items []int32) {
	for i := s.classes[1].lists[l].head; i != none; i = s.nodes[i].next {
		items = append(items, i)
	}
	return items
}

func expect(t *testing.T, what string, got []int32, want ...int32) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestNewItemsAreHot(t *testing.T) {
	s, _ := small(t, 1)
	s.fill(0, 10, 1)
	// HOT may have a fifth of the bytes; what is over goes to COLD, the oldest first.
	expect(t, "HOT", s.in(hot), 9, 8)
	expect(t, "WARM", s.in(warm))
	expect(t, "COLD", s.in(cold), 7, 6, 5, 4, 3, 2, 1, 0)
}

func TestEvictsTheTailOfCold(t *testing.T) {
	s, left := small(t, 1)
	s.fill(0, 12, 1)
	expect(t, "evicted", *left, 0, 1)
	if s.evictions != 2 {
		t.Errorf("%d evictions", s.evictions)
	}
}

func TestSecondFetchRescues(t *testing.T) {
	s, left := small(t, 1)
	s.fill(0, 10, 1)
	s.get(0, 1) // the first fetch moves nothing
	s.get(1, 1)
	s.get(1, 1) // the second one moves an item of COLD to WARM
	expect(t, "WARM", s.in(warm), 1)
	s.fill(10, 12, 1)
	expect(t, "evicted", *left, 0, 2)

	s.get(11, 1)
	s.get(11, 1) // in HOT it only makes the item active
	expect(t, "HOT", s.in(hot), 11, 10)
	s.fill(12, 14, 1) // an active item at the tail of HOT goes to WARM
	expect(t, "WARM", s.in(warm), 11, 1)
}

func TestWarmHasALimit(t *testing.T) {
	s, _ := small(t, 1)
	s.fill(0, 10, 1)
	for i := range int32(6) {
		s.get(i, 1)
		s.get(i, 1)
	}
	expect(t, "WARM", s.in(warm), 5, 4, 3, 2, 1, 0)
	s.get(0, 1)
	s.get(0, 1) // active in WARM: it stays there
	s.juggle(1, 1)
	expect(t, "WARM", s.in(warm), 0, 5, 4, 3)
	expect(t, "COLD", s.in(cold), 2, 1, 7, 6)
	if s.nodes[0].flags&active != 0 {
		t.Error("an item that moved within WARM is still active")
	}
}

func TestAge(t *testing.T) {
	s, _ := small(t, 10)
	s.fill(0, 5, 1)
	s.set(5, 1, 100, 100, 0, 100)
	// The oldest item of COLD has 99 s: what was not used for 19 s leaves HOT, whatever its size.
	expect(t, "HOT", s.in(hot), 5)
}

func TestExpires(t *testing.T) {
	s, left := small(t, 1)
	s.set(0, 1, 100, 100, 5, 1)
	if !s.get(0, 4) || s.get(0, 5) {
		t.Error("an item of 4 s expired too early or too late")
	}
	expect(t, "left", *left, 0)
	s.set(1, 1, 100, 100, 5, 1)
	s.fill(2, 11, 6)
	s.fill(11, 12, 6)
	if s.evictions > 1 || s.has(1) {
		t.Errorf("%d evictions; the expired item is there: %v", s.evictions, s.has(1))
	}
}

func TestPages(t *testing.T) {
	s, _ := small(t, 2)
	s.fill(0, 30, 1)
	if c := &s.classes[1]; c.pages != 2 || c.used != 2000 || s.free != 0 {
		t.Errorf("%g pages, %d bytes used, %g free", c.pages, c.used, s.free)
	}
	s.set(50, 2, 100, 100, 0, 1) // a class has its first page in any case
	if s.classes[2].pages != 1 || !s.has(50) {
		t.Errorf("%g pages", s.classes[2].pages)
	}
	s.set(51, 2, 1100, 1100, 0, 1) // it fits into no page
	if s.has(51) {
		t.Error("an item that is larger than its class")
	}
	s.rate = 0.5 // an item stands for two
	s.fill(30, 50, 1)
	if c := &s.classes[1]; c.used != 1000 {
		t.Errorf("%d bytes used", c.used)
	}
}

// TestLinks compares the lists with their totals after random requests.
func TestLinks(t *testing.T) {
	s, _ := small(t, 3)
	r := rand.New(rand.NewPCG(1, 1))
	for now := range int64(20_000) {
		i := int32(r.IntN(100))
		switch r.IntN(10) {
		case 0, 1, 2:
			s.set(i, uint8(1+i%2), int64(50+r.IntN(50)), 100, r.Int64N(2)*(now+1+r.Int64N(100)), now)
		case 3:
			s.remove(i)
		default:
			s.get(i, now)
		}
		used := map[uint8]int64{}
		for at := range s.nodes {
			if n := &s.nodes[at]; n.list != absent {
				used[n.class] += n.chunk
			}
		}
		for class := uint8(1); class <= 2; class++ {
			var listed, bytes, total int64
			for l := uint8(hot); l < lists; l++ {
				before := int32(none)
				for i := s.classes[class].lists[l].head; i != none; i = s.nodes[i].next {
					if s.nodes[i].prev != before || s.nodes[i].list != l {
						t.Fatalf("request %d: item %d is linked wrongly", now, i)
					}
					before = i
					listed += s.nodes[i].chunk
					bytes += s.nodes[i].bytes
				}
				if s.classes[class].lists[l].tail != before {
					t.Fatalf("request %d: wrong tail", now)
				}
				total += s.classes[class].lists[l].bytes
			}
			if listed != used[class] || listed != s.classes[class].used || bytes != total {
				t.Fatalf("request %d: %d bytes in lists, %d in items, %d counted; %d and %d requested", now, listed, used[class], s.classes[class].used, bytes, total)
			}
		}
	}
}

func newModel(t testing.TB, memory int64, keys int) *Model {
	t.Helper()
	m, err := New(Config{Factors: []float64{0.5, 1, 2}, Memory: memory, Table: slab.Default().Table(), CAS: true, Evicted: true, Limits: Defaults(), Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	m.Begin()
	return m
}

func (m *Model) say(lines string) {
	for line := range strings.Lines(lines) {
		m.Line([]byte(strings.TrimSpace(line)))
	}
}

func TestStoreLooksFirst(t *testing.T) {
	m := newModel(t, 64<<20, 1000)
	m.say(`ts=10.1 gid=1 type=item_get key=a status=not_found clsid=0 cfd=25 size=0
		ts=10.2 gid=2 type=item_get key=a status=not_found clsid=0 cfd=25 size=0
		ts=10.3 gid=3 type=item_store key=a status=stored cmd=set ttl=0 clsid=1 cfd=25 size=3
		ts=10.4 gid=4 type=item_get key=a status=found clsid=1 cfd=26 size=3
		ts=10.5 gid=5 type=item_get key=a status=found clsid=1 cfd=26 size=3
		ts=10.6 gid=6 type=item_store key=a status=not_stored cmd=add ttl=0 clsid=1 cfd=26 size=3
		skipped=7
		nonsense`)
	r := m.Result()
	if r.Gets != 3 || r.Hits != 2 || r.Skipped != 7 || r.Wrong != 1 || r.Lines != 8 {
		t.Errorf("%+v", r)
	}
	for _, s := range r.Sizes {
		if math.Abs(s.HitRatio-2.0/3) > 1e-9 || s.Filled {
			t.Errorf("%+v", s)
		}
	}
}

func TestKeysOfBefore(t *testing.T) {
	m := newModel(t, 64<<20, 1000)
	m.say(`ts=10.1 gid=1 type=item_get key=a status=found clsid=1 cfd=25 size=3
		ts=10.2 gid=2 type=item_get key=b status=not_found clsid=0 cfd=25 size=0`)
	// Half of the memory may have had neither, the same has what the server has, and twice may have had both.
	r := m.Result()
	for i, want := range [][2]float64{{0, 1}, {0.5, 0.5}, {0.5, 1}} {
		if s := r.Sizes[i]; s.HitRatio != want[0] || s.AtMost != want[1] {
			t.Errorf("%+v, want %v", s, want)
		}
	}
}

func TestUpdatesAndFills(t *testing.T) {
	m := newModel(t, 64<<20, 1000)
	m.say(`ts=10.1 gid=1 type=item_store key=a status=stored cmd=set ttl=0 clsid=1 cfd=25 size=3
		ts=10.2 gid=2 type=item_get key=a status=found clsid=1 cfd=25 size=3
		ts=10.3 gid=3 type=item_get key=b status=found clsid=1 cfd=25 size=3`)
	fetches := func(list, want uint8) {
		t.Helper()
		m.Flush()
		for _, s := range m.sizes {
			if n := s.nodes[0]; n.list != list || n.flags != want {
				t.Errorf("list %d, flags %d, want %d and %d", n.list, n.flags, list, want)
			}
		}
	}
	fetches(cold, fetched) // both are more than the limit of HOT
	// The server lost it, and a client stores it again: where it is there, the client would not have.
	m.say(`ts=10.4 gid=4 type=item_get key=a status=not_found clsid=1 cfd=25 size=0
		ts=10.5 gid=5 type=item_store key=a status=stored cmd=set ttl=0 clsid=1 cfd=26 size=3`)
	fetches(warm, fetched)
	// It is stored without a get: an update, which is a new item everywhere.
	m.say("ts=10.6 gid=6 type=item_store key=a status=stored cmd=set ttl=0 clsid=1 cfd=26 size=3")
	fetches(cold, 0)
	m.say("ts=10.7 gid=7 type=deleted key=a cmd=delete clsid=1 size=3")
	for _, s := range m.sizes {
		if s.has(0) {
			t.Error("a deleted item is there")
		}
	}
}

// TestSample compares a sample with all keys.
func TestSample(t *testing.T) {
	all, sample := newModel(t, 8<<20, 1_000_000), newModel(t, 8<<20, 5_000)
	r := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(r, 1.05, 10, 99_999)
	for i := range 100_000 {
		key, ts := zipf.Uint64(), 10+i/5_000
		for _, m := range []*Model{all, sample} {
			m.say(fmt.Sprintf("ts=%d.1 gid=1 type=item_get key=k%d status=not_found clsid=0 cfd=1 size=0\nts=%d.2 gid=2 type=item_store key=k%d status=stored cmd=set ttl=0 clsid=7 cfd=2 size=300", ts, key, ts, key))
		}
		if n := len(sample.entries); n > 5_000 {
			t.Fatalf("%d keys", n)
		}
	}
	a, b := all.Result(), sample.Result()
	if a.Share != 1 || b.Share > 0.9 || b.Keys > 5_000 {
		t.Errorf("%g and %g of the keys, %d", a.Share, b.Share, b.Keys)
	}
	for i := range a.Sizes {
		t.Logf("%+v %+v", a.Sizes[i], b.Sizes[i])
		if d := a.Sizes[i].HitRatio - b.Sizes[i].HitRatio; math.Abs(d) > 0.03 {
			t.Errorf("%g times: %g of all keys, %g of a sample", a.Sizes[i].Factor, a.Sizes[i].HitRatio, b.Sizes[i].HitRatio)
		}
	}
}

// TestSampleOfClasses: four classes need the last pages at the same time, and one of them is small. Which
// class has the page does not depend on which keys are in the sample.
func TestSampleOfClasses(t *testing.T) {
	racetest.SkipSerial(t) // takes minutes there
	sizes := []struct{ class, value int }{{5, 150}, {10, 600}, {14, 1500}, {18, 4000}}
	all := newModel(t, 16<<20, 1_000_000)
	samples := make([]*Model, 8)
	for i := range samples {
		samples[i] = newModel(t, 16<<20, 6_000)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 50_000 {
		key := i/20 + int(math.Abs(r.NormFloat64())*4000)
		if r.IntN(2) == 0 {
			key = 1_000_000 + int(r.ExpFloat64()*6_000)
		}
		s := sizes[key*7919%4]
		lines := fmt.Sprintf("ts=%d.1 gid=1 type=item_get key=key:%d status=not_found clsid=0 cfd=1 size=0\nts=%[1]d.2 gid=2 type=item_store key=key:%[2]d status=stored cmd=set ttl=0 clsid=%d cfd=2 size=%d", 10+i/10_000, key, s.class, s.value)
		for _, m := range append(samples, all) {
			m.say(lines)
		}
	}
	want := all.Result()
	for _, m := range samples {
		for i, got := range m.Result().Sizes {
			if d := got.HitRatio - want.Sizes[i].HitRatio; math.Abs(d) > 0.03 {
				t.Errorf("%g times the memory, %.0f %% of the keys: %+.1f points off", got.Factor, 100*m.rate, 100*d)
			}
			for c := range m.sizes[i].classes {
				if got, want := m.sizes[i].classes[c].pages, all.sizes[i].classes[c].pages; math.Abs(got-want) >= 0.5 {
					t.Errorf("%g times the memory, class %d: %g pages, want %g", m.config.Factors[i], c, got, want)
				}
			}
		}
	}
}

// TestShares compares the shares of classes with what is counted one by one, while the sample shrinks.
func TestShares(t *testing.T) {
	s := newShares()
	r := rand.New(rand.NewPCG(5, 6))
	threshold, hashes := uint64(1)<<63, [3][]uint64{}
	for i := range 20_000 {
		class, hash := r.IntN(3), r.Uint64()>>1
		s.count(hash, uint8(class), 100)
		s.count(hash, uint8(class), 100) // it is not new
		hashes[class] = append(hashes[class], hash)
		if i%1000 == 999 {
			s.shrink()
			threshold = thinner(threshold)
		}
	}
	for class, all := range hashes {
		in := 0
		for _, h := range all {
			if h < threshold {
				in++
			}
		}
		// Two keys may have the same bit.
		if got, want := s.of(uint8(class), 1), float64(in)/float64(len(all)); math.Abs(got/want-1) > 0.02 || math.Abs(s.all[class]/float64(100*len(all))-1) > 0.002 {
			t.Errorf("class %d: a share of %g, want %g; %g bytes of %d keys", class, got, want, s.all[class], len(all))
		}
	}
	if got := s.of(9, 0.25); got != 0.25 {
		t.Errorf("a class without keys: %g", got)
	}
	for range 2 * steps {
		s.shrink()
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"ts=1795869310.65821 gid=2 type=item_get key=a status=not_found clsid=0 cfd=25 size=0",
		"ts=1795869310.66867 gid=26 type=item_store key=z%20 status=stored cmd=set ttl=4294967235 clsid=1 cfd=25 size=1",
		"ts=1.5 gid=23 type=item_store key=big status=too_large cmd=set ttl=0 clsid=25 cfd=1 size=0",
		"ts=1.5 gid=23 type=deleted key=big cmd=delete clsid=25 size=0", "ts=1.5 gid=1 type=eviction key=k fetch=no ttl=-1 la=3 clsid=1 size=3",
		"skipped=12", "[skipped=12]", "ts=", "ts=1.-1 type=item_get key=a", "ts=1.1 type=item_get key=", "ts=1.1 type=item_get key=%%% size=-1", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, err := Parse([]byte(line))
		if err == nil && (e.Class < 0 || e.Class > 255 || e.Size < 0 || e.Size > 1<<30 || e.Micros < 0 || e.Lines < 0 || e.Kind != Other && e.Kind != Skipped && len(e.Key) == 0) {
			t.Errorf("%q: %+v", line, e)
		}
		m := newModel(t, 1<<20, 10)
		for range 3 {
			m.Line([]byte(line))
		}
		for _, s := range m.Result().Sizes {
			if !(s.HitRatio >= 0 && s.HitRatio <= 1 && s.AtMost >= s.HitRatio && s.AtMost <= 1) {
				t.Errorf("%q: %+v", line, s)
			}
		}
	})
}

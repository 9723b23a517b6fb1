package known

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

func randomKeys(n int, seed uint64) []model.Key {
	r := rand.New(rand.NewPCG(seed, 1))
	keys := make([]model.Key, n)
	for i := range keys {
		keys[i] = model.Key{Hi: r.Uint64(), Lo: r.Uint64()}
	}
	return keys
}

func mustKnown(t testing.TB, bytes int64) *Set {
	t.Helper()
	k, err := New(bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func TestKnownGrowsAndFindsEverything(t *testing.T) {
	racetest.SkipSerial(t)
	k := mustKnown(t, 1<<30)
	const n = 3_000_000
	keys := randomKeys(n, 7)
	for i, key := range keys {
		if k.insert(uint16(i%3), model.Metrics, key) != Added {
			t.Fatalf("key %d: not new", i)
		}
	}
	if got := k.count.Load(); got != n {
		t.Fatalf("count %d, want %d", got, n)
	}
	if perKey := float64(k.Bytes()) / n; perKey > 18 {
		t.Errorf("%.1f bytes a key right after growing", perKey)
	}
	var l Lookup
	for tenant := range uint16(3) {
		for from := 0; from < n; from += 2000 {
			var mine []model.Key
			for i := from; i < from+2000; i++ {
				if uint16(i%3) == tenant {
					mine = append(mine, keys[i])
				}
			}
			if miss := k.Missing(&l, tenant, model.Metrics, mine, nil); len(miss) != 0 {
				t.Fatalf("tenant %d: %d keys from %d on are missing", tenant, len(miss), from)
			}
		}
	}
	for i := range uint16(3) {
		if got := k.tenants[i].Load(); got != n/3 {
			t.Errorf("tenant %d: %d series, want %d", i, got, n/3)
		}
	}
	// Another tenant's, another signal's and other keys are new, every one of them.
	fresh := randomKeys(2000, 8)
	if miss := k.Missing(&l, 0, model.Metrics, fresh, nil); len(miss) != len(fresh) {
		t.Errorf("%d of %d new keys are known", len(fresh)-len(miss), len(fresh))
	}
	if miss := k.Missing(&l, 1, model.Metrics, keys[:1], nil); len(miss) != 1 {
		t.Error("another tenant's series is known")
	}
	if miss := k.Missing(&l, 0, model.Logs, keys[:1], nil); len(miss) != 1 {
		t.Error("another signal's series is known")
	}
	if k.insert(0, model.Metrics, keys[0]) != AlreadyKnown {
		t.Error("a known key is new")
	}
}

// The fingerprint that a slot and its place give back must be the one that was stored, for any size of table.
func TestKnownFingerprintFromSlot(t *testing.T) {
	for _, groups := range []uint64{minGroups, 5121, 99_991} {
		table, err := newTable(groups)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(groups, 2))
		stored := make(map[uint64]bool)
		for range int(groups) * slotsPerGroup * loadPercent / 100 {
			fp := r.Uint64()
			switch r.IntN(50) {
			case 0:
				fp >>= 50 // near the first home
			case 1:
				fp |= math.MaxUint64 - 0xfff // near the last
			}
			if fp&checkMask == 0 || table.find(fp) >= 0 || !table.insert(fp, 3, 0) {
				continue
			}
			stored[fp] = true
		}
		for i, s := range table.slots {
			if s != 0 && !stored[table.fingerprint(i)] {
				t.Fatalf("%d groups: slot %d gives back %016x, which was never stored", groups, i, table.fingerprint(i))
			}
		}
		freeArena(table.arena)
	}
}

func TestKnownForgetsIdle(t *testing.T) {
	racetest.SkipSerial(t)
	k := mustKnown(t, 64<<20)
	keys := randomKeys(10_000, 3)
	for i, key := range keys {
		k.insert(uint16(i&1), model.Metrics, key)
	}
	var l Lookup
	for range 300 { // further than ticks can count
		if err := k.Advance(2); err != nil {
			t.Fatal(err)
		}
		var busy []model.Key
		for i := 0; i < len(keys); i += 4 {
			busy = append(busy, keys[i])
		}
		if miss := k.Missing(&l, 0, model.Metrics, busy, nil); len(miss) != 0 {
			t.Fatalf("%d busy keys were forgotten", len(miss))
		}
	}
	if got := k.count.Load(); got != 2500 {
		t.Errorf("%d series left, want 2500", got)
	}
	if a, b := k.tenants[0].Load(), k.tenants[1].Load(); a != 2500 || b != 0 {
		t.Errorf("tenants have %d and %d series, want 2500 and 0", a, b)
	}
}

// What a sweep has passed over as idle, and a push has been told is known before the sweep was over, stays
// known.
func TestKnownSweepKeepsWhatIsMarkedMeanwhile(t *testing.T) {
	k := mustKnown(t, 8<<20)
	key := randomKeys(1, 1)[0]
	k.insert(0, model.Metrics, key)
	const now = 9
	k.tick.Store(now)
	_, shard := k.fingerprint(0, model.Metrics, key)
	s := &k.shards[shard]
	var l Lookup
	s.writer.Lock()
	err := s.rebuild(k, s.table.groups, func(tick uint8) fate {
		if tick == now {
			return kept
		}
		if miss := k.Missing(&l, 0, model.Metrics, []model.Key{key}, nil); len(miss) != 0 {
			t.Error("the key is new")
		}
		return left // it was idle when the sweep looked
	})
	s.writer.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if !k.Has(0, model.Metrics, key) {
		t.Error("the key was called known and is not known any more")
	}
}

// TestSmallSet: sets with a small share of the memory keep to it, down to the smallest table.
func TestSmallSet(t *testing.T) {
	for bytes := int64(16 << 10); bytes <= 16<<20; bytes *= 2 {
		k := mustKnown(t, bytes)
		keys := randomKeys(int(k.Cap()/20*19), 1) // of full shards, one may be fuller
		var l Lookup
		for i, o := range k.InsertAll(&l, 1, model.Metrics, keys) {
			if o != Added {
				t.Fatalf("%d bytes: key %d of %d: %v", bytes, i, len(keys), o)
			}
		}
		if got, least := k.Bytes(), int64(minGroups+maxDistance)*groupBytes; got > max(bytes, least) {
			t.Errorf("%d of %d bytes, and the smallest table has %d", got, bytes, least)
		}
	}
}

// A mark that is set while a sweep copies a series that the next sweep would drop is not lost: the series is
// active.
func TestKnownSweepKeepsMarksOfRetired(t *testing.T) {
	k := mustKnown(t, 8<<20)
	const maxIdle = 7
	key := randomKeys(1, 1)[0]
	k.insert(0, model.Metrics, key)
	k.Retire(0, model.Metrics, key, 0, maxIdle)
	_, shard := k.fingerprint(0, model.Metrics, key)
	now := uint8(k.tick.Load())
	var l Lookup
	fateOf := sweeping(now, maxIdle, maxIdle)
	s := &k.shards[shard]
	marked := false
	s.writer.Lock()
	err := s.rebuild(k, s.table.groups, func(tick uint8) fate {
		f := fateOf(tick)
		if f == watched && !marked { // the slot was read, and is copied next
			marked = true
			k.Missing(&l, 0, model.Metrics, []model.Key{key}, nil)
		}
		return f
	})
	s.writer.Unlock()
	if err != nil || !marked {
		t.Fatal(marked, err)
	}
	for range 3 {
		if err := k.SweepRetired(maxIdle); err != nil {
			t.Error(err)
		}
	}
	if !k.Has(0, model.Metrics, key) {
		t.Error("the series is active and is not known any more")
	}
}

// Retired series leave with the second sweep, be it one of a tick, and only those that have not come back.
// Shards without any are left alone. The counts stay those of the slots.
func TestKnownSweepRetired(t *testing.T) {
	const maxIdle = 7
	r := rand.New(rand.NewPCG(4, 4))
	for round := range 20 {
		k := mustKnown(t, 8<<20)
		keys := randomKeys(4000, uint64(round))
		left := map[model.Key]int{} // sweeps until it leaves
		for i, key := range keys {
			k.insert(uint16(i%3), model.Metrics, key)
		}
		var l Lookup
		for range 6 {
			for range r.IntN(200) {
				i := r.IntN(len(keys))
				if _, retired := left[keys[i]]; !retired && k.Has(uint16(i%3), model.Metrics, keys[i]) {
					k.Retire(uint16(i%3), model.Metrics, keys[i], 0, maxIdle)
					left[keys[i]] = 2
				}
			}
			for range r.IntN(40) {
				i := r.IntN(len(keys))
				if len(k.Missing(&l, uint16(i%3), model.Metrics, keys[i:i+1], nil)) == 0 {
					delete(left, keys[i])
				}
			}
			before := make([]*table, len(k.shards))
			dropped, may := make([]bool, len(k.shards)), make([]bool, len(k.shards))
			for i := range k.shards {
				before[i] = k.shards[i].table
			}
			for i, key := range keys {
				_, shard := k.fingerprint(uint16(i%3), model.Metrics, key)
				if n := left[key]; n > 0 {
					left[key]--
					dropped[shard], may[shard] = dropped[shard] || n == 1, may[shard] || n == 2
				}
			}
			tick := r.IntN(3) == 0
			var err error
			if tick {
				err = k.AdvanceFull(maxIdle, maxIdle)
				for i, key := range keys { // the others are active
					if _, retired := left[key]; !retired {
						k.Missing(&l, uint16(i%3), model.Metrics, []model.Key{key}, nil)
					}
				}
			} else {
				err = k.SweepRetired(maxIdle)
			}
			if err != nil {
				t.Fatal(err)
			}
			tenants := [3]int64{}
			for i, key := range keys {
				n, retired := left[key]
				if has := k.Has(uint16(i%3), model.Metrics, key); has != (!retired || n > 0) {
					t.Fatalf("round %d: a key that leaves after %d more sweeps (%t) is known: %t", round, n, retired, has)
				} else if has {
					tenants[i%3]++
				}
			}
			for i := range k.shards {
				s := &k.shards[i]
				if got := s.table != before[i]; got != dropped[i] {
					t.Fatalf("round %d: shard %d was copied: %t", round, i, got)
				}
				if !tick && s.mayRetire.Load() != may[i] {
					t.Fatalf("round %d: shard %d has retired series: %t", round, i, s.mayRetire.Load())
				}
			}
			if got := [3]int64{k.OfTenant(0), k.OfTenant(1), k.OfTenant(2)}; got != tenants || k.Len() != tenants[0]+tenants[1]+tenants[2] {
				t.Fatalf("round %d: %d series, %d of the tenants, want %d", round, k.Len(), got, tenants)
			}
		}
	}
}

func TestKnownFull(t *testing.T) {
	racetest.SkipSerial(t)
	k := mustKnown(t, 8<<20)
	for _, key := range randomKeys(int(k.maxKeys)+1000, 4) {
		k.insert(0, model.Metrics, key)
	}
	if k.count.Load() != k.maxKeys {
		t.Errorf("%d keys, and the limit is %d", k.count.Load(), k.maxKeys)
	}
	if k.Bytes() > 8<<20 {
		t.Errorf("%d bytes, and the limit is %d", k.Bytes(), 8<<20)
	}
	if got := k.insert(0, model.Metrics, randomKeys(1, 5)[0]); got != NoRoom {
		t.Errorf("a full set took a key: %d", got)
	}
	if !k.NearlyFull() {
		t.Error("a full set does not know it")
	}
}

func TestKnownConcurrent(t *testing.T) {
	k := mustKnown(t, 256<<20)
	keys := randomKeys(100_000, 5)
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, key := range keys {
			k.insert(0, model.Metrics, key)
		}
	})
	for reader := range 2 {
		wg.Go(func() {
			var l Lookup
			known := 0
			for known < len(keys) { // what was known once stays known
				miss := k.Missing(&l, 0, model.Metrics, keys, nil)
				if got := len(keys) - len(miss); got < known {
					t.Errorf("%d keys were known and now %d are", known, got)
					return
				} else {
					known = got
				}
				if reader == 0 && known%8 == 0 { // one goroutine at a time may advance
					if err := k.Advance(200); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkKnownHit(b *testing.B) {
	k := mustKnown(b, 1<<30)
	const n, batch = 10_000_000, 2000
	keys := randomKeys(n, 6)
	for _, key := range keys {
		k.insert(0, model.Metrics, key)
	}
	var l Lookup
	var dst []uint32
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		from := i * batch % n
		dst = k.Missing(&l, 0, model.Metrics, keys[from:from+batch], dst[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/key")
}

// insert adds a key.
func (k *Set) insert(tenant uint16, signal model.Signal, key model.Key) Outcome {
	var l Lookup
	return k.InsertAll(&l, tenant, signal, []model.Key{key})[0]
}

func TestKnownInsertAll(t *testing.T) {
	k, one := mustKnown(t, 64<<20), mustKnown(t, 64<<20)
	keys := randomKeys(200_000, 9)
	if err := k.Reserve(int64(len(keys))); err != nil {
		t.Fatal(err)
	}
	size := k.Bytes()
	var l Lookup
	for i := 0; i < len(keys); i += 10_000 {
		k.InsertAll(&l, 3, model.Metrics, keys[i:min(i+15_000, len(keys))]) // some twice
	}
	for _, key := range keys {
		one.insert(3, model.Metrics, key)
	}
	if k.Bytes() != size {
		t.Errorf("the set grew from %d to %d bytes", size, k.Bytes())
	}
	if got := k.Missing(&l, 3, model.Metrics, keys, nil); len(got) > 0 {
		t.Errorf("%d keys are missing", len(got))
	}
	if a, b := k.count.Load(), one.count.Load(); a != b || k.tenants[3].Load() != int32(a) {
		t.Errorf("%d keys, and one by one %d", a, b)
	}
	if err := k.Reserve(1 << 40); err != nil || k.Bytes() > 64<<20 {
		t.Errorf("%d bytes reserved, %v", k.Bytes(), err)
	}
}

// TestKnownClosesWhileKeysAreRead: a partition closes while its series are counted.
func TestKnownClosesWhileKeysAreRead(t *testing.T) {
	keys := randomKeys(20_000, 3)
	for range 20 {
		k, err := New(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		var l Lookup
		k.InsertAll(&l, 1, model.Metrics, keys)
		began, n := make(chan struct{}), 0
		var begin sync.Once
		var reading sync.WaitGroup
		reading.Go(func() {
			for range 20 {
				k.EachKey([]func(uint64){1: func(uint64) { n++; begin.Do(func() { close(began) }) }})
			}
		})
		<-began
		k.Close()
		reading.Wait()
		if n == 0 || n > 20*2*len(keys) || k.Has(1, model.Metrics, keys[0]) {
			t.Fatalf("read %d keys", n)
		}
	}
}

// TestKnownEachKey: one pass reads the keys of several tenants, and none of the others.
func TestKnownEachKey(t *testing.T) {
	k := mustKnown(t, 1<<24)
	keys := randomKeys(4000, 5)
	var l Lookup
	for i := range 4 {
		k.InsertAll(&l, uint16(i), model.Metrics, keys[1000*i:1000*(i+1)])
	}
	read := [3]map[uint64]bool{1: {}, 2: {}}
	k.EachKey([]func(uint64){1: func(lo uint64) { read[1][lo] = true }, 2: func(lo uint64) { read[2][lo] = true }})
	for i, key := range keys {
		if of := i / 1000; of == 1 || of == 2 {
			if !read[of][key.Lo] {
				t.Fatalf("key %d is not read", i)
			}
		}
	}
	if a, b := len(read[1]), len(read[2]); a != 2000 || b != 2000 {
		t.Errorf("read %d and %d keys", a, b)
	}
}

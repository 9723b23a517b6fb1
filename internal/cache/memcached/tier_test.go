package memcached

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/cachetest"
	"github.com/shaledb/shale/internal/memcache"
	"github.com/shaledb/shale/internal/memcache/memcachetest"
	"github.com/shaledb/shale/internal/memcache/meta"
	"github.com/shaledb/shale/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// threeServers runs three servers with extstore.
func threeServers(t testing.TB) (all []*memcachetest.Server, addrs []string) {
	t.Helper()
	for range 3 {
		s := memcachetest.Start(t, memcachetest.Extstore(t.TempDir(), 64)...)
		all, addrs = append(all, s), append(addrs, s.Addr)
	}
	return all, addrs
}

func testOptions(addrs ...string) Options {
	return Options{
		Client: memcache.Options{Servers: addrs, MaxWait: 5 * time.Second}, Prefix: "test", Seed: 5, QueueBytes: 8 << 20, TTL: time.Hour, Fresh: true,
		Registerer: prometheus.NewRegistry(),
	}
}

func open(t testing.TB, o Options) *Tier {
	t.Helper()
	tier, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return tier
}

func openFor(t testing.TB, o Options) *Tier {
	tier := open(t, o)
	t.Cleanup(func() { _ = tier.Close() })
	return tier
}

func key(n int) cache.Key {
	return cache.Key{Object: "data/0123456789abcdef.part", Kind: cache.Stored, Off: int64(n), Digest: cache.DigestOf([]byte("v"))}
}

func value(n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "value %d,", n), 200) }

func (t *Tier) get(n int) cache.Found {
	return t.Get(context.Background(), key(n), cache.Asker{Query: 1})
}

// put stores a value and waits until it is done with it.
func (t *Tier) put(tb testing.TB, n int) {
	tb.Helper()
	t.Offer(key(n), cache.Asker{Query: 1}, value(n))
	t.drain(tb)
}

func (t *Tier) drain(tb testing.TB) {
	tb.Helper()
	for end := time.Now().Add(20 * time.Second); t.queued.Load() > 0; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			tb.Fatalf("%d bytes still wait to be stored", t.queued.Load())
		}
	}
}

func TestContract(t *testing.T) {
	n := 0
	_, addrs := threeServers(t)
	cachetest.RunSecondary(t, func(t *testing.T) cache.Secondary {
		o := testOptions(addrs...)
		n++
		o.Prefix = fmt.Sprint("contract", n)
		return open(t, o)
	})
}

// TestFleet: a page that one process has stored is found by another with the same bucket, and by none with
// another bucket or prefix.
func TestFleet(t *testing.T) {
	_, addrs := threeServers(t)
	one := openFor(t, testOptions(addrs...))
	for n := range 50 {
		one.put(t, n)
	}
	two := openFor(t, testOptions(addrs...))
	other := testOptions(addrs...)
	other.Seed = 6
	strangers := []*Tier{openFor(t, other)}
	other = testOptions(addrs...)
	other.Prefix = "elsewhere"
	strangers = append(strangers, openFor(t, other))
	for n := range 50 {
		if f := two.get(n); f.From != cache.Shared || !bytes.Equal(f.Value, value(n)) {
			t.Errorf("value %d: %q from %d", n, f.Value, f.From)
		}
		for _, s := range strangers {
			if f := s.get(n); f.From != cache.Nowhere {
				t.Errorf("value %d of another bucket is found", n)
			}
		}
	}
	if n := testutil.ToFloat64(two.m.hits); n != 50 || testutil.ToFloat64(one.m.stored) != 50 {
		t.Errorf("%.0f hits", n)
	}
	// A name that is too long for a key is hashed.
	long := cache.Key{Object: "data/" + strings.Repeat("x", 300), Kind: cache.Stored}
	one.Offer(long, cache.Asker{}, []byte("long"))
	one.drain(t)
	if f := two.Get(context.Background(), long, cache.Asker{}); string(f.Value) != "long" {
		t.Errorf("got %q", f.Value)
	}
}

// TestSingleFlight: of many processes that miss a page at once, one brings it and the others wait for it.
func TestSingleFlight(t *testing.T) {
	s := memcachetest.Start(t)
	var reads atomic.Int64
	var all sync.WaitGroup
	for i := range 10 {
		tier := openFor(t, testOptions(s.Addr))
		tier.get(1000 + i) // dials
		all.Go(func() {
			for n := range 20 {
				f := tier.get(n)
				if f.From == cache.Nowhere {
					reads.Add(1)
					time.Sleep(20 * time.Millisecond) // the bucket
					tier.Offer(key(n), cache.Asker{}, value(n))
				} else if !bytes.Equal(f.Value, value(n)) {
					t.Errorf("value %d: %q", n, f.Value)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d reads of the bucket for 20 pages that 10 processes want at once", reads.Load())
	if n := reads.Load(); n > 24 {
		t.Errorf("%d reads of the bucket, expected about 20", n)
	}
}

// TestClaimIsGivenUp: a claim that leads to no value costs a reader a bounded time, and ends.
func TestClaimIsGivenUp(t *testing.T) {
	s := memcachetest.Start(t)
	o := testOptions(s.Addr)
	o.Client.Bound = func() time.Duration { return 30 * time.Millisecond }
	tier := openFor(t, o)
	tier.get(1) // claims it
	begun := time.Now()
	if f := tier.get(1); f.From != cache.Nowhere {
		t.Errorf("got %q", f.Value)
	}
	if took := time.Since(begun); took > time.Second || testutil.ToFloat64(tier.m.waits) != 1 {
		t.Errorf("a reader waits %v", took)
	}
	// A value that the server refuses ends the claim.
	tier.Offer(key(2), cache.Asker{}, make([]byte, 2<<20))
	tier.get(3)
	tier.Offer(key(3), cache.Asker{}, make([]byte, 1<<20))
	tier.drain(t)
	if tier.get(3); testutil.ToFloat64(tier.m.waits) != 1 {
		t.Error("a claim is left for a value that is too large")
	}
	tier.Offer(key(4), cache.Asker{}, make([]byte, MaxValue+1))
	if n := testutil.ToFloat64(tier.m.refusals[refusedSize]); n != 3 {
		t.Errorf("%.0f values are too large, expected 3", n)
	}
}

// TestLies: whatever a server returns, the tier returns the right value or none.
func TestLies(t *testing.T) {
	s := memcachetest.Start(t)
	p := memcachetest.NewProxy(t, s.Addr)
	tier := openFor(t, testOptions(s.Addr))
	for n := range 40 {
		tier.put(t, n)
	}
	o := testOptions(p.Addr)
	o.Client.MaxWait = 200 * time.Millisecond
	victim := openFor(t, o)
	victim.get(0)
	p.Inject(memcachetest.Faults{Flip: 0.0005})
	hits := 0
	for round := range 10 {
		keys, found := make([]cache.Key, 40), make([]cache.Found, 40)
		for n := range keys {
			keys[n] = key(n)
		}
		victim.GetMany(context.Background(), keys, cache.Asker{}, found)
		for n, f := range found {
			if f.From == cache.Nowhere {
				continue
			}
			if hits++; !bytes.Equal(f.Value, value(n)) {
				t.Fatalf("round %d: value %d is wrong", round, n)
			}
		}
	}
	if bad := testutil.ToFloat64(victim.m.bad); bad == 0 {
		t.Errorf("no damaged values among 400, %d hits", hits)
	}
	// A server that gives the value of another key: its frame says so.
	name := tier.appendName(nil, key(1))
	frame := appendFrame(nil, name, value(1))
	for _, c := range []struct {
		frame, name []byte
		want        error
	}{
		{frame, tier.appendName(nil, key(2)), errName}, {frame[:len(frame)-1], name, errChecksum}, {frame[:5], name, errChecksum}, {nil, name, errChecksum},
		{appendFrame(nil, name, nil), name, errName}, {append(frame[:len(frame):len(frame)], 0), name, errChecksum},
	} {
		if v, err := unframe(c.frame, c.name); !errors.Is(err, c.want) {
			t.Errorf("got %d bytes, %v; want %v", len(v), err, c.want)
		}
	}
}

func FuzzUnframe(f *testing.F) {
	f.Add(appendFrame(nil, []byte("name"), []byte("value")), []byte("name"))
	f.Add(appendFrame(nil, []byte("name"), nil), []byte("nam"))
	f.Fuzz(func(t *testing.T, frame, name []byte) {
		value, err := unframe(frame, name)
		if err != nil {
			return
		}
		if !bytes.Equal(appendFrame(nil, name, value), frame) {
			t.Error("a frame that is taken is not the one that would be made")
		}
	})
}

// TestBounds: what waits to be stored stays within its bound, and what is dropped is counted.
func TestBounds(t *testing.T) {
	s := memcachetest.Start(t)
	p := memcachetest.NewProxy(t, s.Addr)
	o := testOptions(p.Addr)
	o.QueueBytes = 100_000
	tier := openFor(t, o)
	tier.put(t, 0)
	p.Inject(memcachetest.Faults{Delay: 50 * time.Millisecond})
	for n := range 1000 {
		if tier.Offer(key(n), cache.Asker{}, value(n)); tier.queued.Load() > o.QueueBytes {
			t.Fatalf("%d bytes wait, of at most %d", tier.queued.Load(), o.QueueBytes)
		}
	}
	if n := testutil.ToFloat64(tier.m.refusals[refusedQueue]); n < 800 {
		t.Errorf("%.0f of 1000 values were dropped", n)
	}
	p.Inject(memcachetest.Faults{})
	tier.drain(t)
	// A server without memory for a value says so.
	full := memcachetest.Start(t, "-m", "8", "-M")
	o = testOptions(full.Addr)
	stuffed := openFor(t, o)
	for n := range 4000 {
		stuffed.Offer(key(n), cache.Asker{}, bytes.Repeat(value(n), 4))
		if n%20 == 0 {
			stuffed.drain(t)
		}
	}
	stuffed.drain(t)
	if testutil.ToFloat64(stuffed.m.refusals[refusedServer]) == 0 || stuffed.Servers()[0].State != memcache.Closed {
		t.Errorf("a full server: %.0f refused, %v", testutil.ToFloat64(stuffed.m.refusals[refusedServer]), stuffed.Servers())
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"space": func(o *Options) { o.Prefix = "a b" }, "long": func(o *Options) { o.Prefix = strings.Repeat("a", 200) }, "hash": func(o *Options) { o.Client.Hash = "crc" },
		"server": func(o *Options) { o.Client.Servers = []string{"x"} }, "ttl": func(o *Options) { o.TTL = mostTTL + 1 },
	} {
		o := testOptions("127.0.0.1:1")
		change(&o)
		if _, err := Open(o); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if !meta.ValidKey((&Tier{prefix: strings.Repeat("p", mostPrefix)}).keyOf(make([]byte, 1000))) {
		t.Error("a hashed key is not valid")
	}
}

// TestHitAllocates: a hit allocates its value and nothing else.
func TestHitAllocates(t *testing.T) {
	tier := openFor(t, testOptions(memcachetest.Start(t).Addr))
	tier.put(t, 1)
	k := key(1)
	alloctest.AtMost(t, 1, 200, func() {
		if tier.Get(context.Background(), k, cache.Asker{}).From == cache.Nowhere {
			t.Fatal("a miss")
		}
	})
}

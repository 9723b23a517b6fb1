package known

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

// testClock is a clock that only the test moves. Its wall clock is wrong by off.
type testClock struct{ now, off atomic.Int64 }

func (c *testClock) read() (wall, steady int64) {
	now := c.now.Load()
	return now + c.off.Load(), now
}

func newAnnouncer(t testing.TB, bytes int64, partitions uint32) (*Announcer, *testClock) {
	t.Helper()
	c := new(testClock)
	c.now.Store(1_800_000_000e9)
	a, err := NewAnnouncer(AnnouncerOptions{
		Bytes: bytes, Topic: Topic{1, partitions}, Refresh: time.Hour, Now: c.read, Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a, c
}

func batchOf(tenant string, s model.Signal, keys []model.Key) *model.Batch {
	return &model.Batch{Tenant: tenant, Signal: s, Keys: keys}
}

// unannounced returns the indexes of the keys whose labels must travel.
func (a *Announcer) unannounced(t interface{ Fatal(...any) }, tenant string, s model.Signal, keys []model.Key) []uint32 {
	got, err := a.Resolve(batchOf(tenant, s, keys), nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// series is a key of a tenant and a signal.
type series struct {
	tenant string
	signal model.Signal
	key    model.Key
}

// TestAnnouncerWorld compares an announcer with a map, over random announcements that are acknowledged late
// or never, clocks that jump, partitions that are forgotten and topics that change. No series may be called
// announced that was not announced within Refresh and after the last time that it was forgotten. While the
// clock does not jump forward, a fresh announcement must count.
func TestAnnouncerWorld(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		clock := new(testClock)
		clock.now.Store(rapid.Int64Range(0, 4e18).Draw(t, "begin"))
		topic := Topic{1, 4}
		a, err := NewAnnouncer(AnnouncerOptions{Bytes: 1 << 20, Topic: topic, Refresh: time.Hour, Now: clock.read})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		keys := randomKeys(12, rapid.Uint64().Draw(t, "keys"))
		real := int64(0) // time that really passed: steps of the clock are not in it
		type sent struct {
			moment   Moment
			at       int64
			of       []series
			after    int   // of how many events
			forwards int64 // of how many steps of the clock
		}
		events := 0 // in which series were forgotten
		announced := map[series]int64{}
		var inFlight []sent
		pick := func() []series {
			s := series{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"), rapid.SampledFrom([]model.Signal{model.Metrics, model.Logs}).Draw(t, "signal"), model.Key{}}
			var of []series
			for _, k := range rapid.SliceOfN(rapid.SampledFrom(keys), 1, 20).Draw(t, "series") {
				s.key = k
				of = append(of, s)
			}
			return of
		}
		keysOf := func(of []series) (ks []model.Key) {
			for _, s := range of {
				ks = append(ks, s.key)
			}
			return ks
		}
		forwards := int64(0)       // steps forward of the clock
		var lost []map[series]bool // what each event forgot
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				inFlight = append(inFlight, sent{a.Moment(), real, pick(), events, forwards})
			},
			"acknowledge": func(t *rapid.T) {
				if len(inFlight) == 0 {
					return
				}
				i := rapid.IntRange(0, len(inFlight)-1).Draw(t, "which")
				x := inFlight[i]
				inFlight = slices.Delete(inFlight, i, i+1)
				a.Announced(x.moment, x.of[0].tenant, x.of[0].signal, keysOf(x.of))
				for _, s := range x.of {
					gone := false
					for _, l := range lost[x.after:] {
						gone = gone || l == nil || l[s]
					}
					if at, ok := announced[s]; !gone && (!ok || at < x.at) {
						announced[s] = x.at
					}
				}
				got := a.unannounced(t, x.of[0].tenant, x.of[0].signal, keysOf(x.of))
				if x.after == events && real == x.at && forwards == x.forwards && len(got) > 0 {
					t.Fatalf("%d of %d series that were just announced are not", len(got), len(x.of))
				}
			},
			"forget": func(t *rapid.T) {
				p := uint32(rapid.IntRange(0, int(topic.Partitions)-1).Draw(t, "partition"))
				a.Forget(topic.Epoch, p)
				a.Forget(topic.Epoch+1, 0, 1, 2, 3) // of another epoch: nothing
				gone := map[series]bool{}
				for _, k := range keys {
					if topic.Partition(k) == p {
						for _, tenant := range []string{"a", "b"} {
							gone[series{tenant, model.Metrics, k}], gone[series{tenant, model.Logs, k}] = true, true
						}
					}
				}
				for s := range gone {
					delete(announced, s)
				}
				lost, events = append(lost, gone), events+1
			},
			"topic": func(t *rapid.T) {
				topic = Topic{topic.Epoch + 1, uint32(1) << rapid.IntRange(0, 5).Draw(t, "bits")}
				if err := a.SetTopic(topic); err != nil {
					t.Fatal(err)
				}
				clear(announced)
				lost, events = append(lost, nil), events+1
			},
			"pass": func(t *rapid.T) {
				d := rapid.Int64Range(0, int64(70*time.Minute)).Draw(t, "time")
				if rapid.IntRange(0, 3).Draw(t, "suspended") == 0 { // until the marks repeat
					d = int64(ticks*time.Minute) - d
				}
				real += d
				if rapid.Bool().Draw(t, "stopped") { // only the wall clock went on, and is read before it is set
					clock.off.Add(d)
					a.Moment()
				} else {
					clock.now.Add(d)
				}
			},
			"step": func(t *rapid.T) {
				d := rapid.Int64Range(-2, 2).Draw(t, "rounds")*int64(ticks*time.Minute) - rapid.Int64Range(0, int64(70*time.Minute)).Draw(t, "time")
				clock.off.Add(d)
				if d > 0 {
					forwards++
				}
			},
			"slip": func(t *rapid.T) { // less than a tick
				clock.off.Add(-rapid.Int64Range(0, int64(time.Minute)).Draw(t, "time"))
			},
			"sweep": func(t *rapid.T) {
				if err := a.Advance(); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				of := pick()
				unannounced := a.unannounced(t, of[0].tenant, of[0].signal, keysOf(of))
				for i, s := range of {
					at, ok := announced[s]
					if (!ok || real-at > int64(time.Hour)) && !slices.Contains(unannounced, uint32(i)) {
						t.Fatalf("%v is called announced; it was announced: %v, %v ago", s, ok, time.Duration(real-at))
					}
				}
			},
		})
	})
}

// TestAnnouncerRefresh moves a clock in small steps: each series is announced again within Refresh, and not
// all of them at once.
func TestAnnouncerRefresh(t *testing.T) {
	racetest.SkipSerial(t)
	a, clock := newAnnouncer(t, 64<<20, 16)
	keys := randomKeys(20_000, 3)
	most, total := 0, 0
	for minute := range 6 * 60 {
		if err := a.Advance(); err != nil {
			t.Fatal(err)
		}
		m := a.Moment()
		var again []model.Key
		for _, i := range a.unannounced(t, "a", model.Metrics, keys) {
			again = append(again, keys[i])
		}
		a.Announced(m, "a", model.Metrics, again)
		if minute > 60 {
			total += len(again)
			most = max(most, len(again))
		}
		clock.now.Add(int64(time.Minute))
	}
	// In 5 hours, each series is announced 5 to 7 times.
	if total < 5*len(keys) || total > 7*len(keys) {
		t.Errorf("%d announcements of %d series in 5 hours", total, len(keys))
	}
	if most > len(keys)/5 {
		t.Errorf("%d of %d series were announced in one minute", most, len(keys))
	}
	// Series that send no more leave the set.
	for range 70 {
		clock.now.Add(int64(time.Minute))
		if err := a.Advance(); err != nil {
			t.Fatal(err)
		}
	}
	if n := a.set.Len(); n != 0 {
		t.Errorf("%d idle series are still there", n)
	}
}

// TestAnnouncerForgetsPartition checks that exactly the series of a partition go.
func TestAnnouncerForgetsPartition(t *testing.T) {
	a, _ := newAnnouncer(t, 64<<20, 16)
	keys := randomKeys(20_000, 4)
	for _, s := range []model.Signal{model.Metrics, model.Logs} {
		a.Announced(a.Moment(), "a", s, keys)
		a.Announced(a.Moment(), "b", s, keys)
	}
	a.Forget(1, 3, 9)
	for _, tenant := range []string{"a", "b"} {
		for _, s := range []model.Signal{model.Metrics, model.Logs} {
			gone := map[uint32]bool{}
			for _, i := range a.unannounced(t, tenant, s, keys) {
				gone[i] = true
			}
			strays := 0
			for i, k := range keys {
				p := a.topic.Partition(k)
				if wanted := p == 3 || p == 9; wanted && !gone[uint32(i)] {
					t.Fatalf("a series of partition %d is still announced", p)
				} else if !wanted && gone[uint32(i)] {
					strays++ // its slot lay after one that was freed
				}
			}
			if strays > len(keys)/50 {
				t.Errorf("%d series of other partitions were forgotten", strays)
			}
		}
	}
}

// TestAnnouncerCount forgets partitions, announces their series and others, and so makes tables grow that
// hold keys twice. The counts must stay those of the slots.
func TestAnnouncerCount(t *testing.T) {
	racetest.SkipSerial(t)
	a, _ := newAnnouncer(t, 16<<20, 16)
	keys := randomKeys(int(a.set.Cap()/2), 14)
	twice := false
	for round := range 10 {
		sent := keys[:len(keys)/10*(round+1)]
		a.Announced(a.Moment(), "a", model.Metrics, sent)
		a.Forget(1, uint32(round))
		a.Announced(a.Moment(), "a", model.Metrics, sent)
		inSlots, different := int64(0), map[uint64]bool{}
		for i := range a.set.shards {
			table := a.set.shards[i].table
			for at, slot := range table.slots {
				if slot != 0 {
					inSlots++
					different[table.fingerprint(at)] = true
				}
			}
		}
		twice = twice || int64(len(different)) < inSlots
		if n := a.set.Len(); n != inSlots || a.set.OfTenant(0) != n {
			t.Fatalf("round %d: %d series, %d of the tenant, and %d in the slots", round, n, a.set.OfTenant(0), inSlots)
		}
	}
	if !twice {
		t.Error("no table held a key twice")
	}
}

// TestAnnouncerFull checks that a full set forgets nothing, and counts what it cannot remember.
func TestAnnouncerFull(t *testing.T) {
	racetest.SkipSerial(t)
	a, _ := newAnnouncer(t, 8<<20, 1)
	keys := randomKeys(int(a.set.Cap())+500, 5)
	a.Announced(a.Moment(), "a", model.Metrics, keys)
	if got := len(a.unannounced(t, "a", model.Metrics, keys)); got != 500 {
		t.Errorf("%d series must carry labels, want 500", got)
	}
	if got := testutil.ToFloat64(a.metrics.crowded); got != 500 {
		t.Errorf("%v label sets found no room, want 500", got)
	}
	if a.set.Bytes() > 8<<20 {
		t.Errorf("the set takes %d bytes", a.set.Bytes())
	}
}

// TestAnnouncerManyTenants checks that tenants without a number share no series.
func TestAnnouncerManyTenants(t *testing.T) {
	a, _ := newAnnouncer(t, 8<<20, 1)
	for i := range mostTenants {
		a.tenants.id(fmt.Sprint(i), model.Metrics)
	}
	key := randomKeys(1, 6)
	for range 2 {
		if got := a.unannounced(t, "one more", model.Metrics, key); len(got) != 1 {
			t.Error("a series of a tenant without a number is called announced")
		}
		a.Announced(a.Moment(), "one more", model.Metrics, key)
	}
}

// TestAnnouncerConcurrent announces, forgets, sweeps, changes the topic and moves the clock at the same time.
// At the end, everything has its last announcement. Each goroutine does a fixed number of things, and the
// clock moves only between two sweeps: one that moves freely makes the announcer forget everything all the
// time.
func TestAnnouncerConcurrent(t *testing.T) {
	a, clock := newAnnouncer(t, 8<<20, 8)
	keys := randomKeys(5_000, 7)
	var wg sync.WaitGroup
	loop := func(seed uint64, times int, do func(r *rand.Rand)) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 0))
			for range times {
				do(r)
			}
		})
	}
	for i := range uint64(2) {
		loop(i, 1000, func(r *rand.Rand) {
			from := r.IntN(len(keys) - 100)
			m := a.Moment()
			var labels []model.Key
			mine := keys[from : from+100]
			got, _ := a.Resolve(batchOf("a", model.Metrics, mine), nil)
			for _, i := range got {
				labels = append(labels, mine[i])
			}
			a.Announced(m, "a", model.Metrics, labels)
		})
	}
	loop(3, 60, func(r *rand.Rand) { a.Forget(a.epoch(), uint32(r.IntN(8))) })
	loop(4, 60, func(r *rand.Rand) {
		clock.now.Add(r.Int64N(int64(3 * time.Minute)))
		if err := a.Advance(); err != nil {
			t.Error(err)
		}
		switch r.IntN(20) {
		case 0:
			if err := a.SetTopic(Topic{r.Uint64(), 8}); err != nil {
				t.Error(err)
			}
		case 1: // longer than an announcer may go without a sweep
			clock.now.Add(int64(ticks * time.Minute))
		}
	})
	wg.Wait()
	a.Forget(a.epoch(), 0, 1, 2, 3, 4, 5, 6, 7)
	if got := a.unannounced(t, "a", model.Metrics, keys); len(got) != len(keys) {
		t.Errorf("%d series are announced after all partitions were forgotten", len(keys)-len(got))
	}
	a.Announced(a.Moment(), "a", model.Metrics, keys)
	if got := a.unannounced(t, "a", model.Metrics, keys); len(got) != 0 {
		t.Errorf("%d series are not announced", len(got))
	}
}

// TestAnnouncerClockSlips sets the clock back by less than a tick, ten times. Announcements then count
// neither longer nor shorter than before.
func TestAnnouncerClockSlips(t *testing.T) {
	a, clock := newAnnouncer(t, 8<<20, 16)
	keys := randomKeys(5_000, 11)
	a.Announced(a.Moment(), "a", model.Metrics, keys)
	for minute := 1; minute <= 61; minute++ {
		clock.now.Add(int64(time.Minute))
		if minute%4 == 0 && minute <= 40 {
			clock.off.Add(-int64(50 * time.Second))
		}
		if err := a.Advance(); err != nil {
			t.Fatal(err)
		}
		if got := len(a.unannounced(t, "a", model.Metrics, keys)); minute <= 40 && got > 0 || minute == 61 && got < len(keys) {
			t.Fatalf("%d of %d series are not announced after %d minutes", got, len(keys), minute)
		}
	}
}

// TestAnnouncerSuspend checks that time counts that only the wall clock has seen.
func TestAnnouncerSuspend(t *testing.T) {
	a, clock := newAnnouncer(t, 8<<20, 1)
	keys := randomKeys(100, 12)
	a.Announced(a.Moment(), "a", model.Metrics, keys)
	clock.off.Add(int64(time.Hour))
	if got := len(a.unannounced(t, "a", model.Metrics, keys)); got != len(keys) {
		t.Errorf("%d series are announced after the machine was suspended for an hour", len(keys)-got)
	}
}

// TestAnnouncerSweepWaits checks that a sweep waits for an announcement that began long before: it would
// leave a mark that the sweep has missed, and that looks new when the marks repeat.
func TestAnnouncerSweepWaits(t *testing.T) {
	a, clock := newAnnouncer(t, 8<<20, 1)
	keys := randomKeys(1, 13)
	m := a.Moment()
	clock.now.Add(int64(maxTicks * time.Minute))
	if err := a.Advance(); err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int64
	a.clock.read = func() (wall, steady int64) {
		reads.Add(1)
		return clock.read()
	}
	var wg sync.WaitGroup
	a.tenants.mu.Lock() // stops the announcement after it has read the clock
	wg.Go(func() { a.Announced(m, "a", model.Metrics, keys) })
	for reads.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	clock.now.Add(int64(100 * time.Minute))
	wg.Go(func() {
		if err := a.Advance(); err != nil {
			t.Error(err)
		}
	})
	for a.mu.TryRLock() { // until the sweep waits
		a.mu.RUnlock()
		time.Sleep(time.Millisecond)
	}
	a.tenants.mu.Unlock()
	wg.Wait()
	clock.now.Add(int64(100 * time.Minute))
	if got := a.unannounced(t, "a", model.Metrics, keys); len(got) != 1 {
		t.Error("a series that was announced 258 minutes ago is still announced")
	}
}

func TestMachineClocks(t *testing.T) {
	c := newClock(machineClocks)
	for last := int64(0); last < int64(time.Millisecond); {
		now := c.now()
		if now < last {
			t.Fatalf("the clock went from %d to %d", last, now)
		}
		last = now
	}
}

// TestAnnouncerSlowReset checks that an announcer forgets everything once, even if that takes longer than it
// may go without a sweep.
func TestAnnouncerSlowReset(t *testing.T) {
	a, clock := newAnnouncer(t, 8<<20, 1)
	a.clock.read = func() (wall, steady int64) {
		_, now := clock.read()
		if now > 1_800_000_000e9 && a.set.Len() == 0 { // the reset has forgotten all
			now += int64(ticks * time.Minute)
		}
		return now, now
	}
	a.Announced(a.Moment(), "a", model.Metrics, randomKeys(1, 10))
	clock.now.Add(int64(ticks * time.Minute))
	if a.Moment(); a.resets != 1 {
		t.Errorf("%d resets, want 1", a.resets)
	}
}

func (a *Announcer) epoch() uint64 {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.topic.Epoch
}

func TestAnnouncerOptions(t *testing.T) {
	for _, o := range []AnnouncerOptions{
		{Bytes: 8 << 20, Topic: Topic{1, 3}, Refresh: time.Hour},
		{Bytes: 8 << 20, Topic: Topic{1, 0}, Refresh: time.Hour},
		{Bytes: 8 << 20, Topic: Topic{1, 4}, Refresh: time.Millisecond},
	} {
		if a, err := NewAnnouncer(o); err == nil {
			a.Close()
			t.Errorf("%+v was accepted", o)
		}
	}
}

func TestKeyFromFingerprint(t *testing.T) {
	k := mustKnown(t, 8<<20)
	for i, key := range randomKeys(1000, 8) {
		id := uint16(i * 37)
		fp, _ := k.fingerprint(id, signalOf(id), key)
		if got := keyLo(fp, id, signalOf(id)); got != key.Lo {
			t.Fatalf("%016x came back as %016x", key.Lo, got)
		}
	}
}

func TestAnnouncerMetrics(t *testing.T) {
	a, clock := newAnnouncer(t, 8<<20, 2)
	keys := randomKeys(100, 9)
	a.Announced(a.Moment(), "a", model.Logs, keys)
	clock.now.Add(int64(ticks * time.Minute))
	if got := len(a.unannounced(t, "a", model.Logs, keys)); got != len(keys) {
		t.Errorf("%d series are announced after %d ticks without a sweep", len(keys)-got, ticks)
	}
	const want = `# HELP shale_gateway_forgotten_series_total Series that a gateway has forgotten and announces again, by reason: age, partition (its new owner lacks labels), topic or clock.
# TYPE shale_gateway_forgotten_series_total counter
shale_gateway_forgotten_series_total{reason="clock"} 100
`
	if err := testutil.CollectAndCompare(a.metrics.forgotten, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// BenchmarkAnnouncerHit is BenchmarkKnownHit through an announcer.
func BenchmarkAnnouncerHit(b *testing.B) {
	a, _ := newAnnouncer(b, 256<<20, 16)
	const n, batch = 2_000_000, 2000
	keys := randomKeys(n, 6)
	m := a.Moment()
	for from := 0; from < n; from += batch {
		a.Announced(m, "a", model.Metrics, keys[from:from+batch])
	}
	of := batchOf("a", model.Metrics, nil)
	var dst []uint32
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		from := i * batch % n
		of.Keys = keys[from : from+batch]
		dst, _ = a.Resolve(of, dst[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/key")
}

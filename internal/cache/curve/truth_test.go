package curve

import (
	"context"
	"flag"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/cache/ram"
	"github.com/shaledb/shale/internal/cache/ssd"
	"github.com/shaledb/shale/internal/plan/trace"
	"github.com/shaledb/shale/internal/plan/workload"
	"github.com/shaledb/shale/internal/racetest"
)

func TestMain(m *testing.M) {
	// The library keeps a timer goroutine for the life of a cache.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/maypok86/otter/v2.periodicCleanUp"))
}

// truthDays asks for all workloads over as many days of warm-up, and as many that are measured.
var truthDays = flag.Float64("truth", 0, "days for TestWhatIfMeetsTruth; 0: the short form")

// The traces have chunks of 350 kB in the median; the test makes pages of them, of which memory needs three
// times as much as the disk.
const (
	smaller = 16
	decoded = 3
)

// workloads are those of the table in docs/cache.md.
func workloads(days float64) map[string]workload.Model {
	base, err := workload.Preset(workload.P)
	if err != nil {
		panic(err)
	}
	base.Days, base.WarmUpDays, base.Bursts, base.Scans, base.Investigations = days, days, 0, 0, 0
	dashboards, investigations, scans := base, base, base
	dashboards.Dashboards = 30
	investigations.Dashboards, investigations.Investigations, investigations.OldestInvestigated = 2, 12, 200
	scans.Dashboards, scans.Scans = 15, 90
	return map[string]workload.Model{"dashboards": dashboards, "investigations": investigations, "scans with dashboards": scans}
}

// tiers are the real tiers of some sizes, with a ledger.
type tiers struct {
	now    int64
	ledger *ledger.Ledger
	memory *ram.Cache
	disk   *ssd.Store
	ofRAM  *ledger.Tier
	ofDisk *ledger.Tier
	bucket *ledger.Tier
	value  []byte
}

func openTiers(t *testing.T, s Sizes) *tiers {
	t.Helper()
	x := &tiers{value: make([]byte, decoded*(2_000_000/smaller+1))}
	x.ledger = ledger.New(ledger.Options{FirstBytes: 1 << 22, Now: func() int64 { return x.now }})
	x.ofRAM, x.ofDisk, x.bucket = x.ledger.Tier(ledger.Memory), x.ledger.Tier(ledger.SSD), x.ledger.Source(ledger.Bucket)
	var err error
	// A sixteenth is for lists.
	if x.memory, err = ram.New(ram.Options{MaxBytes: s.RAM * 16 / 15, Account: x.ofRAM}); err != nil {
		t.Fatal(err)
	}
	x.disk, err = ssd.Open(ssd.Options{
		FS: vfs.Default, Dir: t.TempDir(), MaxBytes: s.SSD, Limits: ssd.Limits{WritesPerDay: 1 << 20}, Account: x.ofDisk,
		IndexBytes: s.Ghosts * 32, QueueBytes: s.Queue * 4 / 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// request asks the tiers as package archive does.
func (x *tiers) request(t *trace.Trace, q *trace.Request) {
	x.now = int64(1e18) + q.At*int64(time.Millisecond)
	stored := int(t.Sizes[q.Key])/smaller + 1
	k := cache.Key{Object: fmt.Sprintf("chunk%08x", q.Key), Kind: cache.Stored}
	defer x.settle()
	if q.Write {
		x.disk.Offer(k, cache.Asker{}, x.value[:stored])
		x.ledger.Fresh(k.Hash(), stored)
		return
	}
	v := ledger.View{Asker: x.ledger.Asker("a", uint64(q.Query)*0x9e3779b97f4a7c15, x.now-int64(q.Age)*1e9), Memory: x.memory, Pages: x.ofRAM}
	_, hit, first, _ := v.Ask(context.Background(), k, func(ctx context.Context) ([]byte, error) {
		page := x.value[:stored*decoded]
		if found := x.disk.Get(ctx, k, v.By()); found.From != cache.Nowhere {
			v.Served(x.ofDisk, k.Hash(), len(page), stored)
			return page, nil
		}
		v.Served(x.bucket, k.Hash(), len(page), stored)
		x.disk.Offer(k, v.By(), x.value[:stored])
		return page, nil
	})
	if hit && first {
		x.disk.Use(k, v.By())
	}
}

// settle waits until the disk has what it is to have: the trace runs much faster than real time.
func (x *tiers) settle() {
	for x.ofDisk.State().QueueBytes > 0 {
		runtime.Gosched()
	}
}

// replay runs a trace, and returns the share of the first touches after the warm-up that did not need the
// bucket. The sampler may be nil.
func (x *tiers) replay(t *trace.Trace, s *Sampler) float64 {
	var before ledger.Way
	for i := range t.Requests {
		q := &t.Requests[i]
		if i > 0 && q.At >= t.WarmUp && t.Requests[i-1].At < t.WarmUp {
			before = x.ledger.Way()
		}
		if q.First || q.Write { // a query that asks again finds what it has just fetched
			x.request(t, q)
		}
		if s != nil && i%1000 == 0 {
			s.Process()
		}
	}
	after := x.ledger.Way()
	return float64(after.Memory+after.Later-before.Memory-before.Later) / float64(after.First-before.First)
}

func (x *tiers) close(t *testing.T) {
	t.Helper()
	if err := x.disk.Close(); err != nil {
		t.Error(err)
	}
}

// TestWhatIfMeetsTruth: what the curves of a running system say about other sizes is what the real tiers of
// these sizes do, within 1.5 points.
func TestWhatIfMeetsTruth(t *testing.T) {
	racetest.SkipSerial(t) // takes minutes there
	days := *truthDays
	if days == 0 {
		days = 0.25
	}
	for name, m := range workloads(days) {
		if *truthDays == 0 && name != "scans with dashboards" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			tr, err := m.Generate(7, 20_000_000)
			if err != nil {
				t.Fatal(err)
			}
			sizes := Sizes{RAM: 24 << 20, SSD: 128 << 20, Queue: 6 << 20, Ghosts: 8 << 10}
			x := openTiers(t, sizes)
			s, err := New(Options{MemoryBytes: 8 << 20, Sizes: sizes, Now: func() int64 { return x.now }, Actual: func() Actual {
				w := x.ledger.Way()
				return Actual{First: w.First, Memory: w.Memory, Later: w.Later, Pages: w.Pages, Requests: w.Requests}
			}})
			if err != nil {
				t.Fatal(err)
			}
			x.ledger.Watch(s)
			actual := x.replay(tr, s)
			sum, err := Add(s.Hours(int(days * 24)))
			if err != nil {
				t.Fatal(err)
			}
			x.close(t)
			t.Logf("%d requests, %d first touches in %d hours, %.3f of the keys", len(tr.Requests), sum.Actual.First, sum.Hours, sum.Share)
			check := func(ram, disk, measured float64) {
				e, err := sum.At(ram, disk)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("memory %gx, SSD %gx: predicted %.1f %%, measured %.1f %%", ram, disk, 100*e.HitRatio, 100*measured)
				if math.Abs(e.HitRatio-measured) > 0.015 {
					t.Errorf("memory %gx, SSD %gx: predicted %.4f, measured %.4f", ram, disk, e.HitRatio, measured)
				}
			}
			check(1, 1, actual)
			for _, f := range []float64{0.5, 2, 4} {
				for _, p := range []pair{{1, f}, {f, f}} {
					if *truthDays == 0 && p.RAM == 1 {
						continue
					}
					other := openTiers(t, Sizes{
						RAM: int64(float64(sizes.RAM) * p.RAM), SSD: int64(float64(sizes.SSD) * p.SSD), Queue: int64(float64(sizes.Queue) * p.RAM),
						Ghosts: int64(float64(sizes.Ghosts) * p.SSD),
					})
					measured := other.replay(tr, nil)
					other.close(t)
					check(p.RAM, p.SSD, measured)
				}
			}
		})
	}
}

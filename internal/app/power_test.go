package app

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/test/objectstores"
)

var (
	powerSeed = flag.Uint64("power-seed", 0, "the seed of TestPowerCuts; 0: any")
	powerCuts = flag.Int("power-cuts", 100, "how often TestPowerCuts cuts the power")
)

// power is the power of a machine. A cut leaves the disk with what was synced. A folder of the disk is as the
// disk; an object store keeps what it has acknowledged.
type power struct {
	disk *vfs.MemFS

	mu   sync.Mutex
	left int        // steps until the cut
	rest *vfs.MemFS // the disk after the cut; nil: the power is on
}

// step counts the begin or the end of a sync or a request, and cuts the power at the last one.
func (p *power) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left--; p.left == 0 {
		p.rest = p.disk.CrashClone(vfs.CrashCloneCfg{})
	}
}

func (p *power) isCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rest != nil
}

// poweredBucket is the bucket as a process sees it until its power is cut: before a request, or before the
// response arrives.
type poweredBucket struct {
	bucket.Bucket
	power *power
}

func (b *poweredBucket) request(do func() error) error {
	cut := fmt.Errorf("%w: the power is cut", model.ErrClosed)
	if b.power.step(); b.power.isCut() {
		return cut
	}
	err := do()
	if b.power.step(); b.power.isCut() {
		return cut
	}
	return err
}

func (b *poweredBucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	return b.request(func() error { return b.Bucket.Put(ctx, name, r, size) })
}

func (b *poweredBucket) PutIfAbsent(ctx context.Context, name string, data []byte) (created bool, err error) {
	err = b.request(func() (err error) {
		created, err = b.Bucket.PutIfAbsent(ctx, name, data)
		return err
	})
	return created && err == nil, err
}

func (b *poweredBucket) Get(ctx context.Context, name string) (data []byte, err error) {
	err = b.request(func() (err error) {
		data, err = b.Bucket.Get(ctx, name)
		return err
	})
	return data, err
}

func (b *poweredBucket) GetRange(ctx context.Context, name string, off, n int64) (data []byte, err error) {
	err = b.request(func() (err error) {
		data, err = b.Bucket.GetRange(ctx, name, off, n)
		return err
	})
	return data, err
}

func (b *poweredBucket) List(ctx context.Context, prefix string, fn func(name string, size int64) error) error {
	return b.request(func() error { return b.Bucket.List(ctx, prefix, fn) })
}

func (b *poweredBucket) Delete(ctx context.Context, name string) error {
	return b.request(func() error { return b.Bucket.Delete(ctx, name) })
}

// powered is an engine whose power is cut now and then, and what was sent to it.
type powered struct {
	r     *rand.Rand
	now   int64
	place objectstores.Place
	disk  *vfs.MemFS
	sent  int
	acked map[int]bool
	// ships and merges are those that were not cut.
	ships, merges int
}

// TestPowerCuts cuts the power at random syncs and requests to the bucket, also while the engine starts. What
// is left of the disk starts again with the same bucket: every acknowledged batch is there once, every other
// one as a whole or not at all, and nothing is wrong in the bucket.
func TestPowerCuts(t *testing.T) {
	seed := *powerSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("again: go test ./internal/app -run TestPowerCuts -power-seed %d", seed)
	p := &powered{
		r: rand.New(rand.NewPCG(seed, 0)), now: worldBegin, place: objectstores.NewPlaces(t, *storeName).New(), disk: vfs.NewCrashableMem(),
		acked: map[int]bool{},
	}
	for range max(1, *powerCuts/racetest.Fewer) {
		if err := p.untilCut(); err != nil {
			t.Fatal(err)
		}
		if p.r.IntN(3) > 0 { // else the power is cut twice in a row
			p.check(t)
		}
	}
	p.check(t)
	t.Logf("%d of %d batches were acknowledged; %d ships, %d merges", len(p.acked), p.sent, p.ships, p.merges)
}

func (p *powered) open(power *power) (*Engine, error) {
	disk := &syncFS{FS: p.disk, hook: power.step}
	b, err := p.place.Open(disk)
	if err != nil {
		return nil, err
	}
	return OpenEngine(context.Background(), EngineOptions{
		FS: disk, DataDir: crashDir, Bucket: &poweredBucket{b, power}, Node: "n", MemoryBytes: 64 << 20, Idle: true,
		Now: func() int64 { return p.now },
	})
}

// untilCut runs an engine until its power is cut.
func (p *powered) untilCut() error {
	power := &power{disk: p.disk, left: 1 + p.r.IntN(100<<p.r.IntN(5))}
	e, err := p.open(power)
	for err == nil && !power.isCut() {
		err = p.work(e, power)
	}
	if e != nil {
		_ = e.Close()
	}
	if power.isCut() {
		p.disk, err = power.rest, nil
	}
	return err
}

// work pushes a batch of each signal, and then does some work of the background.
func (p *powered) work(e *Engine, power *power) error {
	n := p.sent
	p.sent++
	for _, signal := range []model.Signal{model.Metrics, model.Logs} {
		if err := pushCrashBatch(e.Path(), signal, n, p.now); err != nil {
			return err
		}
	}
	if !power.isCut() {
		p.acked[n] = true
	}
	p.now += int64(10 * time.Minute)
	ctx := context.Background()
	switch p.r.IntN(10) {
	case 0, 1:
		return e.Flush()
	case 2:
		_, err := e.head.Work(ctx)
		return err
	case 3, 4, 5:
		err := e.Ship()
		if err == nil {
			p.ships++
		}
		return err
	case 6, 7:
		done, err := e.compactor.RunOnce(ctx)
		p.merges += done.Merges
		return err
	case 8:
		return e.catalog.Expire(ctx, olderThan(math.MinInt64), time.Minute)
	}
	return nil
}

// check starts an engine that keeps its power, and looks at all rows.
func (p *powered) check(t *testing.T) {
	t.Helper()
	e, err := p.open(&power{disk: p.disk})
	must(t, err)
	for signal, seen := range map[model.Signal]map[int]int{model.Metrics: readCrashBatches(t, e), model.Logs: readCrashLines(t, e)} {
		for n := range p.sent {
			if got := seen[n]; got != crashSeries && (got != 0 || p.acked[n]) {
				t.Errorf("%d of %d series of batch %d of %s; it was acknowledged: %t", got, crashSeries, n, signal, p.acked[n])
			}
			delete(seen, n)
		}
		if len(seen) > 0 {
			t.Errorf("rows of %s that were never sent: %v", signal, seen)
		}
	}
	must(t, e.Close())
	checkFolder(t, p.disk)
	b, err := p.place.Open(p.disk)
	must(t, err)
	survey, err := catalog.ReadSurvey(context.Background(), b, nil)
	must(t, err)
	for _, problem := range survey.Problems {
		t.Error(problem)
	}
}

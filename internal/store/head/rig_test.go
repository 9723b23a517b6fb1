package head

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/logtest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/part"
)

// rig is a head on a file system in memory, with a clock that stands still and a journal that is a slice.
// When the test ends, the head is closed and its folder is checked whole.
type rig struct {
	t      testing.TB
	mem    *vfs.MemFS
	o      Options
	now    int64
	head   *Head
	bucket *bucketOfBlocks
	log    *logtest.Buffer
	seq    uint64
	faults errorfs.Injector // of the heads that [rig.damage] opens

	mu      sync.Mutex // guards pending: the background work truncates
	pending []pendingBatch
}

func newRig(t testing.TB, change func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, mem: vfs.NewCrashableMem(), now: int64(1_700_000_000 * time.Second), log: new(logtest.Buffer)}
	r.bucket = &bucketOfBlocks{fs: r.mem, blocks: make(map[string]*part.Reader)}
	r.o = Options{
		FS: r.mem, Dir: "/head", Seed: testSeed, Node: "n", KnownBytes: 8 << 20, Shipper: r.bucket,
		Now:    func() int64 { return r.now },
		Logger: slog.New(slog.NewTextHandler(r.log, nil)),
		Truncate: func(covered uint64) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			for len(r.pending) > 0 && r.pending[0].seq <= covered {
				r.pending = r.pending[1:]
			}
			return nil
		},
	}
	if change != nil {
		change(&r.o)
	}
	r.open()
	t.Cleanup(func() {
		if r.head == nil || t.Failed() {
			return
		}
		r.must(r.head.Close())
		r.must(Check(context.Background(), r.mem, "/head"))
	})
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) open() {
	r.t.Helper()
	r.o.Registerer = prometheus.NewPedanticRegistry()
	h, err := Open(context.Background(), r.o)
	r.must(err)
	r.head = h
	for _, p := range r.pending {
		if p.seq > h.Covered() {
			h.Apply(p.seq, p.b)
		}
	}
	h.RemoveLeftovers()
	r.must(h.rebuildKnown(context.Background()))
	r.must(h.retireEnded(context.Background()))
}

// restart closes the head properly and opens it again.
func (r *rig) restart() {
	r.t.Helper()
	r.must(r.head.Close())
	r.open()
}

// crash cuts the power and opens what is left.
func (r *rig) crash() {
	r.t.Helper()
	old := r.mem
	r.mem = old.CrashClone(vfs.CrashCloneCfg{})
	r.o.FS, r.bucket.fs = r.mem, r.mem
	r.head.release()
	r.open()
}

// metric returns the value of a counter or gauge.
func (r *rig) metric(name string) float64 {
	r.t.Helper()
	families, err := r.o.Registerer.(*prometheus.Registry).Gather()
	r.must(err)
	sum := 0.0
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.Metric {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// series returns the labels of series n.
func series(n int) model.Labels {
	return model.LabelsOf("__name__", fmt.Sprintf("metric_%d", n%7), "job", "j", "i", fmt.Sprint(n))
}

// batchOf makes a batch of floats, one row at a time for each series from..to, without labels.
func (r *rig) batchOf(tenant string, from, to int, at int64, v float64) *model.Batch {
	b := &model.Batch{Tenant: tenant, Signal: model.Metrics}
	for n := from; n < to; n++ {
		b.AddSample(series(n).Key(testSeed, model.Metrics), at, math.Float64bits(v))
	}
	return b
}

// label gives the series from..to of a batch their labels, as far as they are new, and returns how many that
// were.
func (r *rig) label(b *model.Batch, from int) int {
	r.t.Helper()
	fresh, err := r.head.Resolve(b, nil)
	r.must(err)
	for _, i := range fresh {
		b.Labels.Append(i, series(from+int(i)))
	}
	return len(fresh)
}

func (r *rig) apply(b *model.Batch) {
	r.seq++
	r.mu.Lock()
	r.pending = append(r.pending, pendingBatch{r.seq, b})
	r.mu.Unlock()
	r.head.Apply(r.seq, b)
}

// push stores a row for each of the series and returns how many were new.
func (r *rig) push(tenant string, from, to int, at int64, v float64) int {
	r.t.Helper()
	b := r.batchOf(tenant, from, to, at, v)
	fresh := r.label(b, from)
	r.apply(b)
	return fresh
}

// read returns what the head and the bucket hold of a tenant's metrics.
func (r *rig) read(tenant string) (worldtest.Content, error) {
	r.t.Helper()
	got := worldtest.Content{}
	for _, f := range model.PointFamilies() {
		req := everything(tenant)
		req.Family = f
		cs, err := r.head.Source(nil).Select(context.Background(), req)
		if err != nil {
			return nil, err
		}
		if f == model.Samples {
			r.bucket.addTo(tenant, got)
		}
		for _, c := range cs {
			if err := addCursor(tenant, c, got); err != nil {
				return nil, err
			}
		}
	}
	return got, nil
}

// samplesOf names the samples of series n.
func samplesOf(tenant string, n int) worldtest.ID {
	return worldtest.ID{Tenant: tenant, Signal: model.Metrics, Labels: string(series(n)), Family: model.Samples}
}

// expect fails unless series from..to have these rows at these times, and the others have none.
func (r *rig) expect(tenant string, from, to int, rows map[int64]float64) {
	r.t.Helper()
	got, err := r.read(tenant)
	r.must(err)
	want := worldtest.Content{}
	for n := from; n < to; n++ {
		for at, v := range rows {
			want.Add(samplesOf(tenant, n), worldtest.Float(at, math.Float64bits(v)))
		}
	}
	if d := want.Diff(got); d != "" {
		r.t.Fatal(d)
	}
}

package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// sample returns a batch with a sample of a series that belongs in a partition.
func sample(tenant string, partition, partitions int32, at int64, v float64) *worldtest.Batch {
	for n := 0; ; n++ {
		l := model.LabelsOf("__name__", "probe", "n", fmt.Sprint(n))
		if topics.PartitionOf(l.Key(testSeed, model.Metrics), partitions) == partition {
			return &worldtest.Batch{Tenant: tenant, Signal: model.Metrics, Series: []worldtest.Series{{Labels: l, Rows: []worldtest.Row{worldtest.Float(at, uint64(v))}}}}
		}
	}
}

// TestTwoLives: two machines hold a partition at the same time, flush and ship all the time, are lost with
// their disks, and rows of the same times come again and again. The last value of each time is what the
// bucket has in the end, and every line once, in order.
func TestTwoLives(t *testing.T) {
	const enough = 600 // records, unless no machine has been overtaken by then
	r := newRig(t, 1)
	random := rand.New(rand.NewPCG(1, 2))
	begin := time.Now().Add(-10 * time.Minute).UnixNano()
	pushes := worldtest.Pushes{Tenants: []string{"a", "b"}, Series: 4, Rows: 3, Time: func() int64 { return begin + int64(random.IntN(40))*15e9 }}
	for n := range 9 {
		pushes.Labels = append(pushes.Labels, model.LabelsOf("__name__", "x", "n", fmt.Sprint(n)))
	}
	done := make(chan struct{})
	var machines sync.WaitGroup
	var counting sync.Mutex
	var lives, stale int
	for range 2 {
		c := r.catalog()
		machines.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				o := r.options(c, 0)
				if rand.IntN(2) == 0 {
					o.Drain = 1 // the machine is lost
				}
				p, err := Open(t.Context(), o)
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(200))*time.Millisecond)
				err = p.Run(ctx)
				cancel()
				counting.Lock()
				if lives++; errors.Is(err, catalog.ErrStale) {
					stale++
				} else if err != nil && o.Drain > 1 {
					t.Error(err)
				}
				counting.Unlock()
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	overtaken := func() bool {
		counting.Lock()
		defer counting.Unlock()
		return stale > 0
	}
	want := worldtest.Content{}
	records := 0
	for n := 0; n < enough || n < 10*enough && !overtaken(); n++ {
		records++
		b := pushes.Batch(random, []model.Signal{model.Metrics, model.Logs}[n%2])
		want.Push(b)
		r.log.append(0, b, true)
		if n%40 == 0 { // the machines get time
			r.waitFor("further lives", func() bool {
				counting.Lock()
				defer counting.Unlock()
				return lives > n/40 || t.Failed()
			})
		}
	}
	close(done)
	machines.Wait()
	c := r.catalog()
	p := r.open(r.options(c, 0))
	stop := r.running(p)
	r.waitFor("the ship of the last record", func() bool { return p.Shipped() == int64(records) })
	if err := errors.Join(stop(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if d := want.Diff(r.content(c)); d != "" {
		t.Error(d)
	}
	if stale == 0 || lives < 5 {
		t.Errorf("%d lives, of which %d were overtaken: the test has tried nothing", lives, stale)
	}
	t.Logf("%d lives, %d overtaken, %d ships", lives, stale, c.Progress(topics.Node(0), 1).Ship)
}

// TestOvertaken: a life whose partition another one has shipped ends by itself, without a ship of its own, as
// soon as anything of it would be shipped.
func TestOvertaken(t *testing.T) {
	r := newRig(t, 1)
	c := r.catalog()
	o := r.options(c, 0)
	o.ShipEvery = time.Hour
	old := r.open(o)
	defer old.Close()
	r.log.append(0, sample("t", 0, 1, time.Now().Add(-time.Hour).UnixNano(), 1), true)
	young := r.open(r.options(c, 0))
	stop := r.running(young)
	r.waitFor("the ship of the young one", func() bool { return young.Shipped() == 1 })
	if err := errors.Join(stop(), young.Close()); err != nil {
		t.Fatal(err)
	}
	// The window of the row has closed, so the head ships it in the background.
	if err := old.Run(t.Context()); !errors.Is(err, catalog.ErrStale) {
		t.Fatalf("got %v", err)
	}
	if n := len(c.Live()); n != 1 {
		t.Errorf("%d blocks", n)
	}
}

// TestFullDisk: on a disk that takes nothing, a partition waits for room, and ends when it is told to. The
// record that waited counts as not read.
func TestFullDisk(t *testing.T) {
	r := newRig(t, 1)
	var full sync.Mutex
	isFull := false
	o := r.options(r.catalog(), 0)
	o.Head.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		full.Lock()
		defer full.Unlock()
		if isFull && op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".part") {
			return syscall.ENOSPC
		}
		return nil
	}))
	o.Head.RowBytes, o.Head.FlushEvery, o.ShipEvery, o.Drain = 32<<10, time.Hour, time.Hour, 100*time.Millisecond
	p := r.open(o)
	full.Lock()
	isFull = true
	full.Unlock()
	const records = 1000
	at := time.Now().UnixNano()
	for n := range records {
		r.log.append(0, sample("t", 0, 1, at+int64(n)*1e6, 1), true)
	}
	stop := r.running(p)
	waits := func() bool {
		before := p.Head().Applied()
		time.Sleep(50 * time.Millisecond)
		return before > 0 && p.Head().Applied() == before
	}
	r.waitFor("a full buffer", waits)
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	select {
	case err := <-ended:
		if err == nil || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the partition does not end")
	}
	if next := p.Next(); next >= records || topics.Sequence(next)-1 != p.Head().Applied() {
		t.Errorf("the next offset is %d, and %d is applied", next, p.Head().Applied())
	}
	full.Lock()
	isFull = false
	full.Unlock()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestDrainEnds: while the bucket takes nothing, and answers nothing, a partition ends within its drain.
func TestDrainEnds(t *testing.T) {
	r := newRig(t, 1)
	o := r.options(r.catalog(), 0)
	o.Drain = 200 * time.Millisecond
	p := r.open(o)
	defer p.Close()
	r.bucket.Add(fault.Rule{Kind: fault.Slow, Op: fault.Put, Prefix: catalog.BlockPrefix, Delay: time.Hour})
	stop := r.running(p)
	r.log.append(0, sample("t", 0, 1, time.Now().Add(-time.Hour).UnixNano(), 1), true)
	r.waitFor("an upload that hangs", func() bool { return r.bucket.Hits() > 0 })
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the last ship was successful without a bucket")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the partition does not end")
	}
}

// TestAcknowledgedIsNotRefused: records are durable, so no limit may refuse them: neither that of tenants nor
// the size of the row buffer.
func TestAcknowledgedIsNotRefused(t *testing.T) {
	r := newRig(t, 1)
	o := r.options(r.catalog(), 0)
	o.Head.Tenants, o.Head.Tenant.Series, o.Head.NewSeries = 1, 1, 1
	o.Head.RowBytes = 32 << 10
	p := r.open(o)
	stop := r.running(p)
	at := time.Now().Add(-time.Hour).UnixNano()
	want := worldtest.Content{}
	for i, tenant := range []string{"a", "b", "c"} {
		b := sample(tenant, 0, 1, at, 1)
		for j := range 3000 * (i / 2) { // the last one takes more than the buffer
			b.Series[0].Rows = append(b.Series[0].Rows, worldtest.Float(at+int64(j+1)*1e6, uint64(j)))
		}
		want.Push(b)
		r.log.append(0, b, true)
	}
	r.waitFor("the ship", func() bool { return p.Shipped() == 3 })
	if err := errors.Join(stop(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if d := want.Diff(r.content(o.Catalog)); d != "" {
		t.Error(d)
	}
}

// TestMetrics: partitions of a process have metrics of their own, which leave with them.
func TestMetrics(t *testing.T) {
	r := newRig(t, 2)
	reg, c := prometheus.NewPedanticRegistry(), r.catalog()
	for range 2 {
		var all []*Partition
		for p := range int32(2) {
			o := r.options(c, p)
			o.Head.Registerer = reg
			all = append(all, r.open(o))
		}
		r.log.append(1, sample("t", 1, 2, time.Now().UnixNano(), 1), true)
		stop := r.running(all[1])
		r.waitFor("the series", func() bool {
			n, _ := gauge(t, reg, "shale_head_active_series", "1")
			return n == 1
		})
		if n, ok := gauge(t, reg, "shale_head_active_series", "0"); !ok || n != 0 {
			t.Errorf("partition 0 has %v series, %t", n, ok)
		}
		if err := errors.Join(stop(), all[0].Close(), all[1].Close()); err != nil {
			t.Fatal(err)
		}
		if _, ok := gauge(t, reg, "shale_head_active_series", "1"); ok {
			t.Error("metrics of a closed partition are there")
		}
	}
}

// TestUnlabelledStops: rows of series without labels stop the partition at their record, and what was before
// is shipped.
func TestUnlabelledStops(t *testing.T) {
	r := newRig(t, 1)
	p := r.open(r.options(r.catalog(), 0))
	defer p.Close()
	at := time.Now().UnixNano()
	r.log.append(0, sample("a", 0, 1, at, 1), true)
	r.log.append(0, sample("b", 0, 1, at, 1), false)
	err := p.Run(t.Context())
	var unlabelled *UnlabelledError
	if !errors.As(err, &unlabelled) || unlabelled.Offset != 1 || unlabelled.Count != 1 || p.Shipped() != 1 || p.Next() != 1 {
		t.Errorf("got %v; shipped up to %d, read up to %d", err, p.Shipped(), p.Next())
	}
}

// TestPrimed: whoever takes a partition over knows the labels of rows that another owner has shipped, also of
// merged blocks with rows of other partitions, and of no others.
func TestPrimed(t *testing.T) {
	r := newRig(t, 2)
	c := r.catalog()
	at := time.Now().Add(-time.Hour).UnixNano()
	want := worldtest.Content{}
	run := func(partition int32, records int64) {
		t.Helper()
		p := r.open(r.options(c, partition))
		stop := r.running(p)
		r.waitFor("the ship", func() bool { return p.Shipped() == records })
		if err := errors.Join(stop(), p.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for i, labels := range []bool{true, false, false} {
		for partition := range int32(2) {
			for _, b := range []*worldtest.Batch{
				sample("a", partition, 2, at+int64(i)*1e9, 1), sample("b", partition, 2, at+int64(i)*1e9, 2),
			} {
				want.Push(b)
				r.log.append(int(partition), b, labels)
			}
			run(partition, int64(2+2*i))
		}
	}
	if d := want.Diff(r.content(c)); d != "" {
		t.Error(d)
	}
	p := r.open(r.options(c, 0))
	defer p.Close()
	if n := p.Head().ActiveSeries("a") + p.Head().ActiveSeries("b"); n != 2 {
		t.Errorf("%d series are known, expected those of the partition, 2", n)
	}
}

// TestFullKnownSet: series that the known set has no room for need no labels with each row.
func TestFullKnownSet(t *testing.T) {
	r := newRig(t, 1)
	o := r.options(r.catalog(), 0)
	o.Head.KnownBytes, o.ShipEvery, o.Drain = 1, time.Hour, time.Minute // the least that there is
	p := r.open(o)
	stop := r.running(p)
	at := time.Now().UnixNano()
	want := worldtest.Content{}
	all := &worldtest.Batch{Tenant: "t", Signal: model.Metrics}
	for n := range 50_000 {
		all.Series = append(all.Series, worldtest.Series{Labels: model.LabelsOf("n", fmt.Sprint(n)), Rows: []worldtest.Row{worldtest.Float(at, 1)}})
	}
	want.Push(all)
	r.log.append(0, all, true)
	r.waitFor("the first record", func() bool { return p.Next() == 1 })
	if n := p.Head().ActiveSeries("t"); n >= int64(len(all.Series)) {
		t.Fatalf("the known set has room for all %d series", n)
	}
	if err := p.Head().Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range all.Series {
		all.Series[i].Rows[0].At++
	}
	want.Push(all)
	r.log.append(0, all, false)
	r.waitFor("the second record", func() bool { return p.Next() == 2 })
	if err := errors.Join(stop(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if d := want.Diff(r.content(o.Catalog)); d != "" {
		t.Error(d[:min(len(d), 500)])
	}
}

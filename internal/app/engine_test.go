package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/app/disk"
	"github.com/shaledb/shale/internal/bucket/fault"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/retention"
	"github.com/shaledb/shale/internal/write"
)

func TestMain(m *testing.M) {
	// The page cache's library keeps a timer goroutine for the life of a cache, and connections to a store stay
	// open.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"), goleak.IgnoreAnyFunction("github.com/maypok86/otter/v2.(*cache[...]).periodicCleanUp"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// setup is an engine on a disk in memory, with a clock that the test moves.
type setup struct {
	*Engine
	mem *vfs.MemFS
	now int64
	o   EngineOptions
}

func newSetup(t *testing.T, change func(*EngineOptions)) *setup {
	t.Helper()
	s := &setup{mem: vfs.NewCrashableMem(), now: int64(1_700_000_000 * time.Second)}
	b, err := bucketfs.New(s.mem, "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	s.o = EngineOptions{
		FS: s.mem, DataDir: "/data", Bucket: b, Node: "n", MemoryBytes: 64 << 20, Idle: true,
		Now: func() int64 { return s.now },
	}
	if change != nil {
		change(&s.o)
	}
	if s.Engine, err = OpenEngine(context.Background(), s.o); err != nil {
		t.Fatal(err)
	}
	return s
}

// oneSeries is a LabelSource of one label set.
type oneSeries model.Labels

func (o oneSeries) BuildLabels(_ int, b *model.LabelsBuilder) {
	l := model.Labels(o)
	for n, v, rest, ok := l.Next(); ok; n, v, rest, ok = rest.Next() {
		b.Add(n, v)
	}
}

func (s *setup) push(tenant string, l model.Labels, at int64, v float64) error {
	b := s.Path().Batch(tenant, model.Metrics)
	defer s.Path().Recycle(b)
	b.Source = oneSeries(l)
	b.AddSample(l.Key(s.Path().Seed(), model.Metrics), at, math.Float64bits(v))
	res, err := s.Path().Push(context.Background(), b)
	if err == nil && len(res.Rejected) > 0 {
		err = fmt.Errorf("rejected: %v", res.Rejected)
	}
	return err
}

// read returns the values of all series of a tenant, in the order of keys and times.
func (s *setup) read(t *testing.T, tenant string) string {
	t.Helper()
	ctx := context.Background()
	set, err := s.Querier().Select(ctx, &model.Request{
		Tenant: tenant, Signal: model.Metrics, Range: model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	var out []string
	for set.Next(ctx) {
		var rows model.Rows
		if err := set.AppendRows(ctx, &rows); err != nil {
			t.Fatal(err)
		}
		for _, v := range rows.Values {
			out = append(out, fmt.Sprint(math.Float64frombits(v)))
		}
	}
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func (s *setup) want(t *testing.T, tenant, values string) {
	t.Helper()
	if got := s.read(t, tenant); got != values {
		t.Errorf("tenant %s has %q, want %q", tenant, got, values)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var up = model.LabelsOf("__name__", "up")

func TestTenantsDoNotSeeEachOther(t *testing.T) {
	s := newSetup(t, nil)
	must(t, s.push("a", up, s.now, 1))
	must(t, s.push("b", up, s.now, 2))
	for _, move := range []func() error{func() error { return nil }, s.Flush, s.Ship} {
		must(t, move())
		s.want(t, "a", "1")
		s.want(t, "b", "2")
		s.want(t, "c", "")
	}
	must(t, s.Close())
}

func TestOneProcessAtATime(t *testing.T) {
	s := newSetup(t, nil)
	if _, err := OpenEngine(context.Background(), s.o); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second engine on the folder: %v", err)
	}
	must(t, s.Close())
}

// The last value of a timestamp counts, wherever the values are stored, and also after a restart.
func TestLastValueCounts(t *testing.T) {
	s := newSetup(t, nil)
	moves := []func() error{s.Flush, s.Ship, func() error { return nil }, s.Ship, s.Flush}
	for i, move := range moves {
		must(t, s.push("a", up, s.now, float64(i)))
		must(t, move())
		s.want(t, "a", fmt.Sprint(i))
	}
	must(t, s.Close())
	var err error
	s.Engine, err = OpenEngine(context.Background(), s.o)
	must(t, err)
	s.want(t, "a", fmt.Sprint(len(moves)-1))
	must(t, s.Close())
}

// A new data folder on an old bucket continues the numbers of the bucket, so that its batches are newer.
func TestNewFolderOnAnOldBucket(t *testing.T) {
	s := newSetup(t, nil)
	at := s.now
	for v := range 3 {
		must(t, s.push("a", up, at, float64(v)))
	}
	must(t, s.Ship())
	must(t, s.Close())
	for i, dir := range []string{"/data2", "/data3", "/data2", "/data"} {
		s.o.DataDir = dir
		s.now++ // names the journal of a new folder
		var err error
		s.Engine, err = OpenEngine(context.Background(), s.o)
		must(t, err)
		v := float64(10 + i)
		must(t, s.push("a", up, at, v))
		s.want(t, "a", fmt.Sprint(v))
		must(t, s.Ship())
		s.want(t, "a", fmt.Sprint(v))
		must(t, s.push("b", up, at, v))
		// A crash: the journal is replayed after the gap.
		s.o.FS = s.o.FS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})
		b, err := bucketfs.New(s.o.FS, "/bucket")
		must(t, err)
		must(t, s.Close())
		s.o.Bucket = b
		s.Engine, err = OpenEngine(context.Background(), s.o)
		must(t, err)
		s.want(t, "a", fmt.Sprint(v))
		s.want(t, "b", fmt.Sprint(v))
		must(t, s.Close())
	}
}

// keeping keeps all series equally long.
func keeping(keep time.Duration) *retention.Rules {
	r, err := retention.Compile(retention.List{}, keep)
	if err != nil {
		panic(err)
	}
	return r
}

// olderThan is a retention that is the same for all blocks.
func olderThan(before int64) func(*catalog.Block) bool {
	return func(b *catalog.Block) bool { return b.Newest() < before }
}

func TestRetention(t *testing.T) {
	s := newSetup(t, func(o *EngineOptions) { o.Retention = keeping(24 * time.Hour) })
	must(t, s.push("a", up, s.now, 1))
	must(t, s.Ship())
	s.now += int64(23 * time.Hour)
	must(t, s.push("a", up, s.now, 2))
	s.want(t, "a", "1 2")
	s.now += int64(2 * time.Hour)
	s.want(t, "a", "2") // hidden before it is deleted
	expire := func() int {
		r := startExpiry(s.catalog, s.compactor, s.rules, s.o)
		for begin := time.Now(); len(s.catalog.Live()) > 1 && time.Since(begin) < time.Second; {
			time.Sleep(time.Millisecond)
		}
		r.close()
		return len(s.catalog.Live())
	}
	if n := expire(); n != 1 {
		t.Errorf("a clock that is ahead of all data has deleted it: %d blocks", n)
	}
	must(t, s.push("a", up, s.now, 3))
	must(t, s.Ship())
	if before, after := 3, expire(); after >= before {
		t.Errorf("%d blocks are left", after)
	}
	s.want(t, "a", "2 3")
	for _, b := range s.catalog.Live() {
		if b.Range.Max < s.now-int64(24*time.Hour) {
			t.Errorf("block %s has expired and is still there", b.ID)
		}
	}
	must(t, s.Close())
}

// A bucket that fails prevents no write and no read, and receives all data once it works again.
func TestFailingBucket(t *testing.T) {
	var b *fault.Bucket
	s := newSetup(t, func(o *EngineOptions) {
		b = fault.New(o.Bucket)
		o.Bucket = b
	})
	must(t, s.push("a", up, s.now, 1))
	want := "1"
	for i, r := range []fault.Rule{
		{Kind: fault.Fail, Op: fault.Put}, {Kind: fault.LostAck, Op: fault.Put}, {Kind: fault.Partial, Op: fault.Put},
	} {
		b.Add(r)
		if err := s.Ship(); !errors.Is(err, model.ErrTransient) {
			t.Errorf("a ship to a bucket that is away: %v", err)
		}
		must(t, s.push("a", up, s.now-int64(i+1), float64(i+2)))
		want = fmt.Sprint(i+2, " ", want)
		s.want(t, "a", want)
		b.Clear()
	}
	must(t, s.Ship())
	s.want(t, "a", want)
	if n := len(s.catalog.Live()); n == 0 {
		t.Error("nothing has reached the bucket")
	}
	must(t, s.Close())
}

func TestFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("/data", 0o755))
	const limit = 64 << 20
	d := disk.Watch(mem, "/data", limit, nil)
	defer d.Close()
	s := newSetup(t, func(o *EngineOptions) { o.Disk = d })
	must(t, s.push("a", up, s.now, 1))
	large := func(bytes int) {
		f, err := mem.Create("/data/large", vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = f.Write(make([]byte, bytes))
		must(t, err)
		must(t, f.Close())
		d.Measure()
	}
	large(limit * 7 / 8)
	if _, err := d.Reserve(limit / 8); !errors.Is(err, model.ErrTransient) {
		t.Errorf("room in a full folder: %v", err)
	}
	var r *write.Refused
	if err := s.push("a", up, s.now-1, 2); !errors.As(err, &r) || r.Status != 503 || r.Limit != "disk" || r.RetryAfter == 0 {
		t.Errorf("a full disk: %v", err)
	}
	s.want(t, "a", "1")
	// What the last measurement did not see is refused by the journal.
	must(t, mem.Remove("/data/large"))
	d.Measure()
	d.Wrote(limit)
	if err := s.push("a", up, s.now-1, 2); !errors.As(err, &r) || r.Status != 503 || r.Limit != "disk" || r.RetryAfter == 0 {
		t.Errorf("a disk that has just become full: %v", err)
	}
	d.Measure()
	release, err := d.Reserve(limit / 2)
	must(t, err)
	if _, err := d.Reserve(limit / 2); !errors.Is(err, model.ErrTransient) {
		t.Errorf("room for two halves: %v", err)
	}
	release()
	release()
	if n := d.Reserved(); n != 0 {
		t.Errorf("%d bytes are still reserved", n)
	}
	must(t, s.push("a", up, s.now-1, 2))
	s.want(t, "a", "2 1")
	must(t, s.Close())
}

package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/write"
)

// changesDisk reports whether an operation needs a writable disk.
func changesDisk(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpLink, errorfs.OpRename, errorfs.OpReuseForWrite, errorfs.OpMkdirAll,
		errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo, errorfs.OpFilePreallocate:
		return true
	case errorfs.OpRemove, errorfs.OpRemoveAll:
		return false // a full disk allows it
	}
	return false
}

// TestDiskFaults lets a disk fail for a time: it is full, read-only, cannot sync, or does any of these now
// and then. Acknowledged rows are never lost, every refusal is transient, no result is wrong, and the engine
// recovers with the disk.
func TestDiskFaults(t *testing.T) {
	sync := func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
	}
	for name, f := range map[string]struct {
		err     error
		applies func(errorfs.Op) bool
		share   float64
	}{
		"full":            {syscall.ENOSPC, changesDisk, 1},
		"read-only":       {syscall.EROFS, func(op errorfs.Op) bool { return changesDisk(op) || op.Kind == errorfs.OpRemove }, 1},
		"syncs fail":      {syscall.EIO, sync, 1},
		"some syncs fail": {syscall.EIO, sync, 0.3},
		"some fail":       {syscall.EIO, changesDisk, 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				r := rand.New(rand.NewPCG(seed, 7))
				toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
					if f.applies(op) && r.Float64() < f.share {
						return f.err
					}
					return nil
				})}
				if err := surviveDisk(t, toggle, r); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
}

// surviveDisk writes before, during and after the fault.
func surviveDisk(t *testing.T, fault *errorfs.Toggle, r *rand.Rand) error {
	s := newSetup(t, func(o *EngineOptions) {
		o.FS = errorfs.Wrap(o.FS, fault)
		b, err := bucketfs.New(o.FS, "/bucket")
		must(t, err)
		o.Bucket = b
		o.Write.MaxFuture = time.Hour
	})
	acked := map[int]bool{}
	next, refused := 0, 0
	work := func(n int, healthy bool) error {
		for range n {
			err := s.pushEither("a", next)
			var no *write.Refused
			switch {
			case err == nil:
				acked[next] = true
			case healthy || !errors.As(err, &no) || no.Status != 503 || no.RetryAfter == 0:
				return fmt.Errorf("push %d: %w", next, err)
			default:
				refused++
			}
			next++
			switch r.IntN(5) {
			case 0:
				err = s.Flush()
			case 1:
				err = s.Ship()
			case 2:
				_, err = s.head.Work(context.Background())
			default:
				err = nil
			}
			if err != nil && healthy {
				return fmt.Errorf("after push %d: %w", next-1, err)
			}
			if err := sawAll(s, acked, next); err != nil {
				return fmt.Errorf("after push %d: %w", next-1, err)
			}
		}
		return nil
	}
	if err := work(12, true); err != nil {
		return err
	}
	fault.On()
	if err := work(15, false); err != nil {
		return fmt.Errorf("while the disk fails: %w", err)
	}
	fault.Off()
	if refused == 0 {
		return errors.New("nothing was refused: the disk did not fail")
	}
	if err := work(12, true); err != nil {
		return fmt.Errorf("when the disk works again: %w", err)
	}
	if err := s.Close(); err != nil {
		return err
	}
	var err error
	if s.Engine, err = OpenEngine(context.Background(), s.o); err != nil {
		return err
	}
	if err := sawAll(s, acked, next); err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	if err := s.Close(); err != nil {
		return err
	}
	checkFolder(t, s.mem)
	return nil
}

// pushEither pushes the n-th row: a sample or a line.
func (s *setup) pushEither(tenant string, n int) error {
	if n%2 == 1 {
		return s.pushLines(tenant, app, s.now+int64(n), fmt.Sprint(n))
	}
	return s.push(tenant, up, s.now+int64(n), float64(n))
}

// TestCloseWhenBuffersAreFull: while no part can be written, the buffers fill and pushes wait. The engine
// closes nevertheless, and the next start finds all acknowledged rows.
func TestCloseWhenBuffersAreFull(t *testing.T) {
	var broken atomic.Bool
	s := newSetup(t, func(o *EngineOptions) {
		o.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if broken.Load() && op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".part") {
				return syscall.EIO
			}
			return nil
		}))
		b, err := bucketfs.New(o.FS, "/bucket")
		must(t, err)
		o.Bucket, o.Idle, o.MemoryBytes = b, false, 8<<20
	})
	broken.Store(true)
	var acked atomic.Int64
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		for n := 0; ; n += 1000 {
			b := s.Path().Batch("a", model.Metrics)
			b.Source = oneSeries(up)
			for i := range 1000 {
				b.Samples.Append(s.now-int64(n+i), math.Float64bits(1), 0)
			}
			b.EndSeries(up.Key(s.Path().Seed(), model.Metrics))
			if _, err := s.Path().Push(context.Background(), b); err != nil {
				return
			}
			acked.Add(1000)
		}
	}()
	for last := int64(-1); last != acked.Load(); { // until a push waits
		last = acked.Load()
		time.Sleep(300 * time.Millisecond)
	}
	if err := s.Close(); err == nil {
		t.Error("closing did not tell that the buffers could not be flushed")
	}
	<-waiting
	broken.Store(false)
	var err error
	s.Engine, err = OpenEngine(context.Background(), s.o)
	must(t, err)
	got, err := ask(s.Engine, question{tenant: "a", signal: model.Metrics, family: model.Samples, rg: everything})
	must(t, err)
	if n := int64(len(got[worldtest.ID{Tenant: "a", Signal: model.Metrics, Labels: string(up), Family: model.Samples}])); n < acked.Load() {
		t.Errorf("%d samples are there and %d were acknowledged", n, acked.Load())
	}
	must(t, s.Close())
	checkFolder(t, s.o.FS)
}

// sawAll queries the one series: it must have every acknowledged value and no value that was never sent. It
// may have a refused value: the disk may have stored it before it failed.
func sawAll(s *setup, acked map[int]bool, next int) error {
	got, err := ask(s.Engine, question{tenant: "a", signal: model.Metrics, family: model.Samples, rg: everything})
	if err != nil {
		return err
	}
	seen := map[int]bool{}
	req := &model.Request{Tenant: "a", Signal: model.Logs, Range: everything}
	var foreign error
	err = eachLine(s.Engine, req, func(_ model.Labels, l readtest.Line) {
		n := int(l.Time - s.now)
		if n < 0 || n >= next || l.Text != fmt.Sprint(n) || seen[n] {
			foreign = fmt.Errorf("a line that nobody sent, or a second time: %q of %d", l.Text, l.Time)
		}
		seen[n] = true
	})
	if err := errors.Join(err, foreign); err != nil {
		return err
	}
	for _, rows := range got {
		for _, x := range rows {
			n := int(x.At - s.now)
			if n < 0 || n >= next || x.Bits != math.Float64bits(float64(n)) {
				return fmt.Errorf("a row that nobody sent: %s", x)
			}
			seen[n] = true
		}
	}
	for n := range acked {
		if !seen[n] {
			return fmt.Errorf("acknowledged value %d is missing", n)
		}
	}
	return nil
}

// TestBitFlips flips single bits in every file of a closed engine, and truncates files. Then the engine must
// refuse to start or to query, with an error that names the file, or the result must be right. A journal may
// lose its tail, like after a torn write, and the log says so.
func TestBitFlips(t *testing.T) {
	s := newSetup(t, func(o *EngineOptions) { o.Write.MaxFuture = time.Hour })
	for i := range 60 {
		must(t, s.push("a", model.LabelsOf("__name__", "m", "i", fmt.Sprint(i%7)), s.now+int64(i), float64(i)))
		must(t, s.pushLines("a", model.LabelsOf("app", "shop", "i", fmt.Sprint(i%7)), s.now+int64(i), fmt.Sprint("line ", i)))
		switch i {
		case 15, 30:
			must(t, s.Ship())
		case 20, 40, 45:
			must(t, s.Flush())
		}
	}
	want, err := askBoth(s.Engine)
	must(t, err)
	disk := s.mem.CrashClone(vfs.CrashCloneCfg{})
	must(t, s.Close())

	r := rand.New(rand.NewPCG(1, 1))
	outcomes := map[string]int{}
	for _, file := range filesUnder(t, disk, "/") {
		if strings.HasSuffix(file, "LOCK") {
			continue
		}
		size := sizeOf(t, disk, file)
		for range 25 / racetest.Fewer {
			at := r.Int64N(max(size, 1))
			for _, cut := range []bool{false, true} {
				if size == 0 || cut && r.IntN(4) > 0 {
					continue
				}
				damaged := disk.CrashClone(vfs.CrashCloneCfg{})
				what := fmt.Sprintf("%s: bit %d of byte %d of %d", file, at%8, at, size)
				if cut {
					what = fmt.Sprintf("%s: cut to %d of %d bytes", file, at, size)
				}
				damage(t, damaged, file, at, cut)
				outcome, err := tryDamaged(damaged, file, want)
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
				outcomes[outcome]++
			}
		}
	}
	t.Logf("outcomes: %v", outcomes)
	if outcomes["the right answer"] == 0 || outcomes["did not start"] == 0 || outcomes["no answer"] == 0 {
		t.Error("the test has not seen all outcomes")
	}
}

// askBoth queries all samples and lines of a tenant.
func askBoth(e *Engine) (worldtest.Content, error) {
	got, err := ask(e, question{tenant: "a", signal: model.Metrics, family: model.Samples, rg: everything})
	if err != nil {
		return nil, err
	}
	lines, err := ask(e, question{tenant: "a", signal: model.Logs, family: model.Text, needle: "line", rg: everything})
	for id, rows := range lines {
		got[id] = rows
	}
	return got, err
}

// tryDamaged opens an engine on a damaged disk and queries it. It returns the outcome, and an error if the
// outcome is wrong.
func tryDamaged(fs *vfs.MemFS, file string, want worldtest.Content) (string, error) {
	var log bytes.Buffer
	o := EngineOptions{
		FS: fs, DataDir: "/data", Node: "n", MemoryBytes: 64 << 20, Idle: true, Now: func() int64 { return worldBegin },
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	var err error
	if o.Bucket, err = bucketfs.New(fs, "/bucket"); err != nil {
		return "did not start", named(err, file)
	}
	e, err := OpenEngine(context.Background(), o)
	if err != nil {
		return "did not start", named(err, file)
	}
	defer func() { _ = e.Close() }()
	got, err := askBoth(e)
	if err != nil {
		return "no answer", named(err, file)
	}
	d := want.Diff(got)
	if d == "" {
		return "the right answer", nil
	}
	if strings.Contains(file, "/journal/") && fewer(got, want) && (strings.Contains(log.String(), base(file)) || strings.Contains(log.String(), "lost its end") || strings.Contains(log.String(), "the journal ends before")) {
		return "without the journal's end", nil
	}
	return "a wrong answer", fmt.Errorf("%s\nlog: %s", d, log.String())
}

// named returns an error unless err has a class and names the file.
func named(err error, file string) error {
	if !errors.Is(err, model.ErrCorrupt) && !errors.Is(err, model.ErrInvalid) {
		return fmt.Errorf("of no fitting class: %w", err)
	}
	if !strings.Contains(err.Error(), base(file)) {
		return fmt.Errorf("does not name the file: %w", err)
	}
	return nil
}

func base(file string) string { return file[strings.LastIndexByte(file, '/')+1:] }

// fewer reports whether all rows of got are in want.
func fewer(got, want worldtest.Content) bool {
	for id, rows := range got {
		for _, x := range rows {
			if !slices.Contains(want[id], x) {
				return false
			}
		}
	}
	return true
}

func filesUnder(t *testing.T, fs vfs.FS, dir string) (files []string) {
	names, err := fs.List(dir)
	must(t, err)
	slices.Sort(names)
	for _, n := range names {
		path := fs.PathJoin(dir, n)
		st, err := fs.Stat(path)
		must(t, err)
		if st.IsDir() {
			files = append(files, filesUnder(t, fs, path)...)
		} else {
			files = append(files, path)
		}
	}
	return files
}

func sizeOf(t *testing.T, fs vfs.FS, file string) int64 {
	st, err := fs.Stat(file)
	must(t, err)
	return st.Size()
}

// damage flips a bit of a file, or truncates it.
func damage(t *testing.T, fs vfs.FS, file string, at int64, cut bool) {
	f, err := fs.Open(file)
	must(t, err)
	data := make([]byte, sizeOf(t, fs, file))
	_, err = f.ReadAt(data, 0)
	if err != io.EOF {
		must(t, err)
	}
	must(t, f.Close())
	if cut {
		data = data[:at]
	} else {
		data[at] ^= 1 << (at % 8)
	}
	out, err := fs.Create(file, vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = out.Write(data)
	must(t, err)
	must(t, errors.Join(out.Sync(), out.Close()))
}

// TestAnyAge pushes samples and lines of thirty days and of 1970 in random order, and reads them from
// buffers, parts and blocks.
func TestAnyAge(t *testing.T) {
	s := newSetup(t, nil)
	truth := worldtest.Content{}
	r := rand.New(rand.NewPCG(3, 3))
	for i := range 400 {
		at := s.now - r.Int64N(int64(30*24*time.Hour))
		if i%10 == 0 {
			at = int64(i) * int64(time.Second)
		}
		for _, b := range []*worldtest.Batch{
			{Tenant: "a", Signal: model.Metrics, Series: []worldtest.Series{{Labels: up, Rows: []worldtest.Row{worldtest.Float(at, math.Float64bits(float64(i)))}}}},
			{Tenant: "a", Signal: model.Logs, Series: []worldtest.Series{{Labels: app, Rows: []worldtest.Row{worldtest.LineRow(at, &model.Line{Text: fmt.Append(nil, i)})}}}},
		} {
			must(t, pushBatch(s.Path(), b))
			truth.Push(b)
		}
		if i%37 == 0 {
			must(t, s.Flush())
		}
		if i%90 == 0 {
			must(t, s.Ship())
		}
		s.now += int64(r.IntN(3)-1) * int64(3*time.Hour) // a clock that jumps back and forth
	}
	for _, move := range []func() error{s.Flush, s.Ship, func() error { return s.Compact(context.Background()) }} {
		must(t, move())
		for _, rg := range []model.TimeRange{everything, {Min: 0, Max: int64(time.Hour)}} {
			must(t, check(s.Engine, truth, question{tenant: "a", signal: model.Metrics, family: model.Samples, rg: rg}))
			must(t, check(s.Engine, truth, question{tenant: "a", signal: model.Logs, family: model.Text, rg: rg}))
		}
	}
	must(t, s.Close())
	checkFolder(t, s.mem)
}

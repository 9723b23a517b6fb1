package head

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/rows"
)

// fullDisk lets writing operations fail, from one of them on, as a full disk does.
type fullDisk struct {
	mu    sync.Mutex
	until int // how many more operations succeed; negative: all
	kinds map[errorfs.OpKind]bool
	seen  int
}

var errFull = fmt.Errorf("write: %w", syscall.ENOSPC)

func (d *fullDisk) inject(op errorfs.Op) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.kinds[op.Kind] {
		return nil
	}
	d.seen++
	switch {
	case d.until < 0:
		return nil
	case d.until == 0:
		return errFull
	}
	d.until--
	return nil
}

func (d *fullDisk) fill(after int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until, d.seen = after, 0
}

func onFullDisk(d *fullDisk) func(*Options) {
	d.until = -1
	d.kinds = map[errorfs.OpKind]bool{
		errorfs.OpCreate: true, errorfs.OpFileWrite: true, errorfs.OpFileSync: true, errorfs.OpFileSyncData: true, errorfs.OpRename: true,
	}
	return func(o *Options) { o.FS = errorfs.Wrap(o.FS, d.faults()) }
}

func (d *fullDisk) faults() errorfs.Injector { return errorfs.InjectorFunc(d.inject) }

// TestFullDisk lets the disk fill up before each single operation of flushes, merges, sorting into windows
// and ships. Whatever was applied can be read meanwhile, when there is room again, and after a crash; no file
// is left over.
func TestFullDisk(t *testing.T) {
	ctx := context.Background()
	sort := func(h *Head) error {
		if in := h.group(model.Metrics, local.Data, local.Young); len(in) > 0 {
			return h.sortIntoWindows(ctx, model.Metrics, in)
		}
		return nil
	}
	labels := func(h *Head) error {
		return h.mergeLabels(ctx, model.Metrics, h.group(model.Metrics, local.Labels, local.Young))
	}
	for name, work := range map[string]func(*Head) error{
		"flush": func(h *Head) error { return h.Flush(ctx) },
		"sort":  sort,
		"merge": func(h *Head) error {
			return h.mergeInto(ctx, model.Metrics, local.Young, h.group(model.Metrics, local.Data, local.Young))
		},
		"label": labels,
		"ship":  func(h *Head) error { return h.Ship(ctx) },
		"about": func(h *Head) error {
			if err := h.PutMetadata("a", "f", model.Metadata{Help: "help"}); err != nil {
				return err
			}
			h.saveMetadata(true)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			for after := 0; ; after++ {
				d := new(fullDisk)
				r := newRig(t, onFullDisk(d))
				rows := map[int64]float64{}
				for i := range 3 {
					at := r.now - int64(i)*int64(3*time.Hour)
					rows[at] = float64(i)
					r.push("a", 0, 30, at, rows[at])
					r.push("b", 10*i, 10*i+10, r.now, 1) // comes with labels each time
					if i < 2 || name != "flush" && name != "ship" {
						r.must(r.head.Flush(ctx))
					}
				}
				d.fill(after)
				err := work(r.head)
				d.mu.Lock()
				enough := d.seen <= after
				d.mu.Unlock()
				switch {
				case enough && err != nil:
					t.Fatalf("after %d operations: %v", after, err)
				case !enough && err != nil && !(errors.Is(err, model.ErrTransient) && strings.Contains(err.Error(), syscall.ENOSPC.Error())):
					t.Fatalf("after %d operations: %v", after, err)
				}
				r.expect("a", 0, 30, rows)
				if after%2 == 0 {
					d.fill(-1)
					r.o.FS = r.mem
					r.crash()
					r.expect("a", 0, 30, rows)
				}
				d.fill(-1)
				r.must(work(r.head))
				r.must(r.head.Flush(ctx))
				r.expect("a", 0, 30, rows)
				r.expect("b", 0, 30, map[int64]float64{r.now: 1})
				r.noLeftovers()
				r.must(r.head.Close())
				r.must(Check(ctx, r.mem, "/head"))
				r.head = nil
				if enough {
					if after < 3 {
						t.Fatalf("only %d operations", after)
					}
					return
				}
			}
		})
	}
}

// TestFullDiskInTheBackground: the background work counts, logs and repeats what fails, while senders push
// until the buffers are full and then wait; when there is room, all of it gets through.
func TestFullDiskInTheBackground(t *testing.T) {
	d := new(fullDisk)
	r := newRig(t, func(o *Options) {
		onFullDisk(d)(o)
		o.RowBytes, o.FlushEvery = 4<<20/racetest.Fewer, 5*time.Millisecond
	})
	d.fill(0)
	r.head.Start()
	const batches, each = 40, 5000 / racetest.Fewer
	applied := make(chan struct{})
	go func() {
		defer close(applied)
		for i := range batches {
			r.push("a", i*each, (i+1)*each, r.now, 1)
		}
	}()
	waitFor(t, "errors", func() bool { return r.metric("shale_head_background_errors_total") >= 2 })
	waitFor(t, "a full buffer", func() bool {
		r.head.mu.Lock()
		defer r.head.mu.Unlock()
		return r.head.fullLocked(rows.PeakBytes(each*rows.RowBytes, 0))
	})
	select {
	case <-applied:
		t.Error("there was room for everything")
	default:
	}
	if log := r.log.String(); !strings.Contains(log, syscall.ENOSPC.Error()) || !strings.Contains(log, "work=flush") {
		t.Errorf("the log says %.300s", log)
	}
	d.fill(-1)
	<-applied
	r.expect("a", 0, batches*each, map[int64]float64{r.now: 1})
}

func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// TestRecover replays a journal that is longer than the buffers, also when the disk is full at first or the
// start is called off.
func TestRecover(t *testing.T) {
	d := new(fullDisk)
	r := newRig(t, func(o *Options) {
		onFullDisk(d)(o)
		o.RowBytes = 2 << 20 / racetest.Fewer
	})
	const batches, each = 60, 5000 / racetest.Fewer
	var journal []pendingBatch
	for i := range batches {
		b := r.batchOf("a", i*each, (i+1)*each, r.now, 1)
		for j := range each {
			b.Labels.Append(uint32(j), series(i*each+j))
		}
		journal = append(journal, pendingBatch{uint64(i) + 1, b})
	}
	replay := func(ctx context.Context, from uint64, fn func(uint64, *model.Batch) error) error {
		for _, p := range journal[from-1:] {
			if err := fn(p.seq, p.b); err != nil {
				return err
			}
			r.head.mu.Lock()
			held := r.head.mu.buffers.rowBytes
			r.head.mu.Unlock()
			if held > r.o.RowBytes+rows.ChunkRows*rows.RowBytes {
				t.Errorf("%d bytes are buffered, and %d are allowed", held, r.o.RowBytes)
			}
		}
		return nil
	}
	d.fill(0)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- r.head.Recover(ctx, replay) }()
	waitFor(t, "the disk to be full", func() bool { return r.metric("shale_head_background_errors_total") > 0 })
	cancel()
	if err := <-stopped; !errors.Is(err, model.ErrClosed) {
		t.Errorf("called off: %v", err)
	}
	d.fill(-1)
	r.must(r.head.Close())
	r.open()
	r.must(r.head.Recover(context.Background(), replay))
	r.head.Start()
	r.expect("a", 0, batches*each, map[int64]float64{r.now: 1})
	if r.head.Covered() == 0 {
		t.Error("nothing was flushed")
	}
}

package compact

import (
	"fmt"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// onDisk is a bucket on the disk, for merges of blocks that are too large for the memory.
type onDisk struct {
	*fs.Bucket
	c *catalog.Catalog
}

func newOnDisk(t testing.TB) *onDisk {
	t.Helper()
	b, err := fs.New(vfs.Default, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(ctx, b, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &onDisk{b, c}
}

// keyed is a series with its key.
type keyed struct {
	k model.Key
	l model.Labels
}

// inOrder brings series into the order of their keys.
func inOrder(signal model.Signal, series []model.Labels) []keyed {
	all := make([]keyed, 0, len(series))
	for _, l := range series {
		all = append(all, keyed{l.Key(seed, signal), l})
	}
	slices.SortFunc(all, func(a, b keyed) int { return a.k.Compare(b.k) })
	return all
}

// ship ships the n-th block: of one tenant and these series, of which rows writes those of the i-th.
func (d *onDisk) ship(t testing.TB, n int, signal model.Signal, series []keyed, rows func(pw *part.Writer, i int) error) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	file, err := vfs.Default.Create(t.TempDir()+"/block", vfs.WriteCategoryUnspecified)
	must(err)
	defer file.Close()
	seq := uint64(n + 1)
	pw := part.NewWriter(file, part.WriterOptions{
		Seed: seed, Signal: signal, Node: "n1", SeqLo: seq, SeqHi: seq, Labels: true, Level: part.Dense, Created: dayZero,
	})
	for i := range series {
		must(pw.Series("tenant", series[i].k, series[i].l))
		must(rows(pw, i))
	}
	m, size, err := pw.Finish()
	must(err)
	block := catalog.Block{
		ID: fmt.Sprint("block-", n), Node: "n1", Signal: signal, SeqLo: seq, SeqHi: seq, Range: m.Range, Series: m.Series,
		Samples: m.Samples, Lines: m.Text, LineBytes: m.TextBytes, Bytes: size, Created: dayZero,
		KeyMin: series[0].k, KeyMax: series[len(series)-1].k, Tenants: []string{"tenant"},
	}
	must(d.Put(ctx, catalog.ObjectName(block.ID), &fileReader{file, 0}, size))
	must(commit(d.c, block))
}

// fileReader reads a file from its beginning.
type fileReader struct {
	f  vfs.File
	at int64
}

func (r *fileReader) Read(p []byte) (int, error) {
	n, err := r.f.ReadAt(p, r.at)
	r.at += int64(n)
	return n, err
}

// compactor returns one whose clock stands.
func (d *onDisk) compactor(t testing.TB, now, memoryBytes int64) *Compactor {
	t.Helper()
	c, err := New(Options{
		Catalog: d.c, Bucket: d.Bucket, FS: vfs.Default, Dir: t.TempDir(), Seed: seed, MemoryBytes: memoryBytes, Now: func() int64 { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mergeDays merges all blocks, of so many days from dayZero on, into days within little memory: while it has
// budget for its work, the heap must not grow by more than bound.
func (d *onDisk) mergeDays(t *testing.T, days int, budget, bound int64) (comp *Compactor, made []catalog.Block) {
	t.Helper()
	now := dayZero + int64(days+1)*int64(day)
	comp = d.compactor(t, now, budget)
	j := &job{why: becauseDay, inputs: d.c.Live(), cells: dayCells(rangeOf(d.c.Live()), now, now)}
	// What is garbage and not yet collected counts too; so there is to be little of it.
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	before, began := heap(), time.Now()
	peak := watchHeap()
	made, err := comp.run(ctx, j, nil)
	most := int64(peak()) - int64(before)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak of %d MB for %d blocks in %s", most/1e6, len(made), time.Since(began))
	if most > bound {
		t.Errorf("the heap grew by %d bytes; the bound is %d", most, bound)
	}
	return comp, made
}

func heap() uint64 {
	s := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtimemetrics.Read(s)
	return s[0].Value.Uint64()
}

// watchHeap samples the heap until the function that it returns is called, which gives the most that there
// was.
func watchHeap() func() uint64 {
	var most uint64
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				most = max(most, heap())
			}
		}
	})
	return func() uint64 {
		close(stop)
		done.Wait()
		return most
	}
}

package compact

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// TestPeakOfLines merges late blocks in which one stream has far more lines than the merge may hold, on many days, beside small
// streams. What a merge holds does not grow with the lines of a stream.
func TestPeakOfLines(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("it writes a hundred megabytes, and the race detector has memory of its own")
	}
	const days, perDay, budget, bound = 12, 4 << 20, 16 << 20, 64 << 20
	bucket, err := fs.New(vfs.Default, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(ctx, bucket)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for n := range 2 {
		lines += shipLines(t, c, bucket, n, days, perDay)
	}
	now := dayZero + (days+1)*int64(day)
	comp, err := New(Options{
		Catalog: c, Bucket: bucket, FS: vfs.Default, Dir: t.TempDir(), Seed: seed, MemoryBytes: budget, Now: func() int64 { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	j := &job{why: becauseDay, inputs: c.Live(), cells: dayCells(span(c.Live()), now, now)}
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	before, began := heap(), time.Now()
	peak := watchHeap()
	made, err := comp.run(ctx, j, nil)
	most := int64(peak()) - int64(before)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak of %d MB for %d lines in %s", most/1e6, lines, time.Since(began))
	if most > bound {
		t.Errorf("the heap grew by %d bytes; the bound is %d", most, bound)
	}
	total := uint64(0)
	for i := range made {
		if _, ok := inOneDay(made[i].Range); !ok {
			t.Errorf("a block of the times %v", made[i].Range)
		}
		r, err := (&merge{c: comp, ctx: ctx}).reader(ctx, &made[i], greatestWindow)
		if err == nil {
			err = part.Check(ctx, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		if m := r.Meta(); made[i].Lines != m.Text || made[i].LineBytes != m.TextBytes {
			t.Errorf("the record counts %d lines of %d bytes, and the block has %d of %d", made[i].Lines, made[i].LineBytes, m.Text, m.TextBytes)
		}
		total += r.Meta().Text
	}
	if total != uint64(lines) || len(made) != days {
		t.Errorf("%d lines in %d blocks, of %d", total, len(made), lines)
	}
}

// shipLines ships a block of one tenant: a large stream and 50 small ones, with lines on each day whose times lie between those
// of the other blocks. It returns how many lines that are.
func shipLines(t *testing.T, c *catalog.Catalog, bucket *fs.Bucket, n, days, perDay int) (lines int) {
	t.Helper()
	file, err := vfs.Default.Create(t.TempDir()+"/block", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seq := uint64(n + 1)
	pw := part.NewWriter(file, part.WriterOptions{
		Seed: seed, Signal: model.Logs, Node: "n1", SeqLo: seq, SeqHi: seq, Labels: true, Level: part.Dense, Created: dayZero,
	})
	r := rand.New(rand.NewPCG(seq, 1))
	block := catalog.Block{ID: fmt.Sprint("lines-", n), Node: "n1", Signal: model.Logs, SeqLo: seq, SeqHi: seq, Created: dayZero, Tenants: []string{"tenant"}}
	for i, l := range sortedStreams(51) {
		k := l.Key(seed, model.Logs)
		if err := pw.Series("tenant", k, l); err != nil {
			t.Fatal(err)
		}
		if block.KeyMax = k; i == 0 {
			block.KeyMin = k
		}
		size := perDay
		if i != 17 {
			size = 2000
		}
		for d := range days {
			rows := linesOfADay(r, d, n, size)
			lines += rows.Len()
			clip := model.TimeRange{Min: rows.Times[0], Max: rows.Times[rows.Len()-1]}
			if err := pw.Text(ctx, []part.Text{part.TextOfRows(rows)}, clip); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, size, err := pw.Finish()
	if err != nil {
		t.Fatal(err)
	}
	block.Range, block.Series, block.Lines, block.LineBytes, block.Bytes = m.Range, m.Series, m.Text, m.TextBytes, size
	if err := errors.Join(bucket.Put(ctx, catalog.ObjectName(block.ID), &fileReader{file, 0}, size), c.Commit(ctx, block)); err != nil {
		t.Fatal(err)
	}
	return lines
}

// sortedStreams are label sets in the order of their keys.
func sortedStreams(n int) []model.Labels {
	byKey := make([]model.Labels, 0, n)
	for i := range n {
		byKey = append(byKey, model.LabelsOf("service_name", "shop", "pod", fmt.Sprint(i)))
	}
	slices.SortFunc(byKey, func(a, b model.Labels) int { return a.Key(seed, model.Logs).Compare(b.Key(seed, model.Logs)) })
	return byKey
}

// linesOfADay makes lines of about so many bytes, spread over a day; those of block n lie n milliseconds later.
func linesOfADay(r *rand.Rand, d, n, size int) *model.TextRows {
	rows := &model.TextRows{}
	const about = 60
	step := int64(day) / int64(size/about+2)
	for at := dayZero + int64(d)*int64(day) + int64(n)*int64(time.Millisecond); len(rows.Bytes) < size; at += step {
		rows.Times = append(rows.Times, at)
		rows.Bytes = fmt.Appendf(rows.Bytes, "level=info msg=%q duration=%dms path=/api/%d user=%x", "request completed", r.IntN(1000), r.IntN(50), r.Uint64())
		rows.Ends = append(rows.Ends, uint32(len(rows.Bytes)))
	}
	return rows
}

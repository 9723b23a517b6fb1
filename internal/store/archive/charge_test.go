package archive

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/catalog"
)

// TestCharges: a cursor charges what it holds, however it ends, and gives it back when it is closed.
func TestCharges(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		w, a := newWorld(t)
		blocks := w.Overlapping(model.Always(), model.Metrics, "a")
		held := int64(0)
		for i := range blocks {
			r, err := a.openBlock(ctx, &blocks[i], request("a", model.Always()), newLanes())
			if err != nil {
				t.Fatal(err)
			}
			r.close()
			if n := r.Meta().Tenant("a"); n != nil && n.Samples > 0 {
				held += cursorCharge(&blocks[i]) + rowsCharge(&blocks[i], n.Samples+n.Exemplars) + r.FooterBytes() + 4*int64(n.Series)
			}
		}
		pool := &model.QueryPool{MaxBytes: 1 << 40}
		req := request("a", model.Always())
		req.Quota.Pool = pool
		cs, err := a.Select(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		if pool.Used() < held || pool.Used() > held+int64(len(cs))*1024 {
			t.Fatalf("%d bytes are charged for %d cursors that hold %d", pool.Used(), len(cs), held)
		}
		for _, c := range cs {
			if err := errors.Join(c.Close(), c.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if pool.Used() != 0 {
			t.Fatalf("%d bytes are held after the end", pool.Used())
		}
		if held == 0 {
			t.Skip("the world is empty")
		}

		// Less than it takes is refused, whichever block it is that does not fit, and nothing stays charged.
		pool.MaxBytes = rapid.Int64Range(0, held-1).Draw(t, "room")
		if _, err := a.Select(ctx, req); !errors.Is(err, model.ErrLimit) && !errors.Is(err, model.ErrTransient) {
			t.Fatalf("%d of %d bytes: %v", pool.MaxBytes, held, err)
		}
		if pool.Used() != 0 {
			t.Fatalf("%d bytes are held after a refusal", pool.Used())
		}
		pool.MaxBytes = rapid.Int64Range(0, openBytes).Draw(t, "room for labels")
		if err := a.LabelNames(ctx, req, func([]byte) error { return nil }); !errors.Is(err, model.ErrLimit) && !errors.Is(err, model.ErrTransient) || pool.Used() != 0 {
			t.Fatalf("label names in %d bytes: %v, %d held", pool.MaxBytes, err, pool.Used())
		}

		// Nor does an error of the bucket leave anything charged.
		pool.MaxBytes = 1 << 40
		w.failBy(func(string, int64) error { return model.ErrCorrupt })
		a = New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
		if _, err := a.Select(ctx, req); !errors.Is(err, model.ErrCorrupt) || pool.Used() != 0 {
			t.Fatalf("a bucket that is gone: %v, %d held", err, pool.Used())
		}
	})
}

// heap returns the memory in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// TestFewBytesManyRows: next to nothing is stored of rows that are constant, or that follow a rule, but a
// cursor decodes them all. Its charge is a bound for them as well.
func TestFewBytesManyRows(t *testing.T) {
	const blocks, at = 100, int64(1e15)
	ruled := func(j int) uint64 { return uint64(j+1) * 0x9e3779b97f4a7c15 >> 2 }
	for _, test := range []struct {
		name         string
		series, rows int
		start        int64 // 0: not known
		value        func(j int) uint64
		exemplars    bool
	}{
		{name: "constant", series: 12, rows: 600},
		{name: "constant", series: 1, rows: 20_000},
		{name: "with start times", series: 1, rows: 20_000, start: at},
		{name: "by a rule", series: 12, rows: 4000, value: ruled},
		{name: "by a rule", series: 1, rows: 20_000, value: ruled},
		{name: "exemplars", series: 1, rows: 2000, exemplars: true},
	} {
		t.Run(fmt.Sprintf("%s, %d series of %d", test.name, test.series, test.rows), func(t *testing.T) {
			w := &world{objects: make(map[string][]byte)}
			w.addSeries(t, test.series, func(s int) *model.SeriesRows {
				all := new(model.SeriesRows)
				for j := range test.rows - s { // regular times end at different rows
					value, time := uint64(0x3ff0000000000000), at+int64(j)*1e10
					if test.value != nil {
						value = test.value(j)
					}
					if test.exemplars {
						all.Exemplars.AppendBlob(time, model.KindExemplar, model.AppendExemplar(nil, &model.Exemplar{Value: value, Labels: model.LabelsOf("trace_id", "1")}), 0)
					} else {
						all.Samples.Append(time, value, test.start)
					}
				}
				return all
			})
			for i := range blocks - 1 { // to a cursor it is the same whether others have the same rows
				b := w.blocks[0]
				b.ID = fmt.Sprint("copy", i)
				w.blocks = append(w.blocks, b)
				w.objects[catalog.ObjectName(b.ID)] = w.objects[catalog.ObjectName("b1")]
			}
			a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
			for range 2 { // the second finds pages in memory
				req := request("a", model.Always())
				if test.exemplars {
					req.Family = model.Exemplars
				}
				req.Quota.Pool = &model.QueryPool{MaxBytes: 1 << 40}
				before := heap()
				cs, err := a.Select(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				var read model.Rows
				for _, c := range cs { // each stays at its first series, as in a merge of all
					read.Reset()
					if !c.Next(t.Context()) || c.AppendRows(t.Context(), &read) != nil || read.Len() == 0 {
						t.Fatalf("no rows: %v", c.Err())
					}
				}
				held, charged := heap()-before, req.Quota.Pool.Used()
				if t.Logf("blocks of %d bytes: a cursor holds %d bytes, and charges %d", w.blocks[0].Bytes, held/blocks, charged/blocks); held > charged {
					t.Errorf("more is held than charged")
				}
				if charged > blocks*(cursorBytes+4<<10) {
					t.Errorf("more is charged than for a large block")
				}
				for _, c := range cs {
					if err := c.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// TestManySmallBlocks: what ingesters ship every few seconds is many small blocks until it is merged. A query
// over hundreds of them has room in the default of query.max-bytes, and charges no less than it holds.
func TestManySmallBlocks(t *testing.T) {
	racetest.SkipSerial(t)
	const blocks, series, defaultMaxBytes = 800, 12, 64 << 20
	w := &world{objects: make(map[string][]byte)}
	lines := map[string][]line{}
	for i := range series {
		lines[string(model.LabelsOf("app", "web", "pod", nameOf(i)))] = nil
	}
	for i := range int64(blocks) {
		w.addMany(t, series, 10*i, 10*i+5)
		for l := range lines {
			lines[l] = []line{{10 * i, "a line with some words", ""}, {10*i + 5, "another line with further words", ""}}
		}
		w.addText(t, lines)
	}
	a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
	pool := &model.QueryPool{MaxBytes: 1 << 40}
	bounded := func(req *model.Request) *model.Request {
		req.Quota.Pool, req.Quota.MaxBytes = pool, defaultMaxBytes
		return req
	}
	for range 2 { // the second finds all pages in memory, which hold what the cursors of the first had decoded
		before := heap()
		cs, err := a.Select(t.Context(), bounded(request("a", model.Always())))
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for _, c := range cs {
			var read model.Rows
			for c.Next(t.Context()) {
				if err := c.AppendRows(t.Context(), &read); err != nil {
					t.Fatal(err)
				}
			}
			rows += read.Len()
			if c.Err() != nil {
				t.Fatal(c.Err())
			}
		}
		held := heap() - before
		if rows != blocks*series*2 || held > pool.Used() {
			t.Errorf("%d rows of %d blocks of about %d bytes: %d bytes are held, and %d are charged", rows, blocks, w.blocks[0].Bytes, held, pool.Used())
		}
		t.Logf("blocks of %d bytes: a cursor holds %d bytes, and charges %d", w.blocks[0].Bytes, held/blocks, pool.Used()/blocks)
		for _, c := range cs {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if pool.Used() != 0 {
		t.Errorf("%d bytes stay charged", pool.Used())
	}
	got, err := collectText(a, bounded(textRequest(model.Always())))
	if err != nil {
		t.Fatal(err)
	}
	for l, x := range got {
		if len(x) != 2*blocks {
			t.Errorf("%d lines of %q", len(x), l)
		}
	}
	for _, signal := range []model.Signal{model.Metrics, model.Logs} {
		req := bounded(request("a", model.Always()))
		req.Signal = signal
		if err := a.LabelNames(t.Context(), req, func([]byte) error { return nil }); err != nil {
			t.Error(err)
		}
		req.Cost.Bill = new(model.Bill)
		if err := a.Bill(t.Context(), req); err != nil {
			t.Error(err)
		}
	}
	if len(got) != series {
		t.Errorf("%d series of lines", len(got))
	}
}

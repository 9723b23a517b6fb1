package compact

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/retention"
)

// randomJob draws any merge that the rule allows, whatever the planner would do: of a random set of blocks
// and what must not be left out of it, cut into random cells.
func randomJob(t *rapid.T, c *Compactor, blocks []catalog.Block) *job {
	var some []catalog.Block
	signal := rapid.SampledFrom([]model.Signal{model.Metrics, model.Logs}).Draw(t, "signal")
	for _, b := range blocks {
		if b.Signal == signal && rapid.IntRange(0, 2).Draw(t, "take") == 0 {
			some = append(some, b)
		}
	}
	if len(some) == 0 {
		return nil
	}
	fits := func(in []catalog.Block) bool { return len(in) <= 12 }
	if len(some) > 1 {
		some = closure(some, blocks, func(*catalog.Block) bool { return true }, fits)
	}
	if some == nil {
		return nil
	}
	var cells []cell
	level := catalog.Level(rapid.IntRange(0, 2).Draw(t, "level"))
	switch rapid.IntRange(0, 2).Draw(t, "cells") {
	case 0:
		cells = everything(level)
	case 1:
		cells = halves(c.o.Now())
	default:
		cells = dayCells(rangeOf(some), c.o.Now(), dayOf(c.o.Now()))
	}
	return &job{why: "test", inputs: some, cells: cells}
}

// drawRules draws rules that divide series into groups, and by which no row expires.
func drawRules(t *rapid.T) *retention.Rules {
	var l retention.List
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		l.Rules = append(l.Rules, retention.Rule{
			Tenant: rapid.SampledFrom([]string{"", "a", "[bc]"}).Draw(t, "tenant"),
			Match:  rapid.SampledFrom([]string{"", "m1", `{i=~"[0-2]"}`}).Draw(t, "match"),
			Keep:   rapid.SampledFrom([]string{"0", "100y", "200y"}).Draw(t, "keep"),
		})
	}
	r, err := retention.Compile(l, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMergesChangeNothing ships windows and late rows that overwrite each other, deletes some, and merges
// them: as the planner says, at random as the rule allows, and with two compactors that know the bucket as it
// was at different times, and have different rules of retention. At every moment, readers see the rows of a
// simple map.
func TestMergesChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, vfs.NewMem())
		w.now = 20_000 * int64(day)
		tune := func(o *Options) {
			o.MaxBlockBytes = rapid.Int64Range(minBytes, 8<<10).Draw(t, "block bytes")
			o.BigTenantShare = rapid.Float64Range(0.01, 1).Draw(t, "share")
			o.MaxInputs = rapid.IntRange(2, 8).Draw(t, "inputs")
			o.MaxFresh = rapid.IntRange(1, 8).Draw(t, "fresh")
			o.MemoryBytes = rapid.SampledFrom([]int64{minBytes, 5 << 19, 4 << 20, 64 << 20}).Draw(t, "memory")
			o.maxSeries = rapid.IntRange(1, 20).Draw(t, "series")
			rules := drawRules(t)
			o.Retention = func() *retention.Rules { return rules }
			o.Garbage = catalog.CollectOptions{Grace: time.Hour, UploadGrace: 24 * time.Hour, DeletionGrace: 24 * time.Hour}
		}
		mine := w.compactor(t, w.c, tune)
		theirs := w.compactor(t, w.open(t), func(o *Options) { tune(o); o.Dir = "theirs" })
		// planned is a merge that the other compactor has begun and not committed.
		var planned *job
		var plannedAt int64
		var deletions catalog.Deletions
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			w.now += rapid.Int64Range(0, 12).Draw(t, "pass") * int64(time.Hour)
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0, 1, 2:
				w.draw(t)
			case 3:
				if res, err := mine.RunOnce(ctx); err != nil || res.Merges == mine.o.MaxMerges {
					t.Fatalf("%d merges, %v\n%s", res.Merges, err, list(w.c))
				}
			case 4:
				if j := randomJob(t, mine, w.c.Live()); j != nil {
					_, known := w.c.Snapshot()
					if _, err := mine.run(ctx, j, known); err != nil {
						t.Fatal(err)
					}
				}
			case 5:
				c := theirs.o.Catalog.(*catalog.Catalog)
				if planned == nil {
					if err := theirs.refresh(ctx); err != nil {
						t.Fatal(err)
					}
					blocks, known := c.Snapshot()
					planned, deletions, plannedAt = randomJob(t, theirs, blocks), known, w.now
				} else {
					j := planned
					planned = nil
					if w.now-plannedAt > int64(maxMergeTime) {
						break // a merge that takes so long is given up: deletions may be forgotten that it does not know
					}
					// The inputs may be gone; else it commits what it planned, though others have merged them too.
					m := theirs.newMerge(ctx, j, deletions)
					if err := m.merge(); err != nil {
						if id, ok := blamed(err); !ok || w.c.Has(id) {
							t.Fatal(err)
						}
						break
					}
					if err := c.Replace(ctx, m.ids, m.blocks); err != nil && !errors.Is(err, catalog.ErrReplaced) {
						t.Fatal(err)
					}
				}
			case 6:
				if _, err := theirs.RunOnce(ctx); err != nil {
					t.Fatal(err)
				}
			case 7:
				d := catalog.Deletion{Deletion: deletion.Deletion{
					Signal: rapid.SampledFrom([]model.Signal{model.Metrics, model.Logs}).Draw(t, "deleted signal"),
					Tenant: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"),
					Range:  model.TimeRange{Min: w.now - rapid.Int64Range(0, 4).Draw(t, "deleted days")*int64(day), Max: w.now}, Matchers: []catalog.Matcher{{}},
				}}
				if rapid.Bool().Draw(t, "one metric") {
					d.Matchers = []catalog.Matcher{{Name: "__name__", Op: model.MatchEqual, Value: "m1"}}
				}
				w.remove(t, d)
			}
			if err := w.c.Refresh(ctx); err != nil {
				t.Fatal(err)
			}
			w.check(t, w.c)
		}
		w.check(t, w.open(t))
		// When all is over, a compactor that may take many inputs leaves no two blocks of a day above each other.
		w.now += 10 * int64(day)
		last := w.compactor(t, w.c, func(o *Options) {
			o.MaxBlockBytes, o.maxSeries, o.BigTenantShare = mine.o.MaxBlockBytes, mine.o.maxSeries, mine.o.BigTenantShare
		})
		for merges := 1; merges > 0; {
			res, err := last.RunOnce(ctx)
			if err != nil || res.Merges == mine.o.MaxMerges {
				t.Fatalf("%d merges, %v\n%s", res.Merges, err, list(w.c))
			}
			merges = res.Merges
			w.now += int64(day)
		}
		c := w.open(t)
		w.check(t, c)
		blocks := c.Live()
		for i := range blocks {
			for k := range i {
				a, b := &blocks[i], &blocks[k]
				if start, ok := inOneDay(a.Range); ok && b.Level == catalog.Settled && a.Signal == b.Signal && a.Record != b.Record && dayOf(b.Range.Min) == start && a.MayMeet(b) {
					if _, ok := inOneDay(b.Range); ok {
						t.Fatalf("blocks of one day lie above each other: %s and %s\n%s", a.ID, b.ID, list(c))
					}
				}
			}
		}
	})
}

// TestFailingBucket lets requests fail, lose their responses or return too few bytes. A run may end with an
// error of class transient; readers do not notice.
func TestFailingBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, vfs.NewMem())
		w.now = 20_000 * int64(day)
		for range rapid.IntRange(1, 10).Draw(t, "ships") {
			w.draw(t)
			w.now += int64(3 * time.Hour)
		}
		w.now += 2 * int64(day)
		comp := w.compactor(t, w.c, func(o *Options) { o.MaxBlockBytes = 2 << 10 })
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			for range rapid.IntRange(1, 3).Draw(t, "faults") {
				w.bucket.Add(fault.Rule{
					Kind: rapid.SampledFrom([]fault.Kind{fault.Fail, fault.LostAck, fault.Partial}).Draw(t, "kind"),
					Op:   rapid.SampledFrom([]fault.Op{fault.Put, fault.GetRange, fault.List, fault.Delete, fault.Get}).Draw(t, "op"),
					// A partial answer to Get is a store that breaks its contract: a record that cannot be read.
					Prefix: rapid.SampledFrom([]string{"blocks/", "catalog/"}).Draw(t, "prefix"),
					Skip:   rapid.IntRange(0, 5).Draw(t, "skip"), Times: rapid.IntRange(1, 8).Draw(t, "times"),
				})
			}
			if _, err := comp.RunOnce(ctx); err != nil && !errors.Is(err, model.ErrTransient) && !errors.Is(err, model.ErrCorrupt) {
				t.Fatal(err)
			}
			w.bucket.Clear()
			w.check(t, w.open(t))
			w.now += int64(2 * time.Hour)
		}
		comp = w.compactor(t, w.open(t), nil) // has forgotten what it could not read
		w.now += 10 * int64(day)              // some rows were ahead of the clock
		for range 3 {
			if _, err := comp.RunOnce(ctx); err != nil {
				t.Fatal(err)
			}
			w.now += int64(25 * time.Hour)
		}
		c := w.open(t)
		w.check(t, c)
		for _, b := range c.Live() {
			if b.Level != catalog.Settled {
				t.Fatalf("not settled:\n%s", list(c))
			}
		}
		// One record may hold many blocks; nothing else is left but the objects of those.
		names := objects(t, w.bucket)
		if n := len(c.Live()); slices.IndexFunc(c.Live(), func(b catalog.Block) bool { return b.Range.Min == math.MaxInt64 }) >= 0 || len(names) > 2*n+1 {
			t.Fatalf("%d objects for %d blocks: %v", len(names), n, names)
		}
		if left, _ := w.fs.List("compact"); len(left) != 0 {
			t.Fatalf("temporary files are left: %v", left)
		}
	})
}

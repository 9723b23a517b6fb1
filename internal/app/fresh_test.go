package app

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/cache/ssd"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/readtest"
)

// TestFreshBlocks: rows that were just shipped, or just merged, are read without a request to the bucket if
// there is a cache on an SSD, and with some if it takes no pages of new blocks.
func TestFreshBlocks(t *testing.T) {
	for _, percent := range []int{25, 0} {
		mem := vfs.NewMem()
		now := int64(1_700_000_000 * time.Second)
		b, err := bucketfs.New(mem, "/bucket")
		must(t, err)
		// The memory for decoded pages is that of one process, so each look is by a new one.
		open := func() *Engine {
			e, err := OpenEngine(context.Background(), EngineOptions{
				FS: mem, DataDir: crashDir, Bucket: b, Node: "n", MemoryBytes: 64 << 20, Idle: true, Now: func() int64 { return now },
				SSD: &ssd.Options{FS: mem, Dir: "/ssd", MaxBytes: ssd.MinBytes, Limits: ssd.Limits{WritesPerDay: 3, FreshPercent: percent}},
			})
			must(t, err)
			return e
		}
		const batches = 6
		look := func(after string) {
			e := open()
			defer func() { must(t, e.Close()) }()
			cost := new(model.Cost)
			req := &model.Request{Tenant: model.DefaultTenant, Signal: model.Logs, Range: everything, Cost: cost}
			lines := 0
			must(t, eachLine(e, req, func(model.Labels, readtest.Line) { lines++ }))
			if lines != batches*crashSeries {
				t.Errorf("%d %%, %s: %d lines, expected %d", percent, after, lines, batches*crashSeries)
			}
			if n := cost.BucketRequests.Load(); n == 0 != (percent > 0) {
				t.Errorf("%d %%, %s: %d requests to the bucket", percent, after, n)
			}
		}
		e := open()
		for i := range batches {
			must(t, pushCrashBatch(e.Path(), model.Logs, i, now))
			now += int64(10 * time.Minute)
			if i%2 == 1 {
				must(t, e.Ship())
			}
		}
		must(t, e.Close())
		look("shipped")
		now += int64(48 * time.Hour)
		e = open()
		must(t, e.Compact(context.Background()))
		if n := len(e.catalog.Live()); n != 1 {
			t.Errorf("%d blocks after compaction, expected 1", n)
		}
		must(t, e.Close())
		look("merged")
		checkFolder(t, mem)
	}
}

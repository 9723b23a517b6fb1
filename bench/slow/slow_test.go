package main

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket/fs"
)

const delay = 20 * time.Millisecond

func TestDelays(t *testing.T) {
	o, err := options([]string{"serve", "--sync-delay", "20ms", "--request-delay", "20ms", "--memory", "1GiB", "--data-dir", t.TempDir()},
		[]string{"SHALE_MEMORY=2GiB", "SHALE_MAX_AGE=3d"})
	if err != nil {
		t.Fatal(err)
	}
	if c := o.Config; c.MemoryBytes != 1<<30 || c.Write.MaxAge != 72*time.Hour || c.DiskBytes == 0 {
		t.Errorf("the configuration is %+v", c)
	}

	disk := slowFS{vfs.NewMem(), o.FS.(slowFS).delay}
	f, err := disk.Create("x", "")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := disk.OpenDir("")
	if err != nil {
		t.Fatal(err)
	}
	for name, sync := range map[string]func() error{"Sync": f.Sync, "SyncData": f.SyncData, "Sync of a folder": dir.Sync} {
		atLeastDelay(t, name, sync)
	}

	b, err := fs.New(vfs.NewMem(), "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	slow := o.WrapBucket(b)
	atLeastDelay(t, "Delete", func() error { return slow.Delete(context.Background(), "x") })
}

func atLeastDelay(t *testing.T, name string, do func() error) {
	t.Helper()
	began := time.Now()
	if err := do(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("%s took %s, expected at least %s", name, took, delay)
	}
}

func TestNoDelays(t *testing.T) {
	o, err := options([]string{"serve"}, nil)
	if err != nil || o.WrapBucket != nil || o.FS != nil {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range [][]string{nil, {"load"}, {"serve", "--no-such"}, {"serve", "--memory", "much"}} {
		if _, err := options(args, nil); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

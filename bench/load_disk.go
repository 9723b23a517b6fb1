package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/bench/system"
	"github.com/shaledb/shale/internal/app"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/write"
)

// diskGauges measures the size of gauges on the disk once all work is done: two hours of them, and a day.
func diskGauges(ctx context.Context, t *trial) error {
	const span, window = 24 * time.Hour, 2 * time.Hour
	dir := t.dir
	for _, c := range []struct {
		name   string
		rounds int
		start  time.Time
	}{
		{"disk-B/sample", int(window / time.Minute), time.Now().Add(-window - 15*time.Minute).Truncate(window)},
		{"compacted-disk-B/sample", int(span / time.Minute), time.Now().Add(-span - 2*time.Hour).Truncate(span).Add(-span)},
	} {
		t.dir = filepath.Join(dir, fmt.Sprint(c.rounds))
		if err := t.gauges(ctx, c.name, c.rounds, c.start); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) gauges(ctx context.Context, name string, rounds int, start time.Time) error {
	size := 0.0
	err := t.with(ctx, "", func(srv *system.Server) error {
		_, err := t.measure(ctx, srv, 0, t.remoteWrite(srv, max(1, t.scaled(4)), "--rate", "0", "--rounds", fmt.Sprint(rounds),
			"--step", "60s", "--start", at(start))...)
		if err != nil {
			return err
		}
		size, err = t.finalSize(ctx, srv)
		return err
	})
	if err == nil && t.sys.Kind == system.Shale {
		size, err = t.shipAndCompact(ctx)
	}
	if err != nil {
		return err
	}
	t.rec.Set(name, size/t.rec.Values["samples"])
	return nil
}

// flushedAfter is longer than VictoriaMetrics keeps data in memory only.
const flushedAfter = 7 * time.Second

// finalSize makes a server finish its work and returns the size of its files, index included.
func (t *trial) finalSize(ctx context.Context, srv *system.Server) (float64, error) {
	switch srv.Kind {
	case system.VictoriaMetrics:
		for _, path := range []string{"/internal/force_flush", "/internal/force_merge"} {
			// It writes its memory to the disk every 5 s.
			if err := errors.Join(t.do(ctx, srv, http.MethodGet, path), pace.Sleep(ctx, flushedAfter)); err != nil {
				return 0, err
			}
		}
		if err := t.warm(ctx, srv); err != nil {
			return 0, err
		}
		data, err1 := system.DiskBytes(filepath.Join(srv.Dir, "data"))
		index, err2 := system.DiskBytes(filepath.Join(srv.Dir, "indexdb"))
		return float64(data + index), errors.Join(err1, err2)
	case system.Prometheus: // a snapshot includes a block of the data in memory
		if err := t.do(ctx, srv, http.MethodPost, "/api/v1/admin/tsdb/snapshot"); err != nil {
			return 0, err
		}
		n, err := system.DiskBytes(filepath.Join(srv.Dir, "data", "snapshots"))
		return float64(n), err
	}
	return 0, nil
}

func (t *trial) do(ctx context.Context, srv *system.Server, method, path string) error {
	ask := srv.Get
	if method == http.MethodPost {
		ask = srv.Post
	}
	code, body, err := ask(ctx, path)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%s: %s: status %d: %.200s", srv.Name, path, code, body)
	}
	return err
}

// shipAndCompact opens the folder of a stopped Shale, ships everything to its bucket as the server does when
// a window has closed, and merges what is due. It returns the size of the live blocks.
func (t *trial) shipAndCompact(ctx context.Context) (float64, error) {
	dir := filepath.Join(t.dir, "data")
	b, err := bucketfs.New(vfs.Default, filepath.Join(dir, "bucket"))
	if err != nil {
		return 0, err
	}
	e, err := app.OpenEngine(ctx, app.EngineOptions{
		FS: vfs.Default, DataDir: dir, Bucket: b, Node: "bench", MemoryBytes: 1 << 30, Idle: true,
		Write:      write.Limits{MaxInflightBytes: 64 << 20, MaxBodyBytes: 32 << 20, MaxDecodedBytes: 64 << 20, MaxLabels: 64, MaxNameBytes: 1 << 10, MaxValueBytes: 4 << 10},
		Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		return 0, err
	}
	err = e.Ship()
	for range 2 { // a second run may merge the result of the first
		if err == nil {
			err = e.Compact(ctx)
		}
	}
	if err := errors.Join(err, e.Close()); err != nil {
		return 0, err
	}
	c, err := catalog.Open(ctx, b, catalog.Options{})
	if err != nil {
		return 0, err
	}
	var size, blocks float64
	for _, block := range c.Live() {
		size, blocks = size+float64(block.Bytes), blocks+1
	}
	t.rec.Set("blocks", blocks)
	return size, nil
}

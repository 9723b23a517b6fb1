//go:build e2e

package e2e

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/app"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/write"
)

// putAway ships everything in a stopped server's folder to its bucket, as the server does when windows have
// closed, and merges what is due. All later reads come from blocks.
func (s *server) putAway(t *testing.T) {
	t.Helper()
	data := filepath.Join(s.dir, "data")
	b, err := bucketfs.New(vfs.Default, filepath.Join(data, "bucket"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := app.OpenEngine(t.Context(), app.EngineOptions{
		FS: vfs.Default, DataDir: data, Bucket: b, Node: "e2e", MemoryBytes: 1 << 30, Idle: true,
		Write:      write.Limits{MaxInflightBytes: 64 << 20, MaxBodyBytes: 32 << 20, MaxDecodedBytes: 64 << 20, MaxLabels: 64, MaxNameBytes: 1 << 10, MaxValueBytes: 4 << 10},
		Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(e.Ship(), e.Compact(t.Context()))
	if err := errors.Join(err, e.Close()); err != nil {
		t.Fatal(err)
	}
	if parts, err := filepath.Glob(filepath.Join(data, "bucket", "blocks", "*")); err != nil || len(parts) == 0 {
		t.Fatalf("no block is in the bucket: %v", err)
	}
}

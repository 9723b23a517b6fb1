package promqltest

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/internal/bucket/fs"
)

// openStore opens the real engine on a file system in memory.
func openStore(t testing.TB) Engine {
	mem := vfs.NewMem()
	b, err := fs.New(mem, "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	e, err := app.OpenEngine(context.Background(), app.EngineOptions{
		FS: mem, DataDir: "/data", Bucket: b, Node: "test", MemoryBytes: 32 << 20, Idle: true,
		// Samples of the test files begin at 1970 and some lie in the future.
		Now: func() int64 { return 1 << 62 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestStore(t *testing.T) { Run(t, openStore) }

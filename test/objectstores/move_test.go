//go:build e2e

package objectstores

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/internal/bucket"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/move/bucketcopy"
	"github.com/shaledb/shale/internal/move/tsdbimport"
)

// TestCopyThroughStores copies a bucket from a folder to a store, inside the store, and back to a folder.
// Every object comes back as it was.
func TestCopyThroughStores(t *testing.T) {
	from := filled(t)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			store := Start(t, name)
			back, err := bucketfs.New(vfs.NewMem(), "/back")
			if err != nil {
				t.Fatal(err)
			}
			chain := []bucket.Bucket{from, open(t, store.At("copy/one")), open(t, store.At("copy/two")), back}
			for i := range chain[1:] {
				job := bucketcopy.Copy{From: chain[i], To: chain[i+1], Concurrency: 4}
				if _, err := job.Run(t.Context()); err != nil {
					t.Fatalf("copy %d: %v", i, err)
				}
			}
			want, got := contents(t, from), contents(t, back)
			if len(got) != len(want) {
				t.Errorf("%d objects came back, expected %d", len(got), len(want))
			}
			for name := range want {
				if got[name] != want[name] {
					t.Errorf("%s has %d bytes, expected %d", name, len(got[name]), len(want[name]))
				}
			}
		})
	}
}

// filled returns a bucket with a few blocks.
func filled(t *testing.T) bucket.Bucket {
	disk := vfs.NewMem()
	b, err := bucketfs.New(disk, "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixNano()
	e, err := app.OpenEngine(t.Context(), app.EngineOptions{
		FS: disk, DataDir: "/data", Bucket: b, Node: "n", MemoryBytes: 64 << 20, Idle: true, Now: func() int64 { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		batch := e.Path().Batch("team", model.Metrics)
		pushed := &worldtest.Batch{Tenant: "team", Signal: model.Metrics}
		for _, name := range []string{"a", "b"} {
			s := worldtest.Series{Labels: model.LabelsOf("__name__", name)}
			for i := range 1000 {
				s.Rows = append(s.Rows, worldtest.Float(now+int64(i), math.Float64bits(float64(round*i))))
			}
			pushed.Series = append(pushed.Series, s)
		}
		pushed.AppendTo(batch, e.Path().Seed())
		_, err := e.Path().Push(context.Background(), batch)
		e.Path().Recycle(batch)
		if err == nil {
			err = e.Ship()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

func contents(t *testing.T, b bucket.Bucket) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := b.List(t.Context(), "", func(name string, _ int64) error {
		data, err := b.Get(t.Context(), name)
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBlocksInStores downloads a block of Prometheus from a store.
func TestBlocksInStores(t *testing.T) {
	const id = "01JD2M6X0E2FZ3V1W8Q4K7N5RA"
	files := map[string]string{
		"meta.json": `{"ulid":"` + id + `","minTime":0,"maxTime":7200000,"version":1}`, "index": "index", "chunks/000001": strings.Repeat("chunk", 2<<20),
	}
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			store := Start(t, name)
			b := open(t, store.At("mimir"))
			for file, text := range files {
				if err := b.Put(t.Context(), "team/"+id+"/"+file, strings.NewReader(text), int64(len(text))); err != nil {
					t.Fatal(err)
				}
			}
			source := &tsdbimport.Objects{Bucket: b, Dir: t.TempDir()}
			blocks, err := tsdbimport.Blocks(t.Context(), source)
			if err != nil || len(blocks) != 1 || blocks[0].Tenant != "team" {
				t.Fatalf("%+v, %v", blocks, err)
			}
			dir, done, err := source.Fetch(t.Context(), &blocks[0])
			if err != nil {
				t.Fatal(err)
			}
			for file, want := range files {
				if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
					t.Errorf("%s: %d bytes, %v, expected %d", file, len(got), err, len(want))
				}
			}
			if err := done(); err != nil {
				t.Error(err)
			}
		})
	}
}

//go:build e2e

package reader

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/internal/bucket"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/write"
)

// world is a bucket in a folder, to which nodes ship, and a clock that the test advances.
type world struct {
	*checker
	dir    string
	bucket bucket.Bucket
	now    int64
	data   vfs.FS
	// policies make rollups of all metrics.
	policies *policy.Policies
}

// keySeed is in the bucket from the start, so that a failure can be repeated.
const keySeed = "crc32c 4b449951\n" + `{"version":1,"seed":"fedcba9876543210"}` + "\n"

func newWorld(t *testing.T, c *checker) *world {
	w := &world{checker: c, dir: t.TempDir(), now: int64(1_700_000_000 * time.Second), data: vfs.NewMem()}
	schemas, err := carbonconf.Parse("storage-schemas.conf", []byte("[all]\npattern = .*\nretentions = 60s:1d,10m:30d,2h:5y\n"))
	must(t, err)
	w.policies, err = policy.Parse(schemas, nil)
	must(t, err)
	b, err := bucketfs.New(vfs.Default, w.dir)
	if err != nil {
		t.Fatal(err)
	}
	w.bucket = b
	if _, err := b.PutIfAbsent(context.Background(), "seed", []byte(keySeed)); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) open(t *testing.T, node string) *app.Engine {
	t.Helper()
	e, err := app.OpenEngine(context.Background(), app.EngineOptions{
		FS: w.data, DataDir: "/" + node, Bucket: w.bucket, Node: node, MemoryBytes: 256 << 20, Head: head.Limits{Tenants: 10_000}, Idle: true,
		Write: write.Limits{MaxFuture: time.Hour}, Rollups: func() *policy.Policies { return w.policies }, Now: func() int64 { return w.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// live simulates a day. It checks all files as soon as they exist, since compaction deletes merged blocks.
func (w *world) live(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(1, 2))
	begin := w.now - int64(4*time.Hour)
	a := w.open(t, "a")
	must(t, push(a, "shapes", model.Metrics, floats(r, begin)))
	must(t, push(a, "shapes", model.Metrics, histograms(r, begin)))
	must(t, push(a, "shapes", model.Metrics, exemplars(r, begin)))
	must(t, push(a, "names", model.Metrics, odd(model.Metrics, begin)))
	must(t, push(a, "names", model.Logs, odd(model.Logs, begin)))
	must(t, push(a, "lines", model.Logs, lines(r, begin, 15_000)))
	must(t, a.Flush())
	w.checkParts(t, "a")
	must(t, a.Ship())
	w.checkBlocks(t)

	// Late rows, new values for existing rows, and new rows, in blocks of both nodes.
	b := w.open(t, "b")
	for i := range 6 {
		w.now += int64(20 * time.Minute)
		e, late := []*app.Engine{a, b}[i%2], begin+int64(i-3)*int64(45*time.Minute)
		must(t, push(e, "shapes", model.Metrics, floats(r, late)))
		must(t, push(e, "shapes", model.Metrics, histograms(r, late)))
		must(t, push(e, "shapes", model.Metrics, exemplars(r, late)))
		must(t, push(e, "names", model.Metrics, odd(model.Metrics, late)))
		must(t, push(e, "names", model.Logs, odd(model.Logs, late)))
		must(t, push(e, "lines", model.Logs, lines(r, late, 3000)))
		must(t, e.Ship())
		w.checkBlocks(t)
		must(t, a.Compact(ctx))
		w.checkBlocks(t)
	}

	// A node with many pages, and one with many tenants.
	must(t, push(a, "many", model.Metrics, many(r, begin, 90_000)))
	must(t, push(a, "many", model.Metrics, append(long(r, begin, 800), endless(r, begin, 20_000))))
	must(t, a.Ship())
	for i := range 5000 {
		s := worldtest.Series{Labels: model.LabelsOf("__name__", "up", "job", "tenants"), Rows: []worldtest.Row{worldtest.Float(begin+r.Int64N(1e12), r.Uint64())}}
		must(t, push(b, fmt.Sprint("tenant-", i), model.Metrics, []worldtest.Series{s}))
	}
	must(t, b.Ship())
	w.checkBlocks(t)
	w.checkBucket(t)

	// Days later everything is merged, then a part is deleted, and then everything has expired.
	w.now += int64(48 * time.Hour)
	for range 3 {
		must(t, a.Compact(ctx))
		w.checkBlocks(t)
		w.now += int64(time.Hour)
	}
	w.checkBucket(t)
	must(t, a.Close())
	must(t, b.Close())
	c, err := catalog.Open(ctx, w.bucket, catalog.Options{Now: func() int64 { return w.now }})
	must(t, err)
	_, err = c.Delete(ctx, catalog.Deletion{Deletion: deletion.Deletion{
		Signal: model.Metrics, Tenant: "names", Range: model.Always(),
		Matchers: []catalog.Matcher{{Name: "job", Op: model.MatchEqual, Value: "j"}},
	}})
	must(t, err)
	w.checkBucket(t)
	must(t, c.Expire(ctx, func(b *catalog.Block) bool { return b.Newest() < w.now }, time.Hour))
	w.checkBucket(t)
}

// checkBlocks compares the readers on all new blocks.
func (w *world) checkBlocks(t *testing.T) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(w.dir, "blocks", "*"))
	must(t, err)
	for _, name := range names {
		if !w.done[name] {
			w.blocks++
		}
		w.check(t, name)
	}
}

// checkParts compares the readers on the parts of a data folder: these are compressed less, and have either
// labels or rows.
func (w *world) checkParts(t *testing.T, node string) {
	t.Helper()
	names, err := w.data.List("/" + node + "/head")
	must(t, err)
	for _, name := range names {
		if !strings.HasSuffix(name, ".part") {
			continue
		}
		from := w.data.PathJoin("/"+node, "head", name)
		to := filepath.Join(t.TempDir(), name)
		must(t, copyFile(w.data, from, to))
		w.parts++
		w.check(t, to)
	}
}

func copyFile(from vfs.FS, name, to string) error {
	f, err := from.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	b := make([]byte, info.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// checkBucket compares the visible blocks of the catalogue with those of bucket.py, which also checks the
// records.
func (w *world) checkBucket(t *testing.T) {
	t.Helper()
	c, err := catalog.Open(context.Background(), w.bucket, catalog.Options{})
	must(t, err)
	var want []string
	levels := map[int]int{}
	s := c.State()
	for _, b := range slices.Concat(s.Blocks, s.Rollups) {
		want = append(want, b.ID)
		levels[int(b.Level)]++
	}
	slices.Sort(want)
	out, err := exec.Command(w.python, "bucket.py", w.dir).CombinedOutput()
	if got := strings.Fields(string(out)); err != nil || !slices.Equal(got, want) {
		t.Fatalf("bucket.py: %v\n%s\nwant\n%s", err, out, strings.Join(want, "\n"))
	}
	records, err := filepath.Glob(filepath.Join(w.dir, "catalog", "*"))
	must(t, err)
	t.Logf("%d blocks are visible by %d records, of which %d have rollups; levels %v", len(want), len(records), len(s.Rollups), levels)
}

// smallest returns the smallest block.
func (w *world) smallest(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(w.dir, "blocks", "*"))
	must(t, err)
	size := func(name string) int64 {
		info, err := os.Stat(name)
		must(t, err)
		return info.Size()
	}
	return slices.MinFunc(names, func(a, b string) int { return int(size(a) - size(b)) })
}

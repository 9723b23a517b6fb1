//go:build e2e

package objectstores

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/internal/bucket"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/move/bucketcopy"
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

// TestThanosImport imports a block with the labels of a Thanos from each store, and reads it back bit for
// bit.
func TestThanosImport(t *testing.T) {
	program := buildShale(t)
	block := thanosBlock(t)
	to := newShale(t, program, filepath.Join(t.TempDir(), "bucket"))
	to.start()
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			from := Start(t, name).At("thanos/eu")
			upload(t, open(t, from), block)
			tenant := "from-" + name
			args := []string{"import", "tsdb", from.String(), "--address", "http://" + to.http, "--tenant", tenant, "--drop-label", "prometheus_replica",
				"--state", filepath.Join(t.TempDir(), "state"), "--work-dir", t.TempDir(), "--verify", "--json", "--quiet"}
			out, err := exec.Command(program, args...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var report struct {
				Blocks       int   `json:"blocks_imported"`
				Floats       int64 `json:"floats"`
				Histograms   int64 `json:"histograms"`
				Verification struct {
					Same int64 `json:"samples_same"`
					More int64 `json:"samples_more"`
				} `json:"verification"`
			}
			if err := json.Unmarshal(out, &report); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			const each = blockSeries * blockSamples
			if v := report.Verification; report.Blocks != 1 || report.Floats != each || report.Histograms != each || v.Same != 2*each || v.More != 0 {
				t.Errorf("%s", out)
			}
			out, err = exec.Command(program, "series", `moved{series="1"}`, "--url", "http://"+to.http, "--tenant", tenant, "--start", "-3h").CombinedOutput()
			if text := string(out); err != nil || !strings.Contains(text, `cluster="eu"`) || strings.Contains(text, "prometheus_replica") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

const (
	blockSeries  = 50
	blockSamples = 200
)

// thanosBlock returns the folder of a block of Prometheus with what the sidecar of a Thanos adds.
func thanosBlock(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	w, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), dir, int64(48*time.Hour/time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	a := w.Appender(t.Context())
	begin := time.Now().Add(-2 * time.Hour).UnixMilli()
	for s := range blockSeries {
		floats := labels.FromStrings("__name__", "moved", "series", fmt.Sprint(s))
		histograms := labels.FromStrings("__name__", "moved_seconds", "series", fmt.Sprint(s))
		for i, h := range tsdbutil.GenerateTestHistograms(blockSamples) {
			at := begin + 15_000*int64(i)
			_, err := a.Append(0, floats, at, math.Sqrt(float64(s*i)))
			if err == nil {
				_, err = a.AppendHistogram(0, histograms, at, h, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := a.Commit(); err != nil {
		t.Fatal(err)
	}
	id, err := w.Flush(t.Context())
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, id.String(), "meta.json")
	text, err := os.ReadFile(path)
	meta := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &meta)
	}
	meta["thanos"] = map[string]any{
		"labels": map[string]string{"cluster": "eu", "prometheus_replica": "a"}, "downsample": map[string]int{"resolution": 0}, "source": "sidecar",
	}
	if err == nil {
		text, err = json.Marshal(meta)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// upload puts the files of a folder into a bucket.
func upload(t *testing.T, b bucket.Bucket, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return b.Put(t.Context(), filepath.ToSlash(name), bytes.NewReader(text), int64(len(text)))
	})
	if err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/app"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/journal/local"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// emptyFolder makes the data folder of a store without rows.
func emptyFolder(t *testing.T) (dir string, open func() *app.Engine) {
	t.Helper()
	dir = t.TempDir()
	open = func() *app.Engine {
		b, err := bucketfs.New(vfs.Default, filepath.Join(dir, bucketDir))
		if err != nil {
			t.Fatal(err)
		}
		e, err := app.OpenEngine(t.Context(), app.EngineOptions{FS: vfs.Default, DataDir: dir, Bucket: b, Node: "n", MemoryBytes: 64 << 20, Idle: true})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if err := open().Close(); err != nil {
		t.Fatal(err)
	}
	return dir, open
}

func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestRepairFolder: a repair asks first, never runs next to a server, sets files aside with a note, and
// leaves a folder that is in order.
func TestRepairFolder(t *testing.T) {
	dir, open := emptyFolder(t)
	if code, out, errs := shale(t, nil, "inspect", "folder", dir, "--repair"); code != exitOK || !strings.Contains(out, "nothing to repair") {
		t.Errorf("a whole folder: exit %d\n%s%s", code, out, errs)
	}
	e := open()
	if code, _, errs := shale(t, nil, "inspect", "folder", dir, "--repair", "--yes"); code != exitFailed || !strings.Contains(errs, "in use by another process") {
		t.Errorf("a folder in use: exit %d, %s", code, errs)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, headDir, "METADATA")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := shale(t, nil, "inspect", "folder", dir, "--check")
	if code != exitFailed || !strings.Contains(errs, "shale inspect folder "+dir+" --repair") {
		t.Errorf("check: exit %d, %s", code, errs)
	}
	before := filesOf(t, dir)
	code, out, errs := shale(t, nil, "inspect", "folder", dir, "--repair")
	if code != exitFailed || !strings.Contains(out, "head/METADATA") || !strings.Contains(out, "left as it is") || !slices.Equal(before, filesOf(t, dir)) {
		t.Errorf("without a reply: exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := replies(t, "n\n", "inspect", "folder", dir, "--repair"); code != exitFailed || !strings.Contains(errs, "still damaged") {
		t.Errorf("no: exit %d\n%s%s", code, out, errs)
	}
	code, out, errs = replies(t, "y\n", "inspect", "folder", dir, "--repair")
	if code != exitOK || strings.Contains(out, "queries will lack") || !strings.Contains(out, "Repair it? [y/N] repaired") {
		t.Errorf("repair: exit %d\n%s%s", code, out, errs)
	}
	if got := filesOf(t, filepath.Join(dir, "set-aside")); !slices.Equal(got, []string{"head-METADATA", "head-METADATA.note.json"}) {
		t.Errorf("set aside: %q", got)
	}
	if code, out, errs := shale(t, nil, "inspect", "folder", dir, "--check"); code != exitOK {
		t.Errorf("check after the repair: exit %d\n%s%s", code, out, errs)
	}
	if code, _, errs := shale(t, nil, "inspect", "folder", t.TempDir(), "--repair"); code != exitFailed || !strings.Contains(errs, "is not a data folder of Shale") {
		t.Errorf("another folder: exit %d, %s", code, errs)
	}
}

// TestInspectDamagedEnd: the checks do not call a journal in order whose last record is damaged.
func TestInspectDamagedEnd(t *testing.T) {
	dir, open := emptyFolder(t)
	if err := open().Close(); err != nil {
		t.Fatal(err)
	}
	j, err := local.Open(local.Options{FS: vfs.Default, Dir: filepath.Join(dir, journalDir), Seed: seedOf(t, dir)})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Start(0); err != nil {
		t.Fatal(err)
	}
	batch := &model.Batch{Tenant: "team", Signal: model.Metrics}
	l := model.LabelsOf("__name__", "up")
	batch.AddSample(l.Key(0, model.Metrics), 1767225600e9, 1)
	if err := j.Append(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	names := filesOf(t, filepath.Join(dir, journalDir))
	name := filepath.Join(dir, journalDir, names[len(names)-1])
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"journal", filepath.Join(dir, journalDir), "--check"}, {"folder", dir, "--check"}} {
		code, out, errs := shale(t, nil, append([]string{"inspect"}, args...)...)
		if code != exitFailed || !strings.Contains(out+errs, "bytes hold no valid record after record 0") || !strings.Contains(out+errs, "may have been acknowledged") {
			t.Errorf("%s: exit %d\n%s%s", args[0], code, out, errs)
		}
	}
}

func seedOf(t *testing.T, dir string) model.KeySeed {
	t.Helper()
	b, err := bucketfs.New(vfs.Default, filepath.Join(dir, bucketDir))
	if err != nil {
		t.Fatal(err)
	}
	seed, err := catalog.Seed(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// TestRepairWithoutHead: a folder that has lost its folder head can be repaired.
func TestRepairWithoutHead(t *testing.T) {
	dir, open := emptyFolder(t)
	if err := os.RemoveAll(filepath.Join(dir, headDir)); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := shale(t, nil, "inspect", "folder", dir, "--check"); code != exitFailed || !strings.Contains(errs, "no folder head") || !strings.Contains(errs, "shale inspect folder "+dir+" --repair") {
		t.Errorf("check: exit %d, %s", code, errs)
	}
	segment := filepath.Join(dir, journalDir, "00000000000000000001.journal")
	if err := os.Rename(segment, filepath.Join(dir, journalDir, "00000000000000000009.journal")); err != nil {
		t.Fatal(err)
	}
	code, out, errs := shale(t, nil, "inspect", "folder", dir, "--repair", "--yes")
	if code != exitOK || !strings.Contains(out, "it begins with record 9") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if err := open().Close(); err != nil {
		t.Error(err)
	}
	if code, _, errs := shale(t, nil, "inspect", "folder", t.TempDir(), "--repair"); code != exitFailed || !strings.Contains(errs, "is not a data folder") {
		t.Errorf("an empty folder: exit %d, %s", code, errs)
	}
}

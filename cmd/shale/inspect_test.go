package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/journal/local"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// partLabels are those of the series of a part that is written here.
func partLabels() model.Labels { return model.LabelsOf("__name__", "up", "job", "a") }

// writePart makes a part of one series with one sample.
func writePart(t *testing.T, name string, seed model.KeySeed) []byte {
	t.Helper()
	var rows model.Rows
	rows.Append(1767225600e9, math.Float64bits(1), 0)
	return writeSeries(t, name, seed, model.Metrics, func(w *part.Writer) error { return w.Rows(&model.SeriesRows{Samples: rows}) })
}

// writeLogPart makes a part of one stream with two lines of 9 bytes together.
func writeLogPart(t *testing.T, name string, seed model.KeySeed) []byte {
	t.Helper()
	rows := &model.TextRows{Times: []int64{1767225600e9, 1767225601e9}, Bytes: []byte("onethree!"), Ends: []uint32{3, 9}}
	all := model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}
	return writeSeries(t, name, seed, model.Logs, func(w *part.Writer) error {
		return w.Text(t.Context(), []part.Text{part.TextOfRows(rows)}, all)
	})
}

// writeSeries makes a part of one series, whose rows write writes.
func writeSeries(t *testing.T, name string, seed model.KeySeed, signal model.Signal, write func(*part.Writer) error) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := part.NewWriter(&buf, part.WriterOptions{Seed: seed, Signal: signal, Node: "n1", SeqLo: 3, SeqHi: 9, Labels: true})
	l := partLabels()
	if err := errors.Join(w.Series("team", l.Key(seed, signal), l), write(w)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// bucketOfOne makes a bucket with one block that is committed, whose part write writes, and returns the
// folder, the block and the name of its file.
func bucketOfOne(t *testing.T, block catalog.Block, write func(t *testing.T, name string, seed model.KeySeed) []byte) (dir string, _ catalog.Block, name string) {
	t.Helper()
	dir = t.TempDir()
	b, err := bucketfs.New(vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(t.Context(), b, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seed, err := catalog.EnsureSeed(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	block.Node, block.SeqLo, block.SeqHi, block.Series, block.Tenants, block.TenantCount = "n1", 3, 9, 1, []string{"team"}, 1
	block.ID = catalog.BlockID("n1", 3, block.Signal, "default", block.Range, 3, 9, 0)
	name = filepath.Join(dir, filepath.FromSlash(catalog.ObjectName(block.ID)))
	block.Bytes = int64(len(write(t, name, seed)))
	block.KeyMin = partLabels().Key(seed, block.Signal)
	block.KeyMax = block.KeyMin
	ship := catalog.Ship{Blocks: []catalog.Block{block}, Covered: []catalog.Coverage{{Node: "n1", Epoch: 3, From: 1, To: 9}}}
	if _, err := c.Ship(t.Context(), ship, func(context.Context, string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return dir, block, name
}

func TestInspectPart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.part")
	data := writePart(t, name, 7)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"part", name}, "1 series from rank 0, 1 sample, 0 exemplars, 2026-01-01T00:00:00.000Z to"},
		{[]string{"part", name}, "3 to 9 of n1,"},
		{[]string{"block", name, "--check"}, "in order (1 series, 1 sample)"},
	} {
		if code, out, errs := shale(t, nil, append([]string{"inspect"}, c.args...)...); code != exitOK || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit %d, %s, %s; want %q", c.args, code, out, errs, c.want)
		}
	}
	data[10] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := shale(t, nil, "inspect", "part", name, "--check"); code != exitFailed || !strings.Contains(errs, "corrupt") {
		t.Errorf("of a damaged part: exit %d, %s", code, errs)
	}
	if code, _, _ := shale(t, nil, "inspect", "part", name+".none"); code != exitUsage {
		t.Errorf("of a missing file: exit %d", code)
	}
}

// TestInspectLogs: what has lines does not look empty.
func TestInspectLogs(t *testing.T) {
	dir, _, name := bucketOfOne(t, catalog.Block{Signal: model.Logs, Range: model.TimeRange{Min: 1767225600e9, Max: 1767225601e9}}, writeLogPart)
	for _, command := range []struct {
		args  []string
		wants []string
	}{
		{[]string{"block", name}, []string{"lines  ", " 2\n", "bytes of lines  ", "9 bytes", "1 series from rank 0, 2 lines of 9 bytes, 2026-01-01T00:00:00.000Z to"}},
		{[]string{"block", name, "--check"}, []string{"in order (1 series, 2 lines of 9 bytes)"}},
		{[]string{"folder", dir}, []string{"1 series, 2 lines of 9 bytes, 2026-01-01"}},
		{[]string{"catalogue", dir, "--check"}, []string{"in order", "LINES"}},
	} {
		code, out, errs := shale(t, nil, append([]string{"inspect"}, command.args...)...)
		for _, want := range command.wants {
			if code != exitOK || !strings.Contains(out, want) || strings.Contains(out, "0 samples") {
				t.Errorf("%v: exit %d, %s, %s; want %q", command.args, code, out, errs, want)
			}
		}
	}
}

func TestInspectFolder(t *testing.T) {
	dir := t.TempDir()
	b, err := bucketfs.New(vfs.Default, filepath.Join(dir, "bucket"))
	if err != nil {
		t.Fatal(err)
	}
	seed, err := catalog.EnsureSeed(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	size := len(writePart(t, filepath.Join(dir, "head", "00000001.part"), seed))
	body := fmt.Sprintf(`{"version":1,"seed":%d,"covered":9,"next_file":2,"parts":[{"file":"00000001.part","kind":"data","signal":1,"group":"young","bytes":%d}]}`, seed, size)
	manifest := fmt.Sprintf("crc32c %08x\n%s", crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)), body)
	metadata := fmt.Sprintf("crc32c %08x\n%s", crc32.Checksum([]byte(`{"version":1}`), crc32.MakeTable(crc32.Castagnoli)), `{"version":1}`)
	for name, content := range map[string]string{"MANIFEST": manifest, "METADATA": metadata} {
		for _, suffix := range []string{"", ".copy"} {
			if err := os.WriteFile(filepath.Join(dir, "head", name+suffix), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, marker := range []string{"uploads/b1.1", "uploads/b2.1"} {
		if _, err := b.PutIfAbsent(t.Context(), marker, []byte("b")); err != nil {
			t.Fatal(err)
		}
	}
	data := writePart(t, filepath.Join(dir, "bucket", "blocks", "b1"), seed)
	j, err := local.Open(local.Options{FS: vfs.Default, Dir: filepath.Join(dir, "journal"), Apply: func(uint64, *model.Batch) {}})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Start(1); err != nil {
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
	code, out, errs := shale(t, nil, "inspect", "folder", dir, "--check")
	if code != exitOK || strings.Count(out, "in order") != 5 {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := shale(t, nil, "inspect", "journal", filepath.Join(dir, "journal")); code != exitOK || !strings.Contains(out, "record 1") {
		t.Errorf("journal: exit %d\n%s%s", code, out, errs)
	}
	data[10] ^= 1
	if err := os.WriteFile(filepath.Join(dir, "bucket", "blocks", "b1"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := func(what string, inOrder int, wants ...string) {
		t.Helper()
		code, out, errs := shale(t, nil, "inspect", "folder", dir, "--check")
		if code != exitFailed || strings.Count(out, "in order") != inOrder {
			t.Errorf("%s: exit %d\n%s%s", what, code, out, errs)
		}
		for _, want := range wants {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: %s lacks %q", what, errs, want)
			}
		}
	}
	writePart(t, filepath.Join(dir, "bucket", "blocks", "b2"), seed+1)
	damaged("a block of another bucket", 4, "2 files or folders damaged", filepath.Join("bucket", "blocks", "b2"))
	if err := os.Remove(filepath.Join(dir, "bucket", "blocks", "b2")); err != nil {
		t.Fatal(err)
	}
	damaged("a damaged block", 4, "1 file or folder damaged", filepath.Join("bucket", "blocks", "b1"))
	for _, name := range []string{"bucket/seed", "journal/00000000000000000001.journal"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	damaged("no seed and no journal", 2, "3 files or folders damaged", filepath.Join(dir, "bucket")+"\n", filepath.Join(dir, "journal"))
}

// TestInspectForeign: where there is nothing of Shale's, nothing is in order.
func TestInspectForeign(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "0000000001"), []byte("not Shale's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"journal": "no segment of a journal", "journal --check": "no segment of a journal",
		"folder --check": "is not a data folder of Shale: it has neither a folder head nor a folder journal", "catalogue": "1 thing wrong", "catalogue --check": "1 thing wrong",
	} {
		what, flags, _ := strings.Cut(args, " ")
		code, out, errs := shale(t, nil, append([]string{"inspect", what, dir}, strings.Fields(flags)...)...)
		if code != exitFailed || !strings.Contains(errs, want) || strings.Contains(out, "in order") {
			t.Errorf("inspect %s: exit %d\n%s%s", args, code, out, errs)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "journal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := shale(t, nil, "inspect", "folder", dir, "--check"); code != exitFailed || !strings.Contains(errs, "journal in it is not a folder") {
		t.Errorf("a file called journal: exit %d, %s", code, errs)
	}
}

func TestInspectCatalogue(t *testing.T) {
	dir, block, name := bucketOfOne(t, catalog.Block{
		Signal: model.Metrics, Range: model.TimeRange{Min: 1767225600e9, Max: 1767225600e9}, Samples: 1,
	}, writePart)
	code, out, errs := shale(t, nil, "inspect", "catalogue", dir, "--check")
	if code != exitOK || !strings.Contains(out, block.ID) || !strings.Contains(out, "in order") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	code, out, errs = shale(t, nil, "inspect", "catalogue", dir, "--check")
	if code != exitFailed || !strings.Contains(out, "has no object") || !strings.Contains(errs, "1 thing wrong") {
		t.Errorf("with a missing block: exit %d\n%s%s", code, out, errs)
	}
}

// TestInspectRetention shows the rule that counts for a series, and reports a folder that is not a bucket.
func TestInspectRetention(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "shale.yaml")
	if err := os.WriteFile(file, []byte("retention: 30d\nretention-rules:\n- {signal: logs, match: '{env=\"dev\"}', keep: 3d}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`--config ` + file + ` --signal logs --series {env="dev"}`:        "rule 1: tenant *, logs, {env=\"dev\"}, keep 3d\n",
		`--config ` + file + ` --series up{env="dev"}`:                    "rule 2: tenant *, metrics and logs, {}, keep 30d\n",
		`--config ` + file + ` --json --signal logs --series {env="dev"}`: `{"rule":1,"signal":"logs","match":"{env=\"dev\"}","keep":"3d"}` + "\n",
	} {
		code, out, errs := shale(t, nil, append([]string{"inspect", "retention"}, strings.Fields(args)...)...)
		if code != exitOK || !strings.HasSuffix(out, want) {
			t.Errorf("%s: %d\n%s%s", args, code, out, errs)
		}
	}
	for args, want := range map[string]string{
		"--config " + file + " --series {": "--series:",
		"--config " + file + " /none":      "/none",
		"--config " + dir:                  "config file",
	} {
		if code, _, errs := shale(t, nil, append([]string{"inspect", "retention"}, strings.Fields(args)...)...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", args, code, errs)
		}
	}
	if code, out, errs := shale(t, nil, "inspect", "retention", dir, "--config", file); code != exitFailed || strings.Count(out, "\n") != 3 || !strings.Contains(errs, "seed") {
		t.Errorf("a folder that is not a bucket: %d %s%s", code, out, errs)
	}
}

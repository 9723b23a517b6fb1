package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// replies runs a command line with replies to its questions.
func replies(t *testing.T, text string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), args, &process{stdin: strings.NewReader(text), stdout: &stdout, stderr: &stderr})
	return code, stdout.String(), stderr.String()
}

// TestRepairBucket damages a bucket of one block in every way, and repairs it.
func TestRepairBucket(t *testing.T) {
	for what, test := range map[string]struct {
		damage func(t *testing.T, dir, record, block string)
		wants  []string // of the repairs
		aside  string   // an object that is set aside
		rows   bool     // the block counts afterwards
		rounds int
	}{
		"a lost record": {
			damage: func(t *testing.T, dir, record, _ string) { take(t, dir, record) },
			wants:  []string{"the commit record is lost", "put it back from its copy"}, rows: true,
		},
		"a record and its copy": {
			damage: func(t *testing.T, dir, record, _ string) { take(t, dir, record, "copies/"+record) },
			wants:  []string{"the commit record of the block is lost", "rebuild the record from the block, which has 1 sample of 1 series of tenant team"}, rows: true,
		},
		"a record and its copy, remembered": {
			damage: func(t *testing.T, dir, record, _ string) {
				remember := filepath.Join(filepath.Dir(dir), rememberedDir, record)
				if err := os.MkdirAll(filepath.Dir(remember), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(filepath.Join(dir, record), remember); err != nil {
					t.Fatal(err)
				}
				take(t, dir, "copies/"+record)
			},
			wants: []string{"put it back from the memory"}, rows: true,
		},
		"a record and its block": {
			damage: func(t *testing.T, dir, record, block string) { take(t, dir, record, block) },
			wants:  []string{"and so are its blocks", "accept the loss", "queries will lack: 1 sample of 1 series of tenant team from 2026-01-01T00:00:00Z"}, aside: "copies/catalog/",
		},
		"a block": {
			damage: func(t *testing.T, dir, _, block string) { take(t, dir, block) },
			wants:  []string{"the block is missing", "accept the loss of its rows"},
		},
		"a truncated block": {
			damage: func(t *testing.T, dir, _, block string) {
				spoil(t, dir, block, func(b []byte) []byte { return b[:50] })
			},
			wants: []string{"the block has 50 bytes, expected", "set it aside, and accept"}, aside: "blocks/",
		},
		"a flipped bit in a block": {
			damage: func(t *testing.T, dir, _, block string) { spoil(t, dir, block, flip) },
			wants:  []string{"set it aside, and accept"}, aside: "blocks/",
		},
		"a damaged record": {
			damage: func(t *testing.T, dir, record, _ string) { spoil(t, dir, record, flip) },
			wants:  []string{"the commit record cannot be read", "put it back from its copy"}, aside: "catalog/", rows: true,
		},
		"a damaged record without a copy": {
			damage: func(t *testing.T, dir, record, _ string) {
				spoil(t, dir, record, flip)
				take(t, dir, "copies/"+record)
			},
			wants: []string{"set it aside; then repair once more"}, aside: "catalog/", rows: true, rounds: 2,
		},
		"a damaged copy": {
			damage: func(t *testing.T, dir, record, _ string) { spoil(t, dir, "copies/"+record, flip) },
			wants:  []string{"the copy is damaged", "write it again"}, aside: "copies/catalog/", rows: true,
		},
		"no seed": {
			damage: func(t *testing.T, dir, _, _ string) { take(t, dir, "seed") },
			wants:  []string{"seed: the object is missing or damaged"}, rows: true,
		},
		"a damaged seed": {
			damage: func(t *testing.T, dir, _, _ string) { spoil(t, dir, "seed", flip) },
			wants:  []string{"seed: the object is missing or damaged"}, aside: "seed", rows: true,
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := bucketToRepair(t)
			record, block := "catalog/"+onlyFile(t, filepath.Join(dir, "catalog")), "blocks/"+onlyFile(t, filepath.Join(dir, "blocks"))
			test.damage(t, dir, record, block)
			if code, out, errs := shale(t, nil, "inspect", "catalogue", dir, "--check"); code != exitFailed || !strings.Contains(out, "WRONG") {
				t.Fatalf("check: exit %d\n%s%s", code, out, errs)
			}
			// No reply changes nothing.
			if code, out, errs := replies(t, "", "inspect", "catalogue", dir, "--repair", "--no-data-dir"); code != exitFailed || !strings.Contains(out, "left as it is") {
				t.Errorf("no reply: exit %d\n%s%s", code, out, errs)
			}
			for round := max(1, test.rounds); round > 1; round-- {
				if code, out, errs := replies(t, "y\n", "inspect", "catalogue", dir, "--repair", "--no-data-dir"); code != exitFailed {
					t.Errorf("round %d: exit %d\n%s%s", round, code, out, errs)
				}
			}
			code, out, errs := replies(t, "yes\n", "inspect", "catalogue", dir, "--repair", "--no-data-dir")
			if code != exitOK || !strings.Contains(out, "0 things wrong") {
				t.Errorf("repair: exit %d\n%s%s", code, out, errs)
			}
			for _, want := range test.wants {
				if test.rounds < 2 && !strings.Contains(out, want) {
					t.Errorf("lacks %q:\n%s", want, out)
				}
			}
			if test.aside != "" {
				found, err := filepath.Glob(filepath.Join(dir, "set-aside", test.aside+"*"))
				if err != nil || len(found) == 0 {
					t.Errorf("nothing is set aside: %v, %v", found, err)
				}
			}
			code, out, errs = shale(t, nil, "inspect", "catalogue", dir, "--check")
			if rows := strings.Contains(out, "counts, in order"); code != exitOK || rows != test.rows {
				t.Errorf("afterwards: exit %d\n%s%s", code, out, errs)
			}
		})
	}
}

// bucketToRepair makes a bucket of one block in a folder of its own, as a server leaves it.
func bucketToRepair(t *testing.T) (dir string) {
	t.Helper()
	made, _, _ := bucketOfOne(t, catalog.Block{
		Signal: model.Metrics, Range: model.TimeRange{Min: 1767225600e9, Max: 1767225600e9}, Samples: 1,
	}, writePart)
	dir = filepath.Join(t.TempDir(), "bucket")
	if err := os.Rename(made, dir); err != nil {
		t.Fatal(err)
	}
	seed, err := os.ReadFile(filepath.Join(dir, "seed"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "copies", "seed"), seed, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func onlyFile(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	return entries[0].Name()
}

// take removes files.
func take(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// spoil changes a file.
func spoil(t *testing.T, dir, name string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), change(data), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func flip(b []byte) []byte {
	b[20] ^= 1
	return b
}

// TestRepairNeedsMemory: a record that a server may remember is rebuilt only if the operator says that the
// data folder is lost.
func TestRepairNeedsMemory(t *testing.T) {
	dir := bucketToRepair(t)
	record := "catalog/" + onlyFile(t, filepath.Join(dir, "catalog"))
	take(t, dir, record, "copies/"+record)
	code, out, errs := shale(t, nil, "inspect", "catalogue", dir, "--repair", "--yes")
	if code != exitFailed || strings.Contains(out, "rebuild") || !strings.Contains(errs, "1 repair withheld, since") || !strings.Contains(errs, "--no-data-dir") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs = shale(t, nil, "inspect", "catalogue", dir, "--repair", "--yes", "--no-data-dir"); code != exitOK || !strings.Contains(out, "rebuild the record") {
		t.Errorf("--no-data-dir: exit %d\n%s%s", code, out, errs)
	}
	if code, _, errs = shale(t, nil, "inspect", "catalogue", dir, "--no-data-dir"); code != exitUsage || !strings.Contains(errs, "need --repair") {
		t.Errorf("without --repair: exit %d\n%s", code, errs)
	}
}

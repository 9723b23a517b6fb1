//go:build e2e

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shaledb/shale/bench/result"
)

// TestSmoke runs small loads for a moment with a real server, and makes a report of them.
func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	args := []string{
		"run", "--loads", "graphite-known,rw1-new,soak,logs-ingest,logs-queries,logs-metrics,logs-streams-10k", "--runs", "1", "--scale", "0.002", "--duration", "2s", "--soak", "3s",
		"--quiet", "500ms", "--settle", "3s", "--queries", "3", "--out", dir, "--work", dir,
	}
	code, out, errs := call(t, args...)
	if code != 0 || !strings.Contains(out, "graphite-known") {
		t.Fatalf("code %d: %s%s", code, out, errs)
	}
	t.Log(out)
	files, err := filepath.Glob(dir + "/*.jsonl")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	records, err := result.Load(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Error != "" || len(r.Values) == 0 {
			t.Errorf("%s: %s, %v", r.Load, r.Error, r.Values)
		}
		if n := r.Values["samples/s"]; r.Load == "graphite-known" && n < 100 {
			t.Errorf("%v samples a second", n)
		}
		if n := r.Values["scanned-lines"]; r.Load == countLoad("logs-metrics", "bytes by app") && n != 0 {
			t.Errorf("%s: %v lines were read", r.Load, n)
		}
		if n := r.Values["result-lines"]; r.Load == logQueryLoad("needle, all") && n != 9 || r.Load == logQueryLoad("needle that is not there") && n != 0 {
			t.Errorf("%s: %v lines", r.Load, n)
		}
	}
	if left, err := filepath.Glob(dir + "/shale-bench-*"); err != nil || len(left) > 0 {
		t.Error("data is left:", left, err)
	}
	page, err := os.ReadFile("../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/page.md", page, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call(t, "report", "--page", dir+"/page.md", "--images", dir+"/img", files[0]); code != 0 {
		t.Error(errs)
	}
}

// TestPressure prints small tables of memory and of mixed clients.
func TestPressure(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := call(t, "memory", "--scale", "0.02", "--memory", "128MiB", "--clients", "2", "--cell", "500ms", "--work", dir)
	if want := 1 + 1 + 2*len(heavyShapes()); code != 0 || strings.Count(out, "\n") != want {
		t.Errorf("code %d, want %d lines: %s%s", code, want, out, errs)
	}
	code, out, errs = call(t, "mix", "--scale", "0.02", "--clients", "40", "--duration", "3s", "--pause", "100ms", "--work", dir)
	if code != 0 || !strings.Contains(out, "| light | all |") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

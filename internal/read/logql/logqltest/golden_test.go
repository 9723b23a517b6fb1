package logqltest

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// TestGolden compares results with those of Loki, which test/logql-oracle has recorded.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) != 3 {
		t.Fatalf("expected 3 files, got %d: %v", len(files), err)
	}
	n := 0
	for _, file := range files {
		records, err := Read(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range records {
			r := &records[i]
			n++
			got := Run(context.Background(), InMemory(r.Data), Tenant, &r.Query)
			if d := Diff(r.Loki, got, strings.Contains(r.Query.Text, "sort")); d != "" {
				t.Errorf("%s: %s: %s\n%s: %s", file, r.Data.Name, r.Query.String(), d, got)
			}
		}
	}
	if n < 300 {
		t.Errorf("only %d cases", n)
	}
}

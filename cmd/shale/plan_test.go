package main

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/plan/study"
)

// smallTrace is a trace of 100 keys, of which 10 are read again and again.
func smallTrace(t *testing.T) string {
	var b strings.Builder
	b.WriteString("time,key,size,query\n")
	for i := range 2000 {
		key := i % 10
		if i%4 == 0 {
			key = 10 + i/4%90
		}
		fmt.Fprintf(&b, "%d,k%d,1000000,q%d\n", i*30, key, i)
	}
	file := filepath.Join(t.TempDir(), "small.csv")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPlanCache(t *testing.T) {
	file := smallTrace(t)
	svg := filepath.Join(t.TempDir(), "curve.svg")
	args := []string{"plan", "cache", file, "--sizes", "12MB,30MB,120MB", "--policies", "lru,shale,optimum", "--quiet", "--delay", "0s", "--warm-up", "0.1"}
	code, out, errs := shale(t, nil, append(args, "--svg", svg, "--target-hit", "50")...)
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{"policy", "DWPD", "size that meets the target", "cluster", "when a node is lost", "refill of a node"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
	drawing, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(drawing))); ; {
		if _, err := d.Token(); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
	}

	_, out, _ = shale(t, nil, append(args, "--csv")...)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 1+3*4 {
		t.Errorf("%d rows of CSV, %v:\n%s", len(rows), err, out)
	}

	_, out, _ = shale(t, nil, append(args, "--json")...)
	var r study.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	gets := map[string]float64{}
	for _, row := range r.Rows {
		if row.Bytes == 120e6 {
			gets[row.Policy] = row.Gets
		}
		if row.HitRatio < 0 || row.HitRatio > 1 || row.Gets < 0 {
			t.Errorf("%+v", row)
		}
	}
	if r.Events.Keys != 100 || gets["optimum"] > gets["shale"] || gets["bound"] > gets["optimum"] {
		t.Errorf("%d keys, requests with room for all: %v", r.Events.Keys, gets)
	}
}

func TestPlanCacheWrongUse(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--policies mru", exitUsage, `got "mru"`},
		{"--model soup", exitUsage, "fan-out, g, p, p2"},
		{"--node cloud", exitUsage, "memory"},
		{"--sample 2", exitUsage, "--sample: expected a share"},
		{"--target-hit NaN", exitUsage, "--target-hit"},
		{"--json --csv", exitUsage, "--csv"},
		{"--max-requests 1000", exitFailed, "raise --max-requests or lower --days"},
		{"/nonexistent.csv", exitFailed, "no such file"},
	} {
		if code, out, errs := shale(t, nil, append([]string{"plan", "cache"}, strings.Fields(c.args)...)...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, %s%s", c.args, code, out, errs)
		}
	}
}

package promqltest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	upstream "github.com/prometheus/prometheus/promql/promqltest"
)

var rewrite = flag.Bool("rewrite", false, "write SKIPPED.md anew")

// TestSkippedList keeps SKIPPED.md true: the files and numbers of evals of the upstream version in go.mod,
// and that none of them is skipped.
func TestSkippedList(t *testing.T) {
	got := skippedList(t)
	const name = "SKIPPED.md"
	if *rewrite {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s is out of date (-file +now):\n%s", name, d)
	}
}

func skippedList(t *testing.T) string {
	exprs, err := upstream.GetBuiltInExprs()
	if err != nil {
		t.Fatal(err)
	}
	// The files are embedded in upstream's package and not exported, but they are also in the module's folder.
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", "github.com/prometheus/prometheus").Output()
	if err != nil {
		t.Fatalf("module folder of prometheus: %v", err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(module)), " ")
	files, err := filepath.Glob(filepath.Join(dir, "promql", "promqltest", "testdata", "*.test"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files in %s: %v", dir, err)
	}
	var sb strings.Builder
	sb.WriteString("# What of upstream's PromQL tests is left out\n\nNothing.\n\n")
	fmt.Fprintf(&sb, "All %d files of Prometheus %s are run whole, with %d evals, four times: with the rows in buffers, in local parts,\n", len(files), version, len(exprs))
	sb.WriteString("in the bucket as they were shipped, and there merged. This list is made by `go test ./test/promqltest -run SkippedList -rewrite`.\n\n")
	sb.WriteString("| file | evals |\n|---|---|\n")
	sum := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		evals := 0
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(strings.TrimSpace(line), "eval") {
				evals++
			}
		}
		sum += evals
		fmt.Fprintf(&sb, "| %s | %d |\n", filepath.Base(f), evals)
	}
	if sum != len(exprs) {
		t.Errorf("the files have %d evals, upstream's package has %d", sum, len(exprs))
	}
	return sb.String()
}

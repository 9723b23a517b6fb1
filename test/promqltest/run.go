package promqltest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	upstream "github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

// Run runs every section of upstream's files that needs no histograms, with rows in each place.
func Run(t *testing.T, open Open) {
	all := readSections(t)
	for _, st := range stages() {
		t.Run(st.name, func(t *testing.T) {
			for _, s := range all {
				if s.needs == "" {
					t.Run(fmt.Sprintf("%s:%d", s.file, s.first), func(t *testing.T) { runSection(t, s, st, open) })
				}
			}
		})
	}
}

func runSection(t *testing.T, s section, st stage, open Open) {
	// The limits are those under which upstream runs its own files.
	engine := upstream.NewTestEngine(t, false, 5*time.Minute, upstream.DefaultMaxSamplesPerQuery)
	upstream.RunTestWithStorage(t, s.text, engine, func(t testing.TB) storage.Storage {
		return &adapter{engine: open(t), move: st.move}
	})
}

// readSections reads the test files of the version of upstream that go.mod requires. They are embedded in upstream's
// package, where they cannot be reached, but they also lie in the module's folder.
func readSections(t testing.TB) []section {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/prometheus/prometheus").Output()
	if err != nil {
		t.Fatalf("module folder of prometheus: %v", err)
	}
	pattern := filepath.Join(strings.TrimSpace(string(dir)), "promql", "promqltest", "testdata", "*.test")
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files at %s: %v", pattern, err)
	}
	var out []section
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, cutFile(filepath.Base(f), string(text))...)
	}
	return out
}

// skippedList writes the list of the sections that are left out.
func skippedList(all []section) string {
	var sb strings.Builder
	files, sections, evals := map[string]bool{}, [2]int{}, [2]int{}
	whole := map[string]bool{} // files of which no section is left out
	for _, s := range all {
		if !files[s.file] {
			files[s.file], whole[s.file] = true, true
		}
		i := 0
		if s.needs != "" {
			i, whole[s.file] = 1, false
		}
		sections[i]++
		evals[i] += s.evals
	}
	complete := 0
	for _, ok := range whole {
		if ok {
			complete++
		}
	}
	sb.WriteString("# What of upstream's PromQL tests is left out\n\n")
	sb.WriteString("Made by the tests of this folder (`go test ./test/promqltest -rewrite`).\n")
	sb.WriteString("A section is what stands between two `clear` commands; it is left out whole.\n\n")
	fmt.Fprintf(&sb, "Run: %d sections with %d evals; %d of %d files are run whole.\n", sections[0], evals[0], complete, len(files))
	fmt.Fprintf(&sb, "Left out: %d sections with %d evals.\n\n", sections[1], evals[1])
	sb.WriteString("| file | lines | evals | needs |\n|---|---|---|---|\n")
	for _, s := range all {
		if s.needs != "" {
			fmt.Fprintf(&sb, "| %s | %d-%d | %d | %s |\n", s.file, s.first, s.last, s.evals, s.needs)
		}
	}
	return sb.String()
}

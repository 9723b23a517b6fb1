package promqltest

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write SKIPPED.md anew")

func TestSkippedList(t *testing.T) {
	all := readSections(t)
	got := skippedList(all)
	for _, s := range all {
		if s.needs != "" {
			t.Logf("left out: %s:%d-%d, %d evals: %s", s.file, s.first, s.last, s.evals, s.needs)
		}
	}
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

func TestCutFile(t *testing.T) {
	text := "# only a comment\nclear\n\nload 1m\n  a 1 2\n\neval instant at 1m a\n  a 2\n\nclear\nload 1m\n  h {{count:1}}\n# {{\neval instant at 0 h\n"
	got := cutFile("f", text)
	if len(got) != 2 {
		t.Fatalf("%d sections", len(got))
	}
	type brief struct {
		First, Last, Evals int
		Needs              string
	}
	want := []brief{{4, 9, 1, ""}, {11, 15, 1, "native histograms"}}
	for i, s := range got {
		if d := cmp.Diff(want[i], brief{s.first, s.last, s.evals, s.needs}); d != "" {
			t.Errorf("section %d: -want +got:\n%s", i, d)
		}
	}
}

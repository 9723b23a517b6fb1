package archtest

import (
	"flag"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// -rewrite re-makes the table of metrics.
var rewrite = flag.Bool("rewrite", false, "re-make the table of metrics in docs/operations.md from the source")

// house loads the repository.
func house(t *testing.T) *tree {
	t.Helper()
	tr, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.files) < 20 {
		t.Fatalf("found %d files; the root of the repository is somewhere else", len(tr.files))
	}
	return tr
}

func report(t *testing.T, bad []string) {
	t.Helper()
	for _, b := range bad {
		t.Error(b)
	}
}

func TestArrows(t *testing.T)      { report(t, arrows(house(t), rooms())) }
func TestPackageDocs(t *testing.T) { report(t, docs(house(t))) }
func TestNames(t *testing.T)       { report(t, names(house(t))) }
func TestBelowCmd(t *testing.T)    { report(t, belowCmd(house(t))) }
func TestPromises(t *testing.T)    { report(t, promises(house(t))) }
func TestFuzzSeeds(t *testing.T)   { report(t, fuzzSeeds(house(t))) }

func TestSizes(t *testing.T) {
	text, err := os.ReadFile("testdata/sizes.txt")
	if err != nil {
		t.Fatal(err)
	}
	ratchet, err := readRatchet(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	report(t, sizes(house(t), ratchet))
}

func TestDocsNameWhatExists(t *testing.T) {
	bad, err := paths(house(t))
	if err != nil {
		t.Fatal(err)
	}
	report(t, bad)
	report(t, comments(house(t)))
}

func TestLicense(t *testing.T) {
	bad, err := license(house(t))
	if err != nil {
		t.Fatal(err)
	}
	report(t, bad)
}

// Every room of the table has its reasons, and every room of the house a line.
func TestTable(t *testing.T) {
	for _, r := range rooms() {
		if r.why == "" {
			t.Errorf("%s: says not why it may import no more", r.name)
		}
		for to, why := range r.may {
			if why == "" {
				t.Errorf("%s -> %s: without a reason", r.name, to)
			}
		}
	}
	for _, f := range house(t).files {
		name, ok := strings.CutPrefix(f.dir(), "internal/")
		if ok && name != everyone && !isSuite(name) && lookup(name, rooms()) == nil {
			t.Errorf("%s: has no line in the table", name)
		}
	}
	if _, err := fs.Stat(os.DirFS("../.."), "internal/model"); err != nil {
		t.Error(err)
	}
}

// The table of metrics in docs/operations.md is the source's.
func TestMetricsTable(t *testing.T) {
	list, bad := metrics(house(t))
	report(t, bad)
	const doc, begin, end = "../../docs/operations.md", "<!-- metrics: begin, made by internal/archtest -->\n", "<!-- metrics: end -->"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s lacks the marks %q and %q", doc, begin, end)
	}
	want := metricTable(list)
	switch {
	case table == want:
	case *rewrite:
		if err := os.WriteFile(doc, []byte(head+begin+want+end+tail), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the metrics in %s are not those of the source; run go test ./internal/archtest -rewrite", doc)
	}
}

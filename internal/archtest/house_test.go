package archtest

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

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

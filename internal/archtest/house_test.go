package archtest

import (
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
)

var (
	rewrite = flag.Bool("rewrite", false, "re-make the table of metrics in docs/operations.md, and lower the ratchets to what the tree has")
	places  = flag.String("places", "", "list all places that break the rules of prose in a package, page or folder, such as internal/load")
)

// repository parses the source once for all tests, which only read it.
var repository = sync.OnceValues(func() (*tree, error) { return load(os.DirFS("../..")) })

// house loads the repository.
func house(t *testing.T) *tree {
	t.Helper()
	tr, err := repository()
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
func TestGoroutines(t *testing.T)  { report(t, goroutines(house(t), uncaught())) }

func TestSizes(t *testing.T) {
	tr := house(t)
	allowed := tighten(t, "testdata/sizes.txt", func(ratchet) ratchet { return oversized(tr) })
	report(t, sizes(tr, allowed))
}

func TestProse(t *testing.T) {
	found, err := prose(house(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if *places != "" && strings.HasPrefix(f.name+"/", strings.TrimSuffix(*places, "/")+"/") {
			t.Logf("%s: %s", f.at, f.text)
		}
	}
	allowed := tighten(t, "testdata/prose.txt", func(r ratchet) ratchet { return accounts(found, r) })
	report(t, overProse(found, allowed))
}

// tighten reads a ratchet; with -rewrite it lowers the ratchet to now first.
func tighten(t *testing.T, name string, now func(ratchet) ratchet) ratchet {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := readRatchet(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		head, _, _ := strings.Cut(string(text), "\n")
		allowed = allowed.lowered(now(allowed))
		if err := os.WriteFile(name, []byte(head+"\n"+allowed.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return allowed
}

func TestDocsNameWhatExists(t *testing.T) {
	bad, err := paths(house(t))
	if err != nil {
		t.Fatal(err)
	}
	report(t, bad)
	report(t, comments(house(t)))
}

func TestRoomTable(t *testing.T) {
	bad, err := roomTable(house(t))
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

// Every row of the table has its reasons, a package, and no arrow without use; every package has a row.
func TestTable(t *testing.T) {
	for _, r := range rooms() {
		if r.why == "" {
			t.Errorf("%s: has no reason against further arrows", r.name)
		}
		for to, why := range r.may {
			if why == "" {
				t.Errorf("%s -> %s: has no reason", r.name, to)
			}
		}
	}
	report(t, stale(house(t), rooms()))
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

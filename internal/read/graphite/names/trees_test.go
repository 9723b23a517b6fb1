package names

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
	"github.com/shaledb/shale/internal/store/part/series"
)

// fileSource is a part in a file.
func fileSource(t testing.TB, f *os.File) *partSource {
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	r, err := part.Open(context.Background(), f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return &partSource{func(context.Context) (*part.Reader, error) { return r, nil }}
}

// TestStoredTree: patterns find the same names by the tree that a block has, in a part without one, and in a
// block whose tree is damaged.
func TestStoredTree(t *testing.T) {
	all := fleet(series.LeastNames + 1000)
	plain, stored, damaged := writePart(t, all, part.Fast), writePart(t, all, part.Dense), writePart(t, all, part.Dense)
	damage(t, damaged)
	ways := []string{"scan", "index", "damaged"}
	answers := make([][]string, len(ways))
	globs := fleetGlobs(all)
	globs["all below"], globs["suffix"] = "prod.dc1.**", "**.p99"
	for i, f := range []*os.File{plain, stored, damaged} {
		finder := New(Options{From: fileSource(t, f), Registerer: prometheus.NewRegistry()})
		names := make([]string, 0, len(globs))
		for name := range globs {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			got, err := finder.Find(t.Context(), &Query{Tenant: "t", Range: always, Quota: &model.Quota{MaxBytes: 1 << 30}}, globs[name])
			if err != nil {
				t.Fatalf("%s: %s: %v", ways[i], name, err)
			}
			answers[i] = append(append(answers[i], name), texts(got)...)
		}
		hits, err := finder.Search(t.Context(), &Query{Tenant: "t", Range: always, Quota: &model.Quota{MaxBytes: 1 << 30}}, "cpu0 idle", 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			answers[i] = append(answers[i], h.Name)
		}
		if n := testutil.ToFloat64(finder.metrics.lookups.WithLabelValues(ways[i])); n != float64(len(globs)+1) {
			t.Errorf("%v of %d lookups were of the way %s", n, len(globs)+1, ways[i])
		}
		if err := finder.Close(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(answers[i], answers[0]) {
			t.Errorf("%s finds other names", ways[i])
		}
	}
	if len(answers[0]) < 5000 {
		t.Errorf("%d matches are too few to compare", len(answers[0]))
	}
	if err := part.Check(t.Context(), must(fileSource(t, stored).open(t.Context()))); err != nil {
		t.Error(err)
	}
	if err := part.Check(t.Context(), must(fileSource(t, damaged).open(t.Context()))); err == nil {
		t.Error("the check does not find the damage")
	}
}

func must[T any](x T, _ error) T { return x }

// damage flips a bit in the tree of a part.
func damage(t *testing.T, f *os.File) {
	r := must(fileSource(t, f).open(t.Context()))
	at, ok, err := series.FindTree(t.Context(), r.Reader, "t")
	if err != nil || !ok {
		t.Fatal("no tree", err)
	}
	b := []byte{0}
	if _, err := f.ReadAt(b, at.Off+int64(at.Len)/2); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 4
	if _, err := f.WriteAt(b, at.Off+int64(at.Len)/2); err != nil {
		t.Fatal(err)
	}
}

// slowSet is a set whose tree is read only when others have begun.
type slowSet struct {
	memorySet
	begun *atomic.Int32
	block chan struct{}
}

func (s *slowSet) Tree(ctx context.Context, _ *model.Quota) ([]byte, error) {
	s.begun.Add(1)
	select {
	case <-s.block:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestTreesAreReadTogether: several trees are read at one time, not more than so many, and none is read after
// the query is over.
func TestTreesAreReadTogether(t *testing.T) {
	begun, block := new(atomic.Int32), make(chan struct{})
	var sets []model.NameSet
	for range treesAtOnce + 3 {
		sets = append(sets, &slowSet{begun: begun, block: block})
	}
	trees := readTrees(t.Context(), sets, new(model.Quota))
	for begun.Load() < treesAtOnce {
		block <- struct{}{} // only a reader takes it
	}
	close(block)
	if x := trees.next(); x.err != nil || x.way != "scan" {
		t.Error(x)
	}
	trees.close()
	if n := begun.Load(); n > treesAtOnce+1 {
		t.Errorf("%d trees were read for one set", n)
	}
}

// panickingSet is a set whose tree is damaged in a way that nothing expects.
type panickingSet struct{ memorySet }

func (*panickingSet) Tree(context.Context, *model.Quota) ([]byte, error) { panic("a hostile tree") }

// TestTreePanics: a panic over one of the trees that are read ahead ends the query, and not the process.
func TestTreePanics(t *testing.T) {
	trees := readTrees(t.Context(), []model.NameSet{&panickingSet{}, &panickingSet{}}, new(model.Quota))
	defer trees.close()
	if x := trees.next(); x.err == nil || x.err.Error() != "unexpected error: a hostile tree" {
		t.Error(x)
	}
}

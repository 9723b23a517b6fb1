package part

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/nametree"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/series"
)

// drawNames draws series of a few tenants: many have a name alone, others a label more.
func drawNames(t *rapid.T) (all []oneSeries, lone map[string][]string) {
	lone = map[string][]string{}
	for i := range rapid.IntRange(1, 3).Draw(t, "tenants") {
		tenant := fmt.Sprint("t", i)
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab-]{1,2}(\.[ab-]{0,2}){0,3}`), 1, 12, rapid.ID[string]).Draw(t, "names")
		for _, n := range names {
			labels := []string{"__name__", n}
			if rapid.IntRange(0, 3).Draw(t, "with a tag") == 0 {
				labels = append(labels, rapid.SampledFrom([]string{"A", "ab"}).Draw(t, "tag"), "1")
				if rapid.Bool().Draw(t, "and without") {
					l := model.LabelsOf("__name__", n)
					all = append(all, oneSeries{tenant: tenant, labels: l, key: l.Key(testSeed, model.Metrics)})
					lone[tenant] = append(lone[tenant], n)
				}
			} else {
				lone[tenant] = append(lone[tenant], n)
			}
			l := model.LabelsOf(labels...)
			all = append(all, oneSeries{tenant: tenant, labels: l, key: l.Key(testSeed, model.Metrics)})
		}
		slices.Sort(lone[tenant])
	}
	return sortSeries(all), lone
}

// TestTrees: a block has a tree of the names of each tenant that has enough, which are all of its names and
// no others. Other parts have none, and are of the version that older programs read.
func TestTrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all, lone := drawNames(rt)
		level := rapid.SampledFrom([]Compression{Fast, Dense}).Draw(rt, "level")
		r, _ := writeSized(t, all, testOptions(true, level), tiny)
		any := false
		for tenant, names := range lone {
			b, err := r.Names(tenant).Tree(t.Context(), new(model.Quota))
			parttest.Must(t, err)
			if want := level == Dense && len(names) >= tiny.LeastNames; want != (b != nil) {
				rt.Fatalf("%s: tree: %t, want %t", tenant, b != nil, want)
			}
			if b == nil {
				continue
			}
			any = true
			tree, err := nametree.Open(b)
			parttest.Must(t, err)
			var got []string
			parttest.Must(t, tree.Each(func(name []byte) error { got = append(got, string(name)); return nil }))
			if !slices.Equal(got, names) {
				rt.Fatalf("%q, want %q", got, names)
			}
		}
		if want := map[bool]uint32{false: 2, true: file.FormatVersion}[any]; r.Version() != want {
			rt.Fatalf("version %d, want %d", r.Version(), want)
		}
		parttest.Must(t, Check(t.Context(), r))
	})
}

// swapped are pages of which one has other content.
type swapped struct {
	file.Pages
	at   file.Addr
	with []byte
}

func (s *swapped) Page(ctx context.Context, a file.Addr) ([]byte, error) {
	if a == s.at {
		return s.with, nil
	}
	return s.Pages.Page(ctx, a)
}

// treedPart is a part with a tree, in few bytes.
func treedPart(t testing.TB) (*Reader, []byte) {
	var all []oneSeries
	for i := range 9 {
		l := model.LabelsOf("__name__", fmt.Sprintf("a.b%d.c", i))
		all = append(all, oneSeries{tenant: "t", labels: l, key: l.Key(testSeed, model.Metrics)})
	}
	return writeSized(t, sortSeries(all), testOptions(true, Dense), tiny)
}

// TestForgedTrees: the check finds a tree of other names, however right its checksum is.
func TestForgedTrees(t *testing.T) {
	r, _ := treedPart(t)
	at, ok, err := series.FindTree(t.Context(), r.Reader, "t")
	if !ok {
		t.Fatal("no tree", err)
	}
	for _, names := range [][]string{{"a.b0.c"}, {"a.b0.c", "a.b0.d"}, {"x"}} {
		b := nametree.NewBuilder(func(int64) error { return nil })
		for _, n := range names {
			parttest.Must(t, b.Add([]byte(n)))
		}
		tree, err := b.Finish()
		parttest.Must(t, err)
		forged := r.Bind(&swapped{r.Pages(), at, tree})
		if err := Check(t.Context(), forged); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%q: %v", names, err)
		}
		if _, err := r.Bind(&swapped{r.Pages(), at, tree[:len(tree)-1]}).Names("t").Tree(t.Context(), new(model.Quota)); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%q cut short: %v", names, err)
		}
	}
}

package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// TestStoredBytesWithoutABlock: a block that cannot be read does not count, all others count, and what was
// learned is not read again.
func TestStoredBytesWithoutABlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _ := newWorld(t)
		live := slices.Clone(w.blocks)
		bad := slices.IndexFunc(live, func(b catalog.Block) bool { return len(b.Tenants) > 1 })
		if bad < 0 {
			t.Skip("no block has several tenants")
		}
		fresh := func() *Archive {
			return New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed, Gap: 512 << 10})
		}
		sums := func(a *Archive, live []catalog.Block) map[string]int64 {
			got, err := a.StoredBytes(context.Background(), live)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		all, others := sums(fresh(), live), sums(fresh(), slices.Delete(slices.Clone(live), bad, bad+1))
		gone := fmt.Errorf("%w: gone", model.ErrCorrupt)
		w.failBy(func(name string, _ int64) error {
			if name == catalog.ObjectName(live[bad].ID) {
				return gone
			}
			return nil
		})
		a := fresh()
		got, err := a.StoredBytes(context.Background(), live)
		if !errors.Is(err, gone) || !strings.Contains(err.Error(), fmt.Sprint(live[bad].ID)) || !maps.Equal(got, others) {
			t.Fatalf("%v, %v; want %v", got, err, others)
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if got, err := a.StoredBytes(ended, live); got != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("after the end: %v, %v", got, err)
		}
		w.failBy(func(name string, _ int64) error {
			if name != catalog.ObjectName(live[bad].ID) {
				return gone
			}
			return nil
		})
		for range 2 {
			if got := sums(a, live); !maps.Equal(got, all) {
				t.Fatalf("%v; want %v", got, all)
			}
			w.failBy(func(string, int64) error { return gone })
		}
	})
}

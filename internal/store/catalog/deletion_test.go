package catalog

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model"
	del "github.com/shaledb/shale/internal/store/deletion"
)

func deletion(tenant string, minTime, maxTime int64, ms ...Matcher) Deletion {
	if len(ms) == 0 {
		ms = []Matcher{{}} // everything
	}
	return Deletion{Deletion: del.Deletion{Signal: model.Metrics, Tenant: tenant, Range: model.TimeRange{Min: minTime, Max: maxTime}, Matchers: ms}}
}

// TestGenerations checks which deletions apply to which blocks.
func TestGenerations(t *testing.T) {
	b := memory(t)
	c := open(t, b, nil)
	ship(t, c, block("before", 0, 100))
	first, err := c.Delete(ctx, deletion("a", 50, 200))
	if err != nil || first.Generation != 1 {
		t.Fatal(first, err)
	}
	ship(t, c, block("between", 0, 100))
	// Another process, which does not know the first one yet.
	theirs := open(t, b, nil)
	second, err := theirs.Delete(ctx, deletion("b", 0, 10))
	if err != nil || second.Generation != 2 {
		t.Fatal(second, err)
	}
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	ship(t, c, block("after", 0, 100))
	for _, c := range []*Catalog{c, open(t, b, nil)} {
		for _, test := range []struct {
			block, tenant string
			want          []uint64
		}{
			{"before", "a", []uint64{1}}, {"before", "b", []uint64{2}}, {"before", "c", nil},
			{"between", "a", nil}, {"between", "b", []uint64{2}},
			{"after", "a", nil}, {"after", "b", nil},
		} {
			i := slices.Index(ids(c.Live()), test.block)
			var got []uint64
			for _, d := range c.Deletions(&c.Live()[i], test.tenant) {
				got = append(got, d.Generation)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%+v: %v", test, got)
			}
		}
	}
	late := block("late", 201, 300)
	if got := c.Deletions(&late, "a"); len(got) != 0 {
		t.Errorf("of other times: %v", got)
	}
}

// TestDeleteRace runs several processes that delete concurrently: each gets a generation of its own.
func TestDeleteRace(t *testing.T) {
	b := memory(t)
	var mu sync.Mutex
	seen := map[uint64]bool{}
	var wg sync.WaitGroup
	for range 4 {
		c := open(t, b, nil)
		wg.Go(func() {
			for i := range 5 {
				d, err := c.Delete(ctx, deletion(fmt.Sprint("t", i), 0, 1))
				mu.Lock()
				if err != nil || seen[d.Generation] {
					t.Errorf("%d, %v", d.Generation, err)
				}
				seen[d.Generation] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if c := open(t, b, nil); len(c.view.Load().deletions) != 20 || c.maxGeneration != 20 {
		t.Errorf("%d deletions up to %d", len(c.view.Load().deletions), c.maxGeneration)
	}
	b.Add(fault.Rule{Kind: fault.LostAck, Op: fault.PutIfAbsent, Times: 1})
	c := open(t, b, nil)
	if _, err := c.Delete(ctx, deletion("x", 0, 1)); !errors.Is(err, model.ErrTransient) {
		t.Fatal(err)
	}
	if d, err := c.Delete(ctx, deletion("x", 0, 1)); err != nil || d.Generation != 22 {
		t.Fatal(d.Generation, err)
	}
}

// TestCollectDeletions keeps a deletion while a visible block waits for it, and the last one without end.
func TestCollectDeletions(t *testing.T) {
	b, now := memory(t), int64(1000)
	c := open(t, b, &now)
	ship(t, c, block("x", 0, 100))
	for _, d := range []Deletion{deletion("a", 0, 10), deletion("a", 500, 600), deletion("zz", 0, 10)} {
		if _, err := c.Delete(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	generations := func() []uint64 {
		if _, err := c.Collect(ctx, CollectOptions{DeletionGrace: 50}); err != nil {
			t.Fatal(err)
		}
		got := []uint64{}
		for _, d := range open(t, b, nil).view.Load().deletions {
			got = append(got, d.Generation)
		}
		return got
	}
	if got := generations(); !slices.Equal(got, []uint64{1, 2, 3}) {
		t.Fatalf("within the grace: %v", got)
	}
	now += 50
	if got := generations(); !slices.Equal(got, []uint64{1, 3}) {
		t.Fatalf("a block waits for the first: %v", got)
	}
	m := block("m", 0, 100)
	m.OrderLo, m.OrderHi, m.Generation = 9, 9, 3
	merge(t, c, m, "x")
	if got := generations(); !slices.Equal(got, []uint64{3}) {
		t.Fatalf("it has been applied: %v", got)
	}
	if d, err := open(t, b, nil).Delete(ctx, deletion("a", 0, 10)); err != nil || d.Generation != 4 {
		t.Fatal(d.Generation, err)
	}
}

// TestOrphans collects uploads that were never committed, and no others.
func TestOrphans(t *testing.T) {
	b, now := memory(t), int64(0)
	c := open(t, b, &now)
	ship(t, c, block("live", 0, 1))
	abandon(t, b, "lost")
	abandon(t, b, "slow")
	o := CollectOptions{Grace: time.Hour, UploadGrace: 24 * time.Hour}
	sweep := func(pass time.Duration) int {
		t.Helper()
		now += int64(pass)
		done, err := c.Collect(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		return done.Orphans
	}
	done, err := c.Uploading(ctx, "slow")
	if err != nil {
		t.Fatal(err)
	}
	// A clock that jumps does not age orphans by itself.
	if n := sweep(0) + sweep(48*time.Hour); n != 0 {
		t.Fatalf("%d collected", n)
	}
	if n := sweep(time.Minute); n != 1 {
		t.Fatalf("%d collected", n)
	}
	if got := objects(t, b); !slices.Equal(got, []string{"blocks/live", "blocks/slow", shipA}) {
		t.Fatalf("%v", got)
	}
	if err := commitBlock(c, block("slow", 0, 1)); err != nil {
		t.Fatal(err)
	}
	done()
	// A commit of another process in the meantime is not an orphan either.
	abandon(t, b, "theirs")
	sweep(0)
	sweep(time.Hour)
	ship(t, open(t, b, nil), block("theirs", 0, 1))
	if n := sweep(48*time.Hour) + sweep(48*time.Hour); n != 0 || len(objects(t, b)) != 6 {
		t.Fatalf("%d collected, left %v", n, objects(t, b))
	}
	for _, op := range []fault.Op{fault.List, fault.Delete} {
		abandon(t, b, "lost")
		sweep(0)
		sweep(48 * time.Hour)
		b.Add(fault.Rule{Kind: fault.Fail, Op: op, Times: 1})
		if _, err := c.Collect(ctx, o); !errors.Is(err, model.ErrTransient) {
			t.Fatal(err)
		}
		if n := sweep(time.Hour); n != 1 {
			t.Fatalf("%s: %d collected", op, n)
		}
	}
}

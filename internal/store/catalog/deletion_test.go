package catalog

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model"
)

func deletion(tenant string, minTime, maxTime int64, ms ...Matcher) Deletion {
	if len(ms) == 0 {
		ms = []Matcher{{}} // everything
	}
	return Deletion{Signal: model.Metrics, Tenant: tenant, Range: model.TimeRange{Min: minTime, Max: maxTime}, Matchers: ms}
}

func TestMatches(t *testing.T) {
	l := model.LabelsOf("__name__", "up", "job", "a\nb")
	for _, test := range []struct {
		m    Matcher
		want bool
	}{
		{Matcher{}, true},
		{Matcher{"__name__", model.MatchEqual, "up"}, true},
		{Matcher{"__name__", model.MatchEqual, "u"}, false},
		{Matcher{"__name__", model.MatchNotEqual, "up"}, false},
		{Matcher{"instance", model.MatchEqual, ""}, true},
		{Matcher{"instance", model.MatchNotEqual, ""}, false},
		{Matcher{"instance", model.MatchRegexp, ".*"}, true},
		{Matcher{"job", model.MatchRegexp, "a.b"}, true},
		{Matcher{"job", model.MatchRegexp, "a"}, false},
		{Matcher{"job", model.MatchNotRegexp, "a|b"}, true},
	} {
		for _, both := range []bool{false, true} {
			d := deletion("t", 0, 1, test.m)
			if both {
				d.Matchers = append(d.Matchers, Matcher{"__name__", model.MatchNotEqual, "up"})
			}
			if err := d.compile(); err != nil {
				t.Fatal(err)
			}
			if got := d.Matches(l); got != (test.want && !both) {
				t.Errorf("%+v: %t", d.Matchers, got)
			}
		}
	}
	for what, d := range map[string]Deletion{
		"tenant":      deletion("", 0, 1),
		"times":       deletion("t", 1, 0),
		"expression":  deletion("t", 0, 1, Matcher{"a", model.MatchRegexp, "("}),
		"operator":    deletion("t", 0, 1, Matcher{"a", 9, ""}),
		"UTF-8":       deletion("t", 0, 1, Matcher{"a", model.MatchEqual, "\xff"}),
		"no matchers": {Signal: model.Metrics, Tenant: "t"},
		"matchers":    deletion("t", 0, 1, make([]Matcher, maxMatchers+1)...),
		"large":       deletion("t", 0, 1, Matcher{"a", model.MatchEqual, string(make([]byte, maxMatcherBytes))}),
		"signal":      {Tenant: "t", Matchers: []Matcher{{}}, Signal: 9},
	} {
		if _, err := open(t, memory(t), nil).Delete(ctx, d); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestCutRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r, want model.Rows
		from := rapid.IntRange(0, 3).Draw(t, "from")
		var ranges []model.TimeRange
		for range rapid.IntRange(0, 3).Draw(t, "ranges") {
			a := rapid.Int64Range(0, 30).Draw(t, "min")
			ranges = append(ranges, model.TimeRange{Min: a, Max: a + rapid.Int64Range(0, 10).Draw(t, "span")})
		}
		starts, blobs := rapid.Bool().Draw(t, "starts"), rapid.Bool().Draw(t, "blobs")
		for i := range from + rapid.IntRange(0, 20).Draw(t, "rows") {
			at, start := rapid.Int64Range(0, 40).Draw(t, "time"), int64(0)
			if starts {
				start = at + 1
			}
			keep := i < from || !slices.ContainsFunc(ranges, func(g model.TimeRange) bool { return g.Contains(at) })
			for _, to := range []*model.Rows{&r, &want} {
				switch {
				case to == &want && !keep:
				case blobs && i%2 == 0:
					to.AppendBlob(at, model.KindExemplar, fmt.Appendf(nil, "row %d", i), start)
				default:
					to.Append(at, uint64(i), start)
				}
			}
		}
		CutRows(&r, from, ranges)
		if r.Len() != want.Len() {
			t.Fatalf("%d rows, not %d", r.Len(), want.Len())
		}
		for i := range r.Len() {
			if r.Times[i] != want.Times[i] || !r.Same(i, &want, i) || r.Start(i) != want.Start(i) {
				t.Fatalf("row %d", i)
			}
		}
	})
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

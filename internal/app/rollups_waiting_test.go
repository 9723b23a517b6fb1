package app

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/store/compact"
)

// newWaiting returns a store whose points of 6 days have all expired long ago, and have no rollups yet.
func newWaiting(t *testing.T, p **policy.Policies, plain bool) *rolled {
	s := newSetup(t, func(o *EngineOptions) {
		o.Rollups = func() *policy.Policies { return *p }
		o.Retention, o.Plain = keeping(4*day), plain
	})
	begin := s.now / int64(day) * int64(day)
	give := func(at int64) {
		s.now = at
		must(t, s.push("a", model.LabelsOf("__name__", "coarse.last"), at, 1))
		must(t, s.Ship())
	}
	for i := range int64(6) {
		give(begin + i*int64(day) + int64(day/2))
	}
	give(begin + int64(40*day))
	return &rolled{setup: s, t: t}
}

func (w *rolled) counts() (blocks, rollups int) {
	s := w.catalog.State()
	return len(s.Blocks), len(s.Rollups)
}

// want fails unless there are that many blocks and rollups after expiry.
func (w *rolled) want(when string, blocks, rollups int) {
	w.t.Helper()
	w.expireRows()
	if b, r := w.counts(); b != blocks || r != rollups {
		w.t.Fatalf("%s: %d blocks and %d rollups, want %d and %d", when, b, r, blocks, rollups)
	}
}

// TestRunsThatAreCut: a run of compaction that ended early, or that could not work, ends no wait for rollups:
// retention goes on to wait for them.
func TestRunsThatAreCut(t *testing.T) {
	p := policiesOf(t, someSchemas, someAggregations)
	for _, full := range []bool{false, true} {
		w := newWaiting(t, &p, false)
		o := compact.Options{
			Catalog: w.catalog, Bucket: w.o.Bucket, FS: w.o.FS, Dir: "/data/other", Seed: w.Path().Seed(),
			Retention: w.rules, Rollups: w.rollups, MaxMerges: 2, Now: func() int64 { return w.now },
		}
		if full {
			o.Room = func(int64) (func(), error) { return nil, fmt.Errorf("%w: no room", model.ErrTransient) }
		}
		c, err := compact.New(o)
		must(t, err)
		whole := w.compactor
		w.compactor = c
		for i := range 8 {
			if _, err := c.RunOnce(context.Background()); full == (err == nil) {
				t.Fatal(err)
			}
			w.expireRows()
			if b, r := w.counts(); b-1+r < 6 {
				t.Fatalf("full %t, run %d: %d blocks and %d rollups are left", full, i, b, r)
			}
			if full {
				w.now += int64(2 * day)
			}
		}
		w.compactor = whole
		w.compact(t)
		if rollups := 6; full { // and of the last day, which is over by now
			w.want("after a whole run", 1, rollups+1)
		} else {
			w.want("after a whole run", 1, rollups)
		}
		must(t, w.Close())
	}
}

// TestEmptiedSchemas: points that wait for rollups outlive schemas that have none for a while. After a week,
// neither points nor lone rollups are kept for schemas that are gone.
func TestEmptiedSchemas(t *testing.T) {
	full, empty := policiesOf(t, someSchemas, someAggregations), policiesOf(t, "", "")
	p := full
	w := newWaiting(t, &p, false)
	w.want("before any run", 7, 0)
	p = empty
	w.want("without schemas", 7, 0)
	w.compact(t)
	w.want("without schemas, after a run", 7, 0)
	p = full
	w.compact(t)
	w.want("with schemas again", 1, 6)
	p = empty
	w.compact(t)
	w.want("without schemas, lone rollups", 1, 6)
	w.now += int64(8 * day)
	must(t, w.push("a", model.LabelsOf("__name__", "coarse.last"), w.now, 1))
	must(t, w.Ship())
	w.compact(t)
	w.want("without schemas for a week", 1, 0)
	must(t, w.Close())
}

// TestPlainSchemas: below journal-version 4, points wait for the rollups of a later version as long as
// schemas have some, and then for a week.
func TestPlainSchemas(t *testing.T) {
	p := policiesOf(t, someSchemas, someAggregations)
	w := newWaiting(t, &p, true)
	for range 3 {
		w.compact(t)
		w.want("with schemas", 7, 0)
		w.now += int64(8 * day)
	}
	p = policiesOf(t, "", "")
	w.compact(t)
	w.want("without schemas", 7, 0)
	w.now += int64(8 * day)
	must(t, w.push("a", model.LabelsOf("__name__", "coarse.last"), w.now, 1))
	must(t, w.Ship())
	w.compact(t)
	w.want("without schemas for a week", 1, 0)
	must(t, w.Close())
}

// TestNoRollupsNoWaiting: without schemas of several archives, points expire at their time, before any run,
// and a query by tags does not show series whose points have expired.
func TestNoRollupsNoWaiting(t *testing.T) {
	p := policiesOf(t, "[a]\npattern = .*\nretentions = 60s:3y\n", "")
	w := newWaiting(t, &p, false)
	must(t, w.push("a", model.LabelsOf("__name__", "old", "dc", "x"), w.now-int64(39*day), 1))
	must(t, w.push("a", model.LabelsOf("__name__", "new", "dc", "x"), w.now, 1))
	now := w.now / int64(time.Second)
	got, _, err := w.renders(true, now-45*86400, now, "seriesByTag('dc=x')")
	must(t, err)
	if len(got) != 1 {
		t.Errorf("%d series, want that of the points that retention shows:\n%s", len(got), values(got))
	}
	must(t, w.Ship())
	w.expireRows()
	for _, b := range w.catalog.State().Blocks {
		if b.Range.Max < w.now-int64(5*day) {
			t.Errorf("block %s has expired and is kept", b.ID)
		}
	}
	must(t, w.Close())
}

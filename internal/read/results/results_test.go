package results

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
)

const minute = int64(time.Minute)

// begin is a multiple of all extents here.
const begin = 1_700_000_400_000_000_000 / (240 * minute) * (240 * minute)

// rig is a tier with a clock.
type rig struct {
	*Tier
	changes  Changes
	now      int64
	horizons []int64 // how long rows are kept
}

func newRig(limits Limits) *rig {
	r := &rig{now: begin + 600*minute - 1}
	if limits.Split == 0 {
		limits.Split, limits.ClosedAfter = 10*time.Minute, time.Minute
	}
	if limits.MaxBytes == 0 {
		limits.MaxBytes = 1 << 20
	}
	r.Tier = New(Options{
		Limits: limits, Changes: &r.changes, Now: func() int64 { return r.now }, Registerer: prometheus.NewRegistry(),
		Horizon: func(string, model.Signal) (int64, *model.Horizon) {
			h := &model.Horizon{}
			for _, keep := range r.horizons {
				h.Times = append(h.Times, r.now-keep)
			}
			return math.MinInt64, h
		},
	})
	return r
}

func leaf(tenants ...string) *Leaf {
	return &Leaf{Tenants: tenants, Signal: model.Logs, Text: "x", Before: 5 * minute}
}

// steps are some minutes, from one on.
func steps(from, count int64) Steps {
	return Steps{Start: begin + from*minute, Step: minute, Count: int(count)}
}

// evaluate opens a run, keeps what it can, and describes its pieces: + is a kept one.
func (r *rig) evaluate(l *Leaf, s Steps, query uint64) string {
	run := r.Open(context.Background(), l, s, query)
	if run == nil {
		return "whole"
	}
	var all []string
	for i := range run.Pieces {
		p := &run.Pieces[i]
		if p.Value != nil {
			if want := fmt.Sprint(run.grid.first + int64(p.From-p.At)); p.Value != want {
				return fmt.Sprintf("value from step %v on, should be %s", p.Value, want)
			}
			all = append(all, fmt.Sprintf("+%d-%d@%d", p.From, p.To, p.At))
			continue
		}
		all = append(all, fmt.Sprintf("%d-%d", p.From, p.To))
		run.Keep(p, func(from, _ int) (any, int64) { return fmt.Sprint(run.grid.first + int64(from)), 100 })
	}
	return strings.Join(all, " ")
}

func (r *rig) check(t *testing.T, s Steps, want string) {
	t.Helper()
	if got := r.evaluate(leaf("a"), s, rand.Uint64()); got != want {
		t.Errorf("%s, should be %s", got, want)
	}
}

func push(tenant string, times ...int64) *model.Batch {
	b := &model.Batch{Tenant: tenant, Signal: model.Logs}
	for _, t := range times {
		b.Text.Times = append(b.Text.Times, begin+t*minute)
	}
	return b
}

// TestPieces: closed extents are kept, whatever range asks, and parts of them are used. The first one of a
// range is kept without its first steps, until a range begins before it.
func TestPieces(t *testing.T) {
	r := newRig(Limits{})
	r.check(t, steps(3, 40), "0-40")
	r.check(t, steps(3, 40), "+0-7@0 +7-17@0 +17-27@0 +27-37@0 37-40")
	r.check(t, steps(5, 40), "+0-5@2 +5-15@0 +15-25@0 +25-35@0 35-40")
	r.check(t, steps(2, 40), "0-8 +8-18@0 +18-28@0 +28-38@0 38-40")
	r.check(t, steps(3, 20), "+0-7@1 +7-17@0 +17-20@0")
	r.check(t, steps(0, 20), "0-10 +10-20@0")
	r.check(t, steps(3, 20), "+0-7@3 +7-17@0 +17-20@0")
	r.check(t, steps(15, 20), "+0-5@5 +5-15@0 +15-20@0")
	r.check(t, Steps{Start: begin + 20*minute + 1, Step: minute, Count: 20}, "0-20") // on another grid
	r.check(t, Steps{Start: begin, Step: 2 * minute, Count: 20}, "0-20")
	r.check(t, steps(0, 1), "whole")
	r.check(t, steps(590, 20), "whole")
	r.check(t, steps(588, 20), "0-20")
	r.check(t, steps(580, 20), "0-20") // its end is closed, and that of the extent after it is not
	r.check(t, steps(580, 20), "+0-10@0 10-20")
	for _, s := range []Steps{{Start: math.MaxInt64 - 10, Step: 1, Count: 5}, {Start: 0, Step: math.MaxInt64, Count: 2}, {Start: math.MinInt64, Step: 1, Count: 9}} {
		r.check(t, s, "whole")
	}
	before := steps(-25, 20)
	if got := r.evaluate(leaf("a"), before, 7) + ", " + r.evaluate(leaf("a"), before, 7); got != "0-20, +0-5@0 +5-15@0 15-20" {
		t.Error(got)
	}
	if n := testutil.ToFloat64(r.metrics.ownHits); n != 2 {
		t.Errorf("%v hits of the same query, should be 2", n)
	}
}

// TestChanges: late rows, deletions and blocks make extents stale whose windows they touch, and no others.
func TestChanges(t *testing.T) {
	r := newRig(Limits{})
	fill := func() {
		for range 2 {
			r.evaluate(leaf("a"), steps(0, 40), rand.Uint64())
		}
		r.check(t, steps(0, 40), "+0-10@0 +10-20@0 +20-30@0 +30-40@0")
	}
	only := func(tenants ...string) func(string) bool {
		return func(tenant string) bool { return slices.Contains(tenants, tenant) }
	}
	for _, x := range []struct {
		what  string
		apply func()
		want  string
	}{
		{"newer rows", func() { r.changes.Applied(push("a", 599, 600)) }, "+0-10@0 +10-20@0 +20-30@0 +30-40@0"},
		{"a late row", func() { r.changes.Applied(push("a", 600, 13)) }, "+0-10@0 10-20 +20-30@0 +30-40@0"},
		{"a row in windows of two extents", func() { r.changes.Applied(push("a", 17)) }, "+0-10@0 10-30 +30-40@0"},
		{"another tenant", func() { r.changes.Applied(push("b", 17)) }, "+0-10@0 +10-20@0 +20-30@0 +30-40@0"},
		{"a range", func() {
			r.changes.Range(model.Logs, model.TimeRange{Min: begin + 22*minute, Max: begin + 23*minute}, only("a"))
		}, "+0-10@0 +10-20@0 20-30 +30-40@0"},
		{"a range of others", func() { r.changes.Range(model.Logs, model.Always(), only("b")) }, "+0-10@0 +10-20@0 +20-30@0 +30-40@0"},
		{"a range of metrics", func() { r.changes.Range(model.Metrics, model.Always(), only("a")) }, "+0-10@0 +10-20@0 +20-30@0 +30-40@0"},
		{"everything", r.changes.All, "0-40"},
		{"more rows than are told apart", func() {
			for i := range int64(maxBuckets + 1) {
				r.changes.Applied(push("a", -100-i))
			}
		}, "0-40"},
		{"more ranges than are told apart", func() {
			for range maxRanges + 1 {
				r.changes.Range(model.Logs, model.TimeRange{Min: 0, Max: 1}, only("a"))
			}
		}, "0-40"},
	} {
		fill()
		x.apply()
		if got := r.evaluate(leaf("a"), steps(0, 40), rand.Uint64()); got != x.want {
			t.Errorf("%s: %s, should be %s", x.what, got, x.want)
		}
	}
	fill()
	if got := r.evaluate(leaf("a", "b"), steps(0, 40), 1); got != "0-40" {
		t.Errorf("two tenants: %s", got)
	}
	r.changes.Applied(push("b", 13))
	if got := r.evaluate(leaf("a", "b"), steps(0, 40), 2); got != "+0-10@0 10-20 +20-30@0 +30-40@0" {
		t.Errorf("two tenants, a late row of one: %s", got)
	}
}

// TestMoved: a value is not kept if its rows change between Open and Keep.
func TestMoved(t *testing.T) {
	r := newRig(Limits{})
	run := r.Open(context.Background(), leaf("a"), steps(0, 40), 1)
	r.changes.Applied(push("a", 13))
	run.Keep(&run.Pieces[0], func(from, _ int) (any, int64) { return fmt.Sprint(run.grid.first + int64(from)), 100 })
	r.check(t, steps(0, 40), "+0-10@0 10-20 +20-30@0 +30-40@0")
}

// TestHorizons: an extent whose rows expire is computed, until all of them have.
func TestHorizons(t *testing.T) {
	r := newRig(Limits{})
	r.horizons = []int64{590 * minute, 900 * minute} // rows before minute 10 are hidden in some series
	r.check(t, steps(0, 40), "0-40")
	// The windows of steps 0 to 9 end at minute 9, those of steps 10 to 19 begin at minute 5.
	r.check(t, steps(0, 40), "+0-10@0 10-20 +20-30@0 +30-40@0")
	r.now += 20 * minute // rows before minute 30 are hidden
	r.check(t, steps(0, 40), "+0-10@0 10-40")
	r.check(t, steps(0, 40), "+0-10@0 +10-20@0 +20-30@0 30-40")
	r.now += 100 * minute
	r.check(t, steps(0, 40), "+0-10@0 +10-20@0 +20-30@0 30-40")
	r.check(t, steps(0, 40), "+0-10@0 +10-20@0 +20-30@0 +30-40@0")
	r.now += 400 * minute // the second horizon
	r.check(t, steps(0, 40), "0-40")
}

// TestBounds: the bytes of a tenant and of all stay within their limits, and values that are used stay.
func TestBounds(t *testing.T) {
	r := newRig(Limits{Split: 10 * time.Minute, TenantPercent: 50, MaxBytes: 100 << 10})
	for i := range uint64(40) {
		for _, tenant := range []string{"a", "b", "c"} {
			l := leaf(tenant)
			r.evaluate(l, steps(0, 100), rand.Uint64())
			if l.Text = fmt.Sprint(i); i > 2 {
				r.evaluate(l, steps(0, 500), i)
			}
			if o := r.store.owners[tenant]; o == nil || o.bytes > 50<<10 {
				t.Fatalf("%s holds too much or nothing: %+v", tenant, o)
			}
		}
		if r.store.bytes > 100<<10 {
			t.Fatalf("%d bytes are held", r.store.bytes)
		}
	}
	if got := r.evaluate(leaf("a"), steps(0, 100), 1); strings.Count(got, "+") != 10 {
		t.Errorf("values that are always used have left for others: %s", got)
	}
	bytes, n := int64(0), 0
	for _, o := range r.store.owners {
		owned := int64(0)
		for e := o.oldest; e != nil; e = e.newer {
			owned, n = owned+e.bytes, n+1
		}
		if owned != o.bytes {
			t.Errorf("%s: %d bytes, counted %d", o.name, owned, o.bytes)
		}
		bytes += owned
	}
	if bytes != r.store.bytes || n != len(r.store.entries) {
		t.Errorf("%d bytes in %d entries, counted %d in %d", bytes, n, r.store.bytes, len(r.store.entries))
	}
}

// TestRefuse: nothing is kept of a leaf for some minutes if a value is too large or of the wrong kind.
func TestRefuse(t *testing.T) {
	r := newRig(Limits{})
	run := r.Open(context.Background(), leaf("a"), steps(0, 40), 1)
	run.Keep(&run.Pieces[0], func(int, int) (any, int64) { return "large", 1 << 20 })
	r.check(t, steps(0, 40), "whole")
	r.now += int64(refusedFor)
	r.check(t, steps(0, 40), "0-40")
	r.check(t, steps(0, 40), "+0-10@0 +10-20@0 +20-30@0 +30-40@0")
}

// BenchmarkHit opens a run of a day in steps of a minute, all of whose extents are kept.
func BenchmarkHit(b *testing.B) {
	r := newRig(Limits{Split: 15 * time.Minute, ClosedAfter: time.Minute, MaxBytes: 1 << 24})
	r.now += 24 * 60 * minute
	r.evaluate(leaf("a"), steps(0, 1440), 1)
	b.ReportAllocs()
	for b.Loop() {
		if run := r.Open(context.Background(), leaf("a"), steps(0, 1440), 2); len(run.Pieces) != 96 {
			b.Fatal(len(run.Pieces))
		}
	}
}

// BenchmarkApplied tells of a batch of 2,000 rows that are in time.
func BenchmarkApplied(b *testing.B) {
	r := newRig(Limits{})
	r.evaluate(leaf("a"), steps(0, 40), 1)
	batch := push("a")
	for range 2000 {
		batch.Text.Times = append(batch.Text.Times, r.now)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.changes.Applied(batch)
	}
}

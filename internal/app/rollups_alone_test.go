package app

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/graphite/names"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/retention"
)

// aloneDays is how many days the points of newAlone span.
const aloneDays = 4

// newAlone returns a store of which the points of the first days have expired: a point a minute of some
// names, each with the number of its minute as its value.
func newAlone(t *testing.T, change func(*EngineOptions)) (s *setup, begin int64) {
	p := policiesOf(t, someSchemas, someAggregations)
	s = newSetup(t, func(o *EngineOptions) {
		o.Rollups = func() *policy.Policies { return p }
		o.Retention = keeping(2 * day)
		if change != nil {
			change(o)
		}
	})
	s.now -= s.now % int64(day)
	begin = s.now
	for i := int64(0); i < aloneDays*1440; i += 60 {
		for _, name := range []string{"coarse.sum", "coarse.a", "coarse.last"} {
			if name != "coarse.last" || i < 1440 { // a name that ends
				s.pushMinutes(t, name, begin, i, i+60, func(i int64) float64 { return float64(i) })
			}
		}
	}
	must(t, s.Ship())
	s.now += int64(2 * time.Hour)
	return s, begin
}

func (s *setup) expire(t *testing.T) {
	t.Helper()
	x := &expiry{catalog: s.catalog, compact: s.compactor, rules: s.rules, grace: time.Hour, now: func() int64 { return s.now }}
	must(t, x.drop(context.Background()))
}

// hours returns the values of a name in the archive of 2 h.
func (s *setup) hours(t *testing.T, name string, begin int64) []float64 {
	t.Helper()
	from := begin / int64(time.Second)
	list, _, err := s.renders(true, from-1, from+aloneDays*86400, name, "randomWalk('x')")
	must(t, err)
	return list[0].Values
}

// countAlone returns how many blocks of rollups have no points any more.
func (s *setup) countAlone() (n int) {
	for _, b := range s.catalog.State().Rollups {
		if b.Alone {
			n++
		}
	}
	return n
}

// TestLatePointsAddUp: points that come when the others of their slot are gone add up with the rollup, and
// the answer says so. They stay as long as it does.
func TestLatePointsAddUp(t *testing.T) {
	racetest.SkipSerial(t) // TestRendersDuringCompaction has the same store
	s, begin := newAlone(t, nil)
	s.compact(t)
	before := s.hours(t, "coarse.sum", begin)
	s.expire(t)
	if s.countAlone() == 0 {
		t.Fatal("no points have expired")
	}
	if got := s.hours(t, "coarse.sum", begin); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Fatalf("after points have expired: %v, before %v", got, before)
	}
	// 5 m slots of the file have the last point of theirs: 4, 9, 14 ... The slot of 2 h at the beginning has 24.
	want := 0.0
	for i := range 24 {
		want += float64(5*i + 4)
	}
	check := func(sum, average float64) {
		t.Helper()
		if got := s.hours(t, "coarse.sum", begin)[0]; got != sum {
			t.Errorf("sum %v, want %v", got, sum)
		}
		if got := s.hours(t, "coarse.a", begin)[0]; got != average {
			t.Errorf("average %v, want %v", got, average)
		}
	}
	check(want, want/24)
	for _, name := range []string{"coarse.sum", "coarse.a"} {
		must(t, s.push("a", model.LabelsOf("__name__", name), begin+int64(time.Minute), 1000))
	}
	check(want+1000, (want+1000)/24) // a slot of the 24 came again
	_, cost, err := s.renders(true, begin/int64(time.Second)-1, s.now/int64(time.Second), "coarse.sum")
	must(t, err)
	if w := cost.Warnings.All(); len(w) != 1 {
		t.Errorf("warnings: %q", w)
	}
	for range 3 {
		must(t, s.Ship())
		s.now += int64(3 * day)
		s.compact(t)
		s.expire(t)
		check(want+1000, (want+1000)/24)
	}
	must(t, s.Close())
}

// TestDeletionOfRollups: a deletion takes the slots that it touches, at once, and is done when the rollups
// are written without them.
func TestDeletionOfRollups(t *testing.T) {
	racetest.SkipSerial(t) // TestRendersDuringCompaction has the same store
	s, begin := newAlone(t, nil)
	s.compact(t)
	s.expire(t)
	alone := s.countAlone()
	before := s.hours(t, "coarse.sum", begin)
	other := s.hours(t, "coarse.a", begin)
	_, err := s.Delete(context.Background(), deletion.Deletion{
		Tenant: "a", Signal: model.Metrics, Range: model.TimeRange{Min: begin + int64(3*time.Hour), Max: begin + int64(5*time.Hour)},
		Matchers: []deletion.Matcher{{Name: "__name__", Op: model.MatchEqual, Value: "coarse.sum"}},
	})
	must(t, err)
	look := func(when string) {
		t.Helper()
		for i, v := range s.hours(t, "coarse.sum", begin) {
			if gone := i == 1 || i == 2 || before[i] != before[i]; gone != (v != v) || !gone && math.Float64bits(v) != math.Float64bits(before[i]) {
				t.Errorf("%s: slot %d is %v", when, i, v)
			}
		}
		if got := s.hours(t, "coarse.a", begin); fmt.Sprint(got) != fmt.Sprint(other) {
			t.Errorf("%s: another name has %v, want %v", when, got, other)
		}
	}
	look("at once")
	if left := s.catalog.Requests("a")[0].Left; left == 0 {
		t.Error("the deletion is done before any row was dropped")
	}
	must(t, s.Ship())
	s.compact(t)
	s.compact(t)
	look("rewritten")
	if left := s.catalog.Requests("a")[0].Left; left != 0 {
		t.Errorf("%d blocks still have deleted rows", left)
	}
	if n := s.countAlone(); n != alone {
		t.Errorf("%d blocks of rollups are alone, %d before", n, alone)
	}
	must(t, s.Close())
}

// TestNamesOfRollups: a name of which only rollups are left is found.
func TestNamesOfRollups(t *testing.T) {
	racetest.SkipSerial(t) // TestRendersDuringCompaction has the same store
	s, begin := newAlone(t, nil)
	s.compact(t)
	s.expire(t)
	found := func(rollups bool) int {
		f := names.New(names.Options{From: s.Querier(), Rollups: func() bool { return rollups }})
		all, err := f.Find(context.Background(), &names.Query{
			Tenant: "a", Range: model.TimeRange{Min: begin, Max: begin + int64(day)}, Quota: new(model.Quota), Cost: new(model.Cost),
		}, "coarse.*")
		must(t, err)
		must(t, f.Close())
		return len(all)
	}
	if n, without := found(true), found(false); n != 3 || without != 0 {
		t.Errorf("%d names, %d without rollups", n, without)
	}
	if got := s.hours(t, "coarse.last", begin); got[0] != 119 || got[12] == got[12] {
		t.Errorf("coarse.last: %v", got[:13])
	}
	must(t, s.Close())
}

// TestLongerRetention: a retention that becomes longer takes nothing away, and one that becomes shorter, or
// is short for other tenants or signals, neither.
func TestLongerRetention(t *testing.T) {
	racetest.SkipSerial(t) // TestRendersDuringCompaction has the same store
	s, begin := newAlone(t, nil)
	must(t, s.pushLines("a", model.LabelsOf("app", "x"), s.now, "line"))
	must(t, s.push("b", model.LabelsOf("__name__", "coarse.sum"), s.now, 1))
	s.compact(t)
	want := s.hours(t, "coarse.sum", begin)
	const some = `[{tenant: b, keep: 1h}, {signal: logs, keep: 1h}, {match: '{__name__="coarse.a"}', keep: 3d}]`
	for i, rules := range []*retention.Rules{
		keeping(2 * day), keeping(30 * day), rulesOf(t, 2*day, some), rulesOf(t, 30*day, some), keeping(time.Hour), rulesOf(t, 0, some), keeping(100 * day), keeping(2 * day),
	} {
		s.Engine.o.Retention = rules
		s.expire(t)
		s.now += int64(time.Hour)
		s.compact(t)
		if got := s.hours(t, "coarse.sum", begin); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("rules %d: %v, want %v", i, got, want)
		}
	}
	must(t, s.Close())
}

// TestRollupCrash cuts the power before and after each sync and request of the making of rollups, of
// retention and of a deletion. What is left shows the same values, before and after it goes on.
func TestRollupCrash(t *testing.T) {
	racetest.SkipSerial(t) // TestRendersDuringCompaction has the same store
	s, begin := newAlone(t, nil)
	s.compact(t)
	want := map[string]string{}
	targets := []string{"coarse.sum", "coarse.a", "coarse.last"}
	for _, name := range targets {
		want[name] = fmt.Sprint(s.hours(t, name, begin))
	}
	must(t, s.Close())
	// The same store without rollups.
	plain, _ := newAlone(t, func(o *EngineOptions) { o.Rollups = nil })
	must(t, plain.Close())
	base := plain.mem.CrashClone(vfs.CrashCloneCfg{})
	rolls := s.o.Rollups
	open := func(fs vfs.FS, p *power) (*setup, error) {
		b, err := bucketfs.New(fs, "/bucket")
		if err != nil {
			return nil, err
		}
		o := plain.o
		o.FS, o.Bucket, o.Rollups = fs, &poweredBucket{b, p}, rolls
		again := &setup{now: plain.now, o: o}
		again.o.Now = func() int64 { return again.now }
		again.Engine, err = OpenEngine(context.Background(), again.o)
		return again, err
	}
	work := func(s *setup) error {
		for range 3 {
			if err := s.Compact(context.Background()); err != nil {
				return err
			}
			x := &expiry{catalog: s.catalog, compact: s.compactor, rules: s.rules, grace: time.Minute, now: func() int64 { return s.now }}
			if err := x.drop(context.Background()); err != nil {
				return err
			}
			s.now += int64(time.Hour)
		}
		return nil
	}
	look := func(s *setup, when string) {
		t.Helper()
		for _, name := range targets {
			if got := fmt.Sprint(s.hours(t, name, begin)); got != want[name] {
				t.Fatalf("%s: %s has %s, want %s", when, name, got, want[name])
			}
		}
	}
	cuts := 0
	for left := 1; ; left++ {
		disk := base.CrashClone(vfs.CrashCloneCfg{})
		p := &power{disk: disk, left: left}
		e, err := open(&syncFS{FS: disk, hook: p.step}, p)
		if err == nil {
			_ = work(e)
			_ = e.Close()
		}
		if !p.isCut() {
			break
		}
		cuts++
		whole := &power{disk: p.rest, left: math.MaxInt}
		e, err = open(p.rest, whole)
		must(t, err)
		look(e, fmt.Sprintf("after the power was cut at step %d", left))
		must(t, work(e))
		if look(e, fmt.Sprintf("after a cut at step %d and more work", left)); e.countAlone() == 0 {
			t.Fatalf("step %d: no points have expired", left)
		}
		must(t, e.Close())
		survey, err := catalog.ReadSurvey(context.Background(), e.o.Bucket, nil)
		must(t, err)
		for _, problem := range survey.Problems {
			t.Error(problem)
		}
	}
	t.Logf("cut the power at %d steps", cuts)
	if cuts < 100 {
		t.Errorf("only %d steps", cuts)
	}
}

// TestRendersDuringCompaction draws all the time while blocks are merged, rollups made and made again, and
// points expire: every render succeeds and shows the same values.
func TestRendersDuringCompaction(t *testing.T) {
	s, begin := newAlone(t, nil)
	targets := []string{"coarse.sum", "coarse.a", "coarse.last"}
	want := map[string]string{}
	for _, name := range targets {
		want[name] = fmt.Sprint(s.hours(t, name, begin))
	}
	var renders atomic.Int64
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			name, from := targets[i%len(targets)], begin/int64(time.Second)
			list, _, err := s.renders(true, from-1, from+aloneDays*86400, name)
			if err == nil && (len(list) != 1 || fmt.Sprint(list[0].Values) != want[name]) {
				err = fmt.Errorf("%s has %v, want %s", name, list, want[name])
			}
			if err != nil {
				done <- err
				return
			}
			renders.Add(1)
		}
	}()
	// between waits for a render, so that each state is drawn.
	between := func() {
		for n := renders.Load(); renders.Load() < n+2 && len(done) == 0; {
			runtime.Gosched()
		}
	}
	for round := range 4 {
		between()
		s.compact(t)
		between()
		// A point that is there already, sent again, lets the day be merged and its rollups be made again.
		must(t, s.push("a", model.LabelsOf("__name__", "coarse.a"), begin+int64(aloneDays*day)-int64(time.Minute), aloneDays*1440-1))
		must(t, s.Ship())
		between()
		if round == 2 {
			s.expire(t)
		}
	}
	close(stop)
	must(t, <-done)
	if s.countAlone() == 0 {
		t.Error("no points have expired")
	}
	t.Logf("%d renders", renders.Load())
	must(t, s.Close())
}

package patterns

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// batch is a batch of lines of one stream.
func batch(tenant string, l model.Labels, times []int64, text func(i int) string) *model.Batch {
	b := &model.Batch{Tenant: tenant, Signal: model.Logs, Source: source(l)}
	for i, at := range times {
		b.Text.AppendBlob(at, model.KindText, model.AppendLine(nil, &model.Line{Text: []byte(text(i))}), 0)
	}
	b.EndSeries(l.Key(1, model.Logs))
	return b
}

type source model.Labels

func (s source) BuildLabels(_ int, b *model.LabelsBuilder) {
	for n, v, rest, ok := model.Labels(s).Next(); ok; n, v, rest, ok = rest.Next() {
		b.Add(n, v)
	}
}

// idle is a Keeper whose lines are mined by the test alone, at a time that the test sets.
type idle struct {
	*Keeper
	now time.Time
}

func newIdle(o Options) *idle {
	i := &idle{now: time.Unix(1_700_000_000, 0)}
	o.Now = func() time.Time { return i.now }
	k := New(o)
	k.Close()
	k.intake = intake{}
	k.intake.open(o.MaxBytes)
	i.Keeper = k
	return i
}

// mineAll mines what waits.
func (i *idle) mineAll() {
	if len(i.intake.waiting.list) > 0 {
		rows, _ := i.intake.wait()
		i.mine(rows)
	}
}

// check checks the account of memory.
func (i *idle) check(t *testing.T) {
	t.Helper()
	all := int64(0)
	for _, x := range i.tenants {
		bytes := int64(tenantBytes + len(x.name))
		for s := range x.streams {
			bytes += streamBytes + int64(len(s.labels))
			for _, m := range s.byLevel {
				if m == nil {
					continue
				}
				miner := int64(minerBytes)
				for _, list := range m.structures {
					for _, c := range list {
						miner += c.size()
					}
				}
				if miner != m.bytes {
					t.Fatalf("a miner has %d bytes, %d are counted", miner, m.bytes)
				}
				bytes += miner
			}
		}
		if bytes != x.bytes {
			t.Fatalf("a tenant has %d bytes, %d are counted", bytes, x.bytes)
		}
		all += bytes
	}
	if all != i.bytes || all > i.o.MaxBytes {
		t.Fatalf("%d bytes, %d are counted, %d are allowed", all, i.bytes, i.o.MaxBytes)
	}
	known := 0
	for _, x := range i.tenants {
		known += len(x.streams)
	}
	if len(i.intake.streams) > known {
		t.Fatalf("%d streams are known, and %d have patterns", len(i.intake.streams), known)
	}
}

// Memory stays bounded, whatever is sent: many tenants, streams, structures, words, times of all kinds.
func TestKeeperIsBounded(t *testing.T) {
	k := newIdle(Options{MaxBytes: 200_000, Whole: true})
	r := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		k.now = k.now.Add(time.Duration(r.IntN(100_000)) * time.Millisecond)
		l := model.LabelsOf("app", fmt.Sprint(r.IntN(1+r.IntN(1000))))
		times := make([]int64, r.IntN(40)+1)
		for i := range times {
			switch r.IntN(20) {
			case 0:
				times[i] = r.Int64()
			case 1:
				times[i] = -r.Int64()
			default:
				times[i] = k.now.UnixNano() - r.Int64N(int64(48*time.Hour)) + int64(time.Hour)
			}
		}
		k.See(batch(fmt.Sprint("t", r.IntN(1+r.IntN(100))), l, times, func(int) string {
			return strings.Repeat("word; ", r.IntN(20)) + fmt.Sprint(r.IntN(10), strings.Repeat("x", r.IntN(300)))
		}))
		k.mineAll()
		k.check(t)
	}
	for name, x := range k.tenants {
		if x.since > k.now.Unix()+int64(maxFuture/time.Second)+2*coarse {
			t.Errorf("%s is complete since %v only", name, time.Unix(x.since, 0))
		}
	}
}

// lines returns how many lines of a tenant are kept since a time.
func (i *idle) lines(t *testing.T, tenant string, start int64) (lines int64, since int64) {
	t.Helper()
	to := NewTotals(start, i.now.Unix()+1, 10, new(model.Quota))
	since, err := i.Add(tenant, nil, to)
	if err != nil {
		t.Fatal(err)
	}
	all, err := to.Series()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		for _, x := range s.Samples {
			lines += x.Lines
		}
	}
	return lines, since
}

// Of more lines than are mined, a sample stands for all.
func TestKeeperSamples(t *testing.T) {
	racetest.SkipSerial(t)
	for _, c := range []struct{ lines, batches, perSecond int }{
		{4000, 40, 40}, {4000, 4, 1}, {40_000, 400, 10}, {300_000, 100, 10}, {300_000, 3, 1}, {1_000_000, 1000, 200},
	} {
		reg := prometheus.NewRegistry()
		k := newIdle(Options{MaxBytes: 16 << 20, Whole: true, Registerer: reg})
		l := model.LabelsOf("app", "x")
		for n := range c.batches {
			if n%c.perSecond == 0 {
				k.now = k.now.Add(time.Second)
			}
			times := make([]int64, c.lines/c.batches)
			for i := range times {
				times[i] = k.now.UnixNano()
			}
			k.See(batch("a", l, times, func(i int) string { return fmt.Sprintf("job %d is done", i) }))
			k.mineAll()
		}
		lines, _ := k.lines(t, "a", 0)
		if math.Abs(float64(lines)/float64(c.lines)-1) > 0.05 || c.lines/(c.batches/c.perSecond) <= linesPerSecond && lines != int64(c.lines) {
			t.Errorf("%+v: %d lines", c, lines)
		}
		mined := testutil.ToFloat64(k.metrics.mined)
		if most := float64(8*linesPerSecond) * float64((c.batches+c.perSecond-1)/c.perSecond); mined > most {
			t.Errorf("%+v: %v lines are mined, more than %v", c, mined, most)
		}
	}
}

// Counts lose their resolution before they are forgotten, and the keeper says since when they are complete.
func TestKeeperShrinks(t *testing.T) {
	k := newIdle(Options{MaxBytes: 15_000, Whole: true})
	l := model.LabelsOf("app", "x")
	began := k.now.Unix()
	const all = 100_000
	for range all {
		k.now = k.now.Add(10 * time.Second)
		k.See(batch("a", l, []int64{k.now.UnixNano()}, func(int) string { return "job is done" }))
		k.mineAll()
	}
	k.check(t)
	lines, since := k.lines(t, "a", 0)
	if since <= began || since > k.now.Unix()-3600 {
		t.Errorf("complete since %d s ago", k.now.Unix()-since)
	}
	if want := (k.now.Unix() - since) / 10; lines < want-1 || lines > want+1 {
		t.Errorf("%d lines since then, expected %d", lines, want)
	}
	if fine, _ := k.lines(t, "a", k.now.Unix()-1800); fine < 179 || fine > 182 {
		t.Errorf("%d lines in half an hour", fine)
	}
	if other, since := k.lines(t, "b", 0); other != 0 || since != math.MinInt64 {
		t.Errorf("another tenant has %d lines since %d", other, since)
	}
}

// Pushes and queries run at the same time as mining. See does not allocate for known streams.
func TestKeeperConcurrently(t *testing.T) {
	k := New(Options{MaxBytes: 1 << 20})
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			l := model.LabelsOf("app", fmt.Sprint(n))
			for i := range 200 {
				k.See(batch("a", l, []int64{time.Now().UnixNano(), time.Now().UnixNano()}, func(int) string { return fmt.Sprint("job ", i) }))
				if _, err := k.Add("a", nil, NewTotals(0, math.MaxUint32, 10, new(model.Quota))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	k.Close()
	k.See(batch("a", model.LabelsOf("app", "x"), []int64{1}, func(int) string { return "late" }))
	k.Close()
}

func TestSeeAllocations(t *testing.T) {
	k := newIdle(Options{MaxBytes: 1 << 20, Whole: true})
	b := batch("a", model.LabelsOf("app", "x"), make([]int64, 100), func(i int) string { return fmt.Sprint("job ", i) })
	see := func() {
		k.See(b)
		k.now = k.now.Add(time.Second)
		if len(k.intake.waiting.list) > 500 {
			k.intake.waiting.reset()
		}
	}
	for range 100 {
		see()
	}
	if got := testing.AllocsPerRun(100, see); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

// TestHorizon: counts of streams that have expired are not added.
func TestHorizon(t *testing.T) {
	k := newIdle(Options{MaxBytes: 8 << 20, Whole: true, Horizon: func(_ string, s model.Signal, now int64) (int64, *model.Horizon) {
		return now - int64(24*time.Hour), &model.Horizon{Latest: now, Before: func(l model.Labels) int64 {
			if string(l.Get("app")) == "short" {
				return now - int64(time.Hour)
			}
			return now - int64(24*time.Hour)
		}}
	}})
	for _, app := range []string{"short", "long"} {
		for _, age := range []time.Duration{time.Minute, 2 * time.Hour, 25 * time.Hour} {
			k.send("a", app, "info", k.now.Add(-age), 100, "from "+app)
		}
	}
	k.mineAll()
	if got := k.totals(t, "a"); got["from short <_>"] != 100 || got["from long <_>"] != 200 {
		t.Error(got)
	}
}

// totals returns the lines of each pattern of a tenant.
func (i *idle) totals(t *testing.T, tenant string) map[string]int64 {
	t.Helper()
	to := NewTotals(0, math.MaxUint32, 3600, new(model.Quota))
	if _, err := i.Add(tenant, nil, to); err != nil {
		t.Fatal(err)
	}
	all, err := to.Series()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, s := range all {
		for _, x := range s.Samples {
			sums[s.Pattern] += x.Lines
		}
	}
	return sums
}

// TestForget: lines up to the end of a deletion do not count, also those that still wait, and the time since
// when counts are complete moves on.
func TestForget(t *testing.T) {
	k := newIdle(Options{MaxBytes: 8 << 20, Whole: true})
	k.send("a", "x", "info", k.now.Add(-time.Minute), 100, "old")
	k.send("b", "x", "info", k.now.Add(-time.Minute), 100, "old")
	k.mineAll()
	k.send("a", "x", "info", k.now.Add(-time.Second), 100, "waiting")
	k.Forget("a", math.MaxInt64)
	k.mineAll()
	k.now = k.now.Add(time.Minute)
	k.send("a", "x", "info", k.now, 100, "new")
	k.mineAll()
	if got := k.totals(t, "a"); len(got) != 1 || got["new <_>"] != 100 {
		t.Error(got)
	}
	if got := k.totals(t, "b"); got["old <_>"] != 100 {
		t.Errorf("the tenant next to it: %v", got)
	}
	since, err := k.Add("a", nil, NewTotals(0, 1, 10, new(model.Quota)))
	if err != nil || since < k.now.Add(-time.Minute).Unix() || since > k.now.Unix() {
		t.Errorf("complete since %d, %v", since, err)
	}
	k.Forget("c", k.now.UnixNano()) // it has no counts
	k.send("c", "x", "info", k.now.Add(-time.Second), 100, "early")
	k.mineAll()
	if got := k.totals(t, "c"); len(got) > 0 {
		t.Error(got)
	}
	k.check(t)
}

// breakMiners makes the next line of a stream panic, or the next change of its counts.
func (i *idle) breakMiners(tenant, app string) {
	for s := range i.streamsOf(tenant) {
		for _, m := range s.byLevel {
			if string(s.labels.Get("app")) == app && m != nil {
				for _, list := range m.structures {
					clear(list)
				}
			}
		}
	}
}

// TestLineThatCannotBeMined: its tenant loses its counts, and is not complete before the last line that may
// have counted. Others keep theirs, and those that have none yet are as complete as before.
func TestLineThatCannotBeMined(t *testing.T) {
	k := newIdle(Options{MaxBytes: 200_000, Whole: true})
	push := func(tenant, app string) {
		k.See(batch(tenant, model.LabelsOf("app", app), slices.Repeat([]int64{k.now.UnixNano()}, 40), func(int) string { return "a line" }))
		k.mineAll()
		k.check(t)
		k.now = k.now.Add(fine * time.Second)
	}
	push("bad", "a")
	push("bad", "b")
	push("good", "a")
	k.breakMiners("bad", "b")
	push("bad", "b")
	push("bad", "a")
	if n := testutil.ToFloat64(k.metrics.failed); n != 1 { // those after it are too old to count
		t.Errorf("%v lines failed", n)
	}
	lines, since := k.lines(t, "bad", k.now.Unix()-60)
	if lines != 0 || since < k.now.Add(maxFuture-2*fine*time.Second).Unix() {
		t.Errorf("%d lines are counted, completely since %v", lines, time.Unix(since, 0))
	}
	if _, since := k.lines(t, "new", 0); since != math.MinInt64 {
		t.Errorf("a tenant without counts is complete since %v only", time.Unix(since, 0))
	}
	push("new", "a")
	for _, other := range []string{"good", "new"} {
		if lines, since := k.lines(t, other, k.now.Unix()-60); lines != 40 || since != math.MinInt64 {
			t.Errorf("of the tenant %s, %d lines are counted, completely since %v", other, lines, time.Unix(since, 0))
		}
	}
	k.now = k.now.Add(maxFuture + time.Minute)
	push("bad", "b")
	if lines, _ := k.lines(t, "bad", k.now.Unix()-60); lines != 40 {
		t.Errorf("an hour later, %d lines are counted", lines)
	}
}

// TestLinesThatWaitForAFailure: lines of the tenant that wait when another one cannot be mined are not
// counted, and their streams are forgotten.
func TestLinesThatWaitForAFailure(t *testing.T) {
	k := newIdle(Options{MaxBytes: 200_000, Whole: true})
	k.send("bad", "a", "info", k.now, 40, "a line")
	k.mineAll()
	k.breakMiners("bad", "a")
	k.send("bad", "a", "info", k.now, 1, "a line")
	k.send("bad", "b", "info", k.now, 40, "a line")
	k.send("good", "b", "info", k.now, 40, "a line")
	rows, _ := k.intake.wait()
	k.send("bad", "c", "info", k.now, 40, "a line")
	k.mine(rows)
	k.mineAll()
	k.check(t)
	if n := testutil.ToFloat64(k.metrics.failed); n != 1 {
		t.Errorf("%v failures", n)
	}
	for tenant, want := range map[string]int64{"bad": 0, "good": 40} {
		if lines, _ := k.lines(t, tenant, k.now.Unix()-60); lines != want {
			t.Errorf("of the tenant %s, %d lines are counted, expected %d", tenant, lines, want)
		}
	}
	if n := len(k.intake.streams); n != 1 {
		t.Errorf("%d streams are known, expected the one of the other tenant", n)
	}
}

// TestCountsThatCannotBeChanged: a failure to forget counts costs the counts of the tenant alone, whether a
// deletion or a lack of memory asked for it.
func TestCountsThatCannotBeChanged(t *testing.T) {
	for name, forget := range map[string]func(k *idle){
		"deletion": func(k *idle) { k.Forget("bad", k.now.UnixNano()) },
		"memory":   func(k *idle) { k.o.MaxBytes = k.bytes; k.shrinkLocked() },
	} {
		k := newIdle(Options{MaxBytes: 200_000, Whole: true})
		for app := range 10 {
			k.send("bad", fmt.Sprint(app), "info", k.now.Add(-2*time.Hour), 40, "an old line")
			k.send("bad", fmt.Sprint(app), "info", k.now, 40, "a line")
		}
		k.send("good", "a", "info", k.now, 40, "a line")
		k.mineAll()
		k.breakMiners("bad", "5")
		forget(k)
		if n := testutil.ToFloat64(k.metrics.failed); n != 1 {
			t.Errorf("%s: %v failures", name, n)
		}
		k.send("new", "a", "info", k.now, 40, "a line")
		k.mineAll()
		for tenant, want := range map[string]int64{"bad": 0, "good": 40, "new": 40} {
			lines, since := k.lines(t, tenant, k.now.Unix()-60)
			if complete := since < k.now.Unix(); lines != want || complete != (want > 0) {
				t.Errorf("%s: of the tenant %s, %d lines are counted, completely since %v", name, tenant, lines, time.Unix(since, 0))
			}
		}
		if n := len(k.intake.streams); n != 2 {
			t.Errorf("%s: %d streams are known, expected those of the other tenants", name, n)
		}
		k.check(t)
	}
}

// TestFutureOfATenant: a tenant whose lines lie ahead and have to be forgotten does not cost others theirs.
func TestFutureOfATenant(t *testing.T) {
	k := newIdle(Options{MaxBytes: 200_000, Whole: true})
	for app := range 400 {
		k.send("ahead", fmt.Sprint(app), "info", k.now.Add(maxFuture), 1, "a line")
		k.mineAll()
		k.check(t)
	}
	if _, since := k.lines(t, "ahead", 0); since <= k.now.Unix() {
		t.Errorf("lines of the future are complete since %v", time.Unix(since, 0))
	}
	k.send("new", "a", "info", k.now, 40, "a line")
	k.mineAll()
	if lines, since := k.lines(t, "new", k.now.Unix()-60); lines != 40 || since != math.MinInt64 {
		t.Errorf("of another tenant, %d lines are counted, completely since %v", lines, time.Unix(since, 0))
	}
}

// TestFailuresOfManyTenants: what is kept of tenants without counts takes bounded memory, and goes before the
// counts of others once its time is over.
func TestFailuresOfManyTenants(t *testing.T) {
	k := newIdle(Options{MaxBytes: 200_000, Whole: true})
	fail := func(from, to int) {
		for n := from; n < to; n++ {
			tenant := fmt.Sprint("t", n)
			k.send(tenant, "a", "info", k.now, 1, "a line")
			k.mineAll()
			k.breakMiners(tenant, "a")
			k.send(tenant, "a", "info", k.now, 1, "a line")
			k.mineAll()
			k.check(t)
		}
	}
	k.send("good", "a", "info", k.now, 40, "a line")
	k.mineAll()
	fail(0, 200)
	if _, since := k.lines(t, "new", 0); since != math.MinInt64 {
		t.Errorf("a tenant without counts is complete since %v only", time.Unix(since, 0))
	}
	k.now = k.now.Add(2 * maxFuture)
	fail(200, 600)
	if lines, since := k.lines(t, "good", 0); lines != 40 || since != math.MinInt64 {
		t.Errorf("%d lines are counted, completely since %v", lines, time.Unix(since, 0))
	}
	if _, since := k.lines(t, "new", 0); since > k.now.Unix() {
		t.Errorf("a tenant without counts is complete since %v only", time.Unix(since, 0))
	}
	fail(600, 2000) // more than there is memory for
	if _, since := k.lines(t, "new", 0); since > k.now.Add(maxFuture+2*fine*time.Second).Unix() {
		t.Errorf("a tenant without counts is complete since %v only", time.Unix(since, 0))
	}
}

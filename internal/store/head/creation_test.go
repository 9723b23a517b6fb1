package head

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/rows"
	"github.com/shaledb/shale/internal/store/known"
)

// A full known set holds nothing back: known series stay known, and others carry their labels every time, are
// stored and found.
func TestCrowdedOut(t *testing.T) {
	r := newRig(t, func(o *Options) { o.KnownBytes = 500 })
	room := int(r.head.known.Cap())
	if room < 5 || room > 50 {
		t.Fatalf("room for %d series", room)
	}
	rows := map[int64]float64{}
	for round := range 30 {
		at := r.now + int64(round)*int64(time.Second)
		rows[at] = float64(round)
		fresh := r.push("a", 0, 100, at, float64(round))
		if want := 100 - room; round > 0 && fresh != want {
			t.Fatalf("round %d: %d of 100 series are new, want %d", round, fresh, want)
		}
		if round%7 == 3 {
			r.must(r.head.Flush(context.Background()))
		}
	}
	r.expect("a", 0, 100, rows)
	if got, want := r.metric("shale_head_crowded_label_sets_total"), float64(30*(100-room)); got != want {
		t.Errorf("%v label sets were counted, want %v", got, want)
	}
	if n := strings.Count(r.log.String(), "known set is full"); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
	// Between flushes a series' labels are buffered once, and a merge leaves one set of each.
	r.must(r.head.Flush(context.Background()))
	in := r.head.group(model.Metrics, local.Labels, local.Young)
	sets := 0
	for _, p := range in {
		sets += int(p.Info.Series)
	}
	if most := 100 + len(in)*(100-room); sets > most {
		t.Errorf("%d label sets in %d parts, and at most %d should be", sets, len(in), most)
	}
	r.must(r.head.mergeLabels(context.Background(), model.Metrics, in))
	if got := r.head.group(model.Metrics, local.Labels, local.Young); len(got) != 1 || got[0].Info.Series != 100 {
		t.Errorf("%d label parts, the first with %d sets", len(got), got[0].Info.Series)
	}
	r.must(r.head.Ship(context.Background()))
	r.expect("a", 0, 100, rows)
	// When others go idle there is room again.
	r.must(r.head.known.Advance(0))
	if fresh := r.push("a", 50, 50+room, r.now, 1); fresh != room {
		t.Errorf("%d are new", fresh)
	}
	if fresh := r.push("a", 50, 50+room, r.now, 1); fresh != 0 {
		t.Errorf("%d are still new", fresh)
	}
}

// Which series have ended is forgotten at a restart. When the set is full of series that were replaced before
// it, they leave with the second sweep after it, those that go on stay, and there is room for the others.
func TestReplacedSeriesLeaveAfterRestart(t *testing.T) {
	r := newRig(t, func(o *Options) { o.KnownBytes = 500 })
	room := int(r.head.known.Cap())
	r.push("a", 0, room, r.now, 1)
	r.must(r.head.Flush(context.Background()))
	r.restart()
	for sweeps := range 4 {
		at := r.now + int64(sweeps+1)*int64(time.Second)
		if fresh := r.push("a", 0, 2, at, 1); fresh != 0 {
			t.Errorf("after %d sweeps, %d of 2 active series are new", sweeps, fresh)
		}
		if got, want := int(r.head.known.Len()), map[bool]int{true: room, false: 2}[sweeps < 2]; got != want {
			t.Errorf("after %d sweeps %d series are known, want %d", sweeps, got, want)
		}
		r.must(r.head.sweepKnown())
	}
	r.push("a", 100, 100+room-2, r.now, 1)
	if fresh := r.push("a", 100, 100+room-2, r.now+1, 1); fresh != 0 {
		t.Errorf("%d series have no room", fresh)
	}
}

// TestEndedSeriesLeaveAfterCrash: a series whose stale marker came before a crash leaves the known set with
// the second sweep after it, whether the marker is in a part or in the journal. One that has come back stays.
func TestEndedSeriesLeaveAfterCrash(t *testing.T) {
	r := newRig(t, nil)
	stale := math.Float64frombits(model.StaleNaN)
	flush := func() { r.must(r.head.Flush(context.Background())) }
	r.push("a", 0, 5, r.now, 1)
	flush()
	r.push("a", 0, 1, r.now+1, stale)
	r.push("a", 2, 3, r.now+1, stale)
	flush()
	r.push("a", 2, 3, r.now+2, 1) // in a later part
	flush()
	r.push("a", 1, 2, r.now+3, stale)
	r.push("a", 4, 5, r.now+3, stale)
	r.push("b", 0, 2, r.now+3, 1)
	r.crash()
	r.push("a", 4, 5, r.now+4, 1) // after the crash
	id, _ := r.head.tenants.find("a")
	for sweeps := range 4 {
		for n, ended := range []bool{true, true, false, false, false} {
			if has, want := r.head.known.Has(id, model.Metrics, series(n).Key(testSeed, model.Metrics)), !ended || sweeps < 2; has != want {
				t.Errorf("after %d sweeps, series %d is known: %t", sweeps, n, has)
			}
		}
		r.must(r.head.sweepKnown())
	}
	if got := r.head.ActiveSeries("b"); got != 2 {
		t.Errorf("%d series of the other tenant", got)
	}
}

// TestEndedByTime: whether a series has ended before a crash depends on its newest row, and not on the row
// that came last.
func TestEndedByTime(t *testing.T) {
	r := newRig(t, nil)
	stale := math.Float64frombits(model.StaleNaN)
	ended := []bool{false, true, false}
	r.push("a", 0, 3, r.now, 1)
	r.push("a", 1, 2, r.now+1, stale)
	r.must(r.head.Flush(context.Background()))
	r.push("a", 0, 1, r.now-1, stale) // late
	r.push("a", 1, 2, r.now-1, 1)     // late
	r.push("a", 2, 3, r.now, stale)   // a sample of the same time wins
	r.must(r.head.Flush(context.Background()))
	r.crash()
	id, _ := r.head.tenants.find("a")
	for sweeps := range 4 {
		for n, ended := range ended {
			if has, want := r.head.known.Has(id, model.Metrics, series(n).Key(testSeed, model.Metrics)), !ended || sweeps < 2; has != want {
				t.Errorf("after %d sweeps, series %d is known: %t", sweeps, n, has)
			}
		}
		r.must(r.head.sweepKnown())
	}
}

// When not all series have room after a restart, those that were created last are known.
func TestNewestSeriesAreRestored(t *testing.T) {
	r := newRig(t, func(o *Options) { o.KnownBytes = 500 })
	room := int(r.head.known.Cap())
	for from := range 2 {
		r.push("a", from*room, (from+1)*room, r.now+int64(from), 1)
		r.must(r.head.Flush(context.Background()))
	}
	r.restart()
	if fresh := r.push("a", room, 2*room, r.now+2, 1); fresh != 0 {
		t.Errorf("%d of the %d series that came last are new", fresh, room)
	}
}

// A full set keeps a series until the second sweep after its stale marker, too: a batch that was told that it
// is known may be on its way.
func TestFullSetKeepsStaleSeriesForOneSweep(t *testing.T) {
	r := newRig(t, func(o *Options) { o.KnownBytes = 500 })
	room := int(r.head.known.Cap())
	r.push("a", 0, room, r.now, 1)
	r.push("a", 0, 1, r.now+1, math.Float64frombits(model.StaleNaN))
	id, _ := r.head.tenants.find("a")
	for sweeps := range 3 {
		has := r.head.known.Has(id, model.Metrics, series(0).Key(testSeed, model.Metrics))
		if has != (sweeps < 2) {
			t.Errorf("after %d sweeps: %t", sweeps, has)
		}
		r.must(r.head.sweepKnown())
	}
}

// TestRetiredLeaveFullSetSoon: a full set drops series that have ended with the second sweep between ticks,
// of which a tick may be one, and not those that go on or have come back.
func TestRetiredLeaveFullSetSoon(t *testing.T) {
	for name, ticks := range map[string][]bool{"none": {false, false}, "first": {true, false}, "second": {false, true}} {
		r := newRig(t, func(o *Options) { o.KnownBytes = 500 })
		room := int(r.head.known.Cap())
		r.push("a", 0, room, r.now, 1)
		r.push("a", 0, 2, r.now+1, math.Float64frombits(model.StaleNaN))
		id, _ := r.head.tenants.find("a")
		for sweeps := range 3 {
			if sweeps == 1 {
				r.push("a", 1, 2, r.now+2, 1) // it is back
			}
			for n, want := range []bool{sweeps < 2, true, true} {
				if has := r.head.known.Has(id, model.Metrics, series(n).Key(testSeed, model.Metrics)); has != want {
					t.Errorf("tick %s, after %d sweeps, series %d is known: %t", name, sweeps, n, has)
				}
			}
			if sweeps == 2 {
				break
			}
			if ticks[sweeps] {
				r.must(r.head.sweepKnown())
			} else {
				r.must(r.head.sweepRetired())
			}
		}
		if got := int(r.head.known.Len()); got != room-1 {
			t.Errorf("tick %s: %d of %d series are left", name, got, room)
		}
	}
}

func TestCreationLimits(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.NewSeries, o.Tenant.NewSeries = 10, 1
	})
	r.head.limits.total.burst = 100
	create := func(tenant string, n, want int, limit string) {
		t.Helper()
		got, err := r.head.Create(tenant, n)
		var named *model.LimitError
		if errors.As(err, &named); got != want || (err != nil) != (limit != "") || named != nil && named.Limit != limit {
			t.Errorf("%d of %d: %v; want %d, %s", got, n, err, want, limit)
		}
		if err != nil && !errors.Is(err, model.ErrTransient) {
			t.Errorf("class of %v", err)
		}
	}
	create("a", 50, 50, "")
	create("a", 50, 10, LimitTenantNewSeries) // a minute's worth is 60
	create("a", 50, 0, LimitTenantNewSeries)
	create("b", 50, 40, LimitNewSeries)
	create("b", 0, 0, "")
	r.now += int64(5 * time.Second)
	create("a", 50, 5, LimitTenantNewSeries)
	create("b", 50, 25, LimitTenantNewSeries)
	// Steps of the clock give one burst at most and never take.
	r.now -= int64(10 * time.Hour)
	create("a", 50, 0, LimitTenantNewSeries)
	r.now += int64(30 * time.Second)
	create("c", 60, 60, "")
	r.now += int64(1000 * time.Hour)
	create("a", 1000, 60, LimitTenantNewSeries)
	if got := r.metric("shale_head_deferred_series_total"); got != 40+50+10+45+25+50+940 {
		t.Errorf("%v series were put off", got)
	}
	// Until the known set is rebuilt, no series is held back.
	r.head.knownRebuilt.Store(false)
	create("a", 1000, 1000, "")
}

// TestTenantSeries: a tenant may have so many active series, and a change of the limit counts at once.
func TestTenantSeries(t *testing.T) {
	most := int64(0)
	r := newRig(t, func(o *Options) {
		o.KnownBytes = 1 << 20
		o.TenantLimits = func(tenant string) TenantLimits {
			if tenant == "a" {
				return TenantLimits{Series: most}
			}
			return TenantLimits{}
		}
	})
	create := func(tenant string, n, want int) {
		t.Helper()
		got, err := r.head.Create(tenant, n)
		var named *model.LimitError
		if errors.As(err, &named); got != want || (err == nil) != (n == want) || err != nil && (named.Limit != LimitTenantSeries || !named.Tenant) {
			t.Errorf("%d of %d: %v; want %d", got, n, err, want)
		}
	}
	r.push("a", 0, 30, r.now, 1)
	if got := r.head.ActiveSeries("a"); got != 30 {
		t.Fatalf("%d active series", got)
	}
	create("a", int(r.head.known.Cap()), int(r.head.known.Cap())) // it is alone
	r.push("b", 0, 10, r.now, 1)
	create("a", int(r.head.known.Cap()), int(r.head.known.Cap()/10*9-30))
	most = 50
	create("a", 20, 20)
	create("a", 21, 20)
	most = 29
	create("a", 1, 0)
	create("b", 100, 100)
}

// TestOnlyTenant: a tenant that is alone is never refused series while others of its series come and go.
func TestOnlyTenant(t *testing.T) {
	r := newRig(t, func(o *Options) { o.KnownBytes = 1 << 13 })
	room := int(r.head.known.Cap())
	r.push("a", 0, room-20, r.now, 1)
	id, _ := r.head.tenants.find("a")
	keys := make([]model.Key, 20)
	for i := range keys {
		keys[i] = series(room+i).Key(testSeed, model.Metrics)
	}
	var stop atomic.Bool
	var changes sync.WaitGroup
	changes.Go(func() {
		var l known.Lookup
		for !stop.Load() {
			r.head.known.InsertAll(&l, id, model.Metrics, keys)
			for _, key := range keys {
				r.head.known.Retire(id, model.Metrics, key, 0, 3)
			}
			for range 2 {
				if err := r.head.known.SweepRetired(3); err != nil {
					t.Error(err)
				}
			}
		}
	})
	defer changes.Wait()
	defer stop.Store(true)
	for range 2_000_000 {
		if n, err := r.head.Create("a", room); n != room || err != nil {
			t.Fatalf("%d of %d series: %v", n, room, err)
		}
	}
}

// TestGreatestCreationLimit: the tokens of a limit that hardly limits do not overflow.
func TestGreatestCreationLimit(t *testing.T) {
	r := newRig(t, func(o *Options) { o.NewSeries, o.Tenant.NewSeries = math.MaxInt64, math.MaxInt64 })
	if n, err := r.head.Create("a", 1000); n != 1000 || err != nil {
		t.Errorf("%d of 1000 series: %v", n, err)
	}
}

// Labels that come faster than they are flushed hold back new series, and known ones go on.
func TestCreationWaitsForLabels(t *testing.T) {
	r := newRig(t, func(o *Options) { o.LabelBytes = 10_000 })
	for from := 0; ; from += 10 {
		b := r.batchOf("a", from, from+10, r.now, 1)
		n, err := r.head.Create("a", r.label(b, from))
		if err != nil {
			var named *model.LimitError
			if !errors.As(err, &named) || named.Limit != LimitLabelBuffer || n != 0 {
				t.Fatalf("%d, %v", n, err)
			}
			break
		}
		r.apply(b)
		if from > 1000 {
			t.Fatal("the buffer has no bound")
		}
	}
	if fresh := r.push("a", 0, 10, r.now+1, 2); fresh != 0 {
		t.Errorf("%d known series are new", fresh)
	}
	r.must(r.head.Flush(context.Background()))
	if n, err := r.head.Create("a", 10); n != 10 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestAwait: a sender of new series is woken by the flush that makes room, and by the end of the head.
func TestAwait(t *testing.T) {
	full := &model.LimitError{Limit: LimitLabelBuffer}
	for _, shut := range []bool{false, true} {
		r := newRig(t, func(o *Options) { o.LabelBytes = 10_000 })
		r.push("a", 0, 100, r.now, 1)
		if r.head.Await(context.Background(), &model.LimitError{Limit: LimitNewSeries}) || r.head.Await(context.Background(), full) {
			t.Error("waited although nobody flushes")
		}
		r.head.startFlushing()
		woken := make(chan bool)
		if shut {
			r.head.flushing.Lock()
		}
		go func() { woken <- r.head.Await(context.Background(), full) }()
		if shut {
			r.head.Shut()
		}
		if room := <-woken; room == shut {
			t.Errorf("shut: %t, there is room: %t", shut, room)
		}
		if shut {
			r.head.flushing.Unlock()
		}
	}
}

// What could not get out of the journal again must not get in.
func TestResolveRefuses(t *testing.T) {
	r := newRig(t, func(o *Options) { o.RowBytes = 100_000 })
	histogram := func(blob []byte) *model.Batch {
		b := &model.Batch{Tenant: "a", Signal: model.Metrics}
		b.Samples.AppendBlob(r.now, model.KindHistogram, blob, 0)
		b.EndSeries(series(1).Key(testSeed, model.Metrics))
		return b
	}
	exemplar := func(blob []byte, start int64) *model.Batch {
		b := &model.Batch{Tenant: "a", Signal: model.Metrics}
		b.Exemplars.AppendBlob(r.now, model.KindExemplar, blob, start)
		b.EndSeries(series(1).Key(testSeed, model.Metrics))
		return b
	}
	line := func(signal model.Signal, blob []byte, kind model.Kind, start int64) *model.Batch {
		b := &model.Batch{Tenant: "a", Signal: signal}
		b.Text.AppendBlob(r.now, kind, blob, start)
		b.EndSeries(series(1).Key(testSeed, signal))
		return b
	}
	text := model.AppendLine(nil, &model.Line{Text: []byte("\x00 any bytes \xff"), Metadata: model.LabelsOf("a", "b")})
	good := model.AppendHistogram(nil, &model.Histogram{PositiveSpans: []model.HistogramSpan{{Length: 1}}, Positive: []uint64{1}})
	for name, c := range map[string]struct {
		b    *model.Batch
		want string
	}{
		"good":                 {histogram(good), ""},
		"many rows":            {r.batchOf("a", 0, 4000, r.now, 1), "row buffer"},
		"many bytes":           {histogram(make([]byte, 200_000)), "row buffer"},
		"no histogram":         {histogram([]byte("abc")), "histogram"},
		"wrong spans":          {histogram(model.AppendHistogram(nil, &model.Histogram{Positive: []uint64{1}})), "spans"},
		"no exemplar":          {exemplar([]byte("short"), 0), "exemplar"},
		"good exemplar":        {exemplar(model.AppendExemplar(nil, new(model.Exemplar)), 0), ""},
		"with a start":         {exemplar(model.AppendExemplar(nil, new(model.Exemplar)), 5), "start"},
		"line":                 {line(model.Logs, text, model.KindText, 0), ""},
		"line of a metric":     {line(model.Metrics, text, model.KindText, 0), "metrics"},
		"line with a start":    {line(model.Logs, text, model.KindText, 1), "start"},
		"line that is cut":     {line(model.Logs, text[:5], model.KindText, 0), "cut short"},
		"no metadata":          {line(model.Logs, append(text, 'x'), model.KindText, 0), "metadata"},
		"exemplar for a line":  {line(model.Logs, text, model.KindExemplar, 0), "kind"},
		"long line":            {line(model.Logs, make([]byte, 150_000), model.KindText, 0), "metadata"},
		"line beyond the room": {line(model.Logs, make([]byte, 200_000), model.KindText, 0), "row buffer"},
	} {
		_, err := r.head.Resolve(c.b, nil)
		if (err != nil) != (c.want != "") || err != nil && (!errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.o.RowBytes = 100 << 20
	r.restart()
	if _, err := r.head.Resolve(histogram(make([]byte, rows.MaxBlobBytes+1)), nil); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a blob of %d bytes: %v", rows.MaxBlobBytes+1, err)
	}
}

// Series that say that they have ended leave the set long before those that fall silent; if they come back,
// they stay.
func TestStaleSeriesLeave(t *testing.T) {
	r := newRig(t, nil)
	ended := func(n int, histogram bool) {
		b := &model.Batch{Tenant: "a", Signal: model.Metrics}
		if histogram {
			b.Samples.AppendBlob(r.now, model.KindHistogram, model.AppendHistogram(nil, &model.Histogram{Sum: model.StaleNaN}), 0)
		} else {
			b.Samples.Append(r.now-1, 0, 0)
			b.Samples.Append(r.now, model.StaleNaN, 0)
		}
		b.EndSeries(series(n).Key(testSeed, model.Metrics))
		r.label(b, n)
		r.apply(b)
	}
	has := func(n int) bool {
		id, _ := r.head.tenants.find("a")
		return r.head.known.Has(id, model.Metrics, series(n).Key(testSeed, model.Metrics))
	}
	sweep := func() { r.must(r.head.known.Advance(r.head.idleTicks())) }
	r.push("a", 0, 4, r.now-10, 1)
	ended(0, false)
	ended(1, true)
	ended(2, false)
	for sweeps := range 5 {
		if sweeps == 1 {
			r.push("a", 2, 3, r.now+1, 1) // it is back
		}
		if want := sweeps < 2; has(0) != want || has(1) != want {
			t.Errorf("after %d sweeps: %t, %t", sweeps, has(0), has(1))
		}
		if !has(2) || !has(3) {
			t.Errorf("after %d sweeps: %t, %t", sweeps, has(2), has(3))
		}
		sweep()
	}
	if fresh := r.push("a", 0, 4, r.now+2, 1); fresh != 2 {
		t.Errorf("%d are new", fresh)
	}
}

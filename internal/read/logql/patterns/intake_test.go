package patterns

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

// send sends a number of lines of one stream and level that differ in their last word.
func (i *idle) send(tenant, app, level string, at time.Time, lines int, text string) {
	l := model.LabelsOf("app", app)
	b := &model.Batch{Tenant: tenant, Signal: model.Logs, Source: source(l)}
	for n := range lines {
		x := model.Line{Text: fmt.Append(nil, text, " ", n), Metadata: model.LabelsOf(levelLabel, level)}
		b.Text.AppendBlob(at.UnixNano(), model.KindText, model.AppendLine(nil, &x), 0)
	}
	b.EndSeries(l.Key(1, model.Logs))
	i.See(b)
}

// counts returns how many lines a tenant has of a stream and level, even if they are few.
func (i *idle) counts(tenant, app, level string) (lines float32) {
	for s := range i.streamsOf(tenant) {
		if m := s.byLevel[levelNumber(level)]; string(s.labels.Get("app")) == app && m != nil {
			for _, list := range m.structures {
				for _, c := range list {
					for _, x := range c.counts {
						lines += x.lines
					}
				}
			}
		}
	}
	return lines
}

func (i *idle) streamsOf(tenant string) map[*stream]struct{} {
	if t := i.tenants[tenant]; t != nil {
		return t.streams
	}
	return nil
}

func levelNumber(level string) uint8 { return levelOf(model.LabelsOf(levelLabel, level)) }

var long = strings.Repeat("w ", 500)

// A tenant that sends more lines than there is room for changes no counts but its own.
func TestNoRoomForATenant(t *testing.T) {
	k := newIdle(Options{MaxBytes: 7 << 20, Whole: true})
	k.send("a", "x", "info", k.now, 4000, long)
	k.send("b", "y", "error", k.now, 1, "disk is dead")
	k.mineAll()
	k.send("b", "y", "error", k.now, 1, "disk is dead")
	k.send("c", "x", "info", k.now, 1, "job is done")
	k.mineAll()
	for _, c := range []struct {
		tenant, app, level string
		want               float32
	}{{"a", "x", "info", 4000}, {"b", "y", "error", 2}, {"c", "x", "info", 1}} {
		if n := k.counts(c.tenant, c.app, c.level); n != c.want {
			t.Errorf("%s has %v lines, expected %v", c.tenant, n, c.want)
		}
	}
	if joined, mined := testutil.ToFloat64(k.metrics.joined), testutil.ToFloat64(k.metrics.mined); joined == 0 || joined+mined != 4003 {
		t.Errorf("%v lines joined, %v are mined", joined, mined)
	}
	if n := testutil.ToFloat64(k.metrics.dropped); n > 0 {
		t.Errorf("%v lines are dropped", n)
	}
	k.check(t)
}

// A rare line counts as often as it was sent, whether it comes before or after many others of its tenant, in
// the same stream or another.
func TestNoRoomForAStream(t *testing.T) {
	racetest.SkipSerial(t)
	for _, c := range []struct {
		quiet string
		first bool
	}{{"quiet", true}, {"quiet", false}, {"loud", true}, {"loud", false}} {
		k := newIdle(Options{MaxBytes: 512 << 20 * 3 / 2 / 100, Whole: true})
		rare := func() { k.send("a", c.quiet, "error", k.now, 1, "rare") }
		for range 60 {
			k.now = k.now.Add(time.Second)
			if c.first {
				rare()
			}
			k.send("a", "loud", "info", k.now, 2000, long)
			if !c.first {
				rare()
			}
			k.mineAll()
		}
		if rare, loud := k.counts("a", c.quiet, "error"), k.counts("a", "loud", "info"); rare != 60 || loud != 120_000 {
			t.Errorf("%+v: %v rare lines of 60, %v others of 120000", c, rare, loud)
		}
		k.check(t)
	}
}

// A tenant whose lines always have the same place in what arrives is sampled as much as others.
func TestSampleOfATenant(t *testing.T) {
	racetest.SkipSerial(t)
	k := newIdle(Options{MaxBytes: 16 << 20, Whole: true})
	text := func(int) string { return "job is done" }
	loud := batch("a", model.LabelsOf("app", "x"), make([]int64, 9_999), text)
	quiet := batch("b", model.LabelsOf("app", "x"), make([]int64, 1), text)
	const seconds = 1000
	lines := make(map[string]float64)
	for range seconds {
		k.See(loud)
		k.See(quiet)
		for _, r := range k.intake.waiting.list {
			lines[r.stream.id.tenant] += float64(r.lines)
		}
		k.intake.waiting.reset()
		k.now = k.now.Add(time.Second)
	}
	if k.intake.stride < 2 {
		t.Errorf("the stride is %d", k.intake.stride)
	}
	for tenant, want := range map[string]float64{"a": 9_999 * seconds, "b": seconds} {
		if math.Abs(lines[tenant]/want-1) > 0.15 {
			t.Errorf("%s has %v lines, expected about %v", tenant, lines[tenant], want)
		}
	}
}

// Patterns of a stream that finds little room keep about their parts of it.
func TestNoRoomForPatterns(t *testing.T) {
	k := newIdle(Options{MaxBytes: 4 << 20, Whole: true})
	for n := range 4000 {
		k.send("a", "x", "info", k.now, 1, []string{"one " + long, "two, " + long, "three; " + long, "two, " + long}[(n*7919>>3)%4])
	}
	k.mineAll()
	to := NewTotals(0, math.MaxUint32, 3600, new(model.Quota))
	if _, err := k.Add("a", nil, to); err != nil {
		t.Fatal(err)
	}
	all, err := to.Series()
	if err != nil || len(all) != 3 {
		t.Fatal(len(all), err)
	}
	sum := int64(0)
	for _, s := range all {
		want := 1000.0
		if strings.HasPrefix(s.Pattern, "two") {
			want = 2000
		}
		n := s.Samples[0].Lines
		if sum += n; math.Abs(float64(n)-want) > want/4 {
			t.Errorf("%.5s: %d lines, expected about %v", s.Pattern, n, want)
		}
	}
	if sum != 4000 {
		t.Errorf("%d lines of 4000", sum)
	}
}

// A line that is refused for its time does not take other lines along, and none takes it.
func TestNoRoomAndRefused(t *testing.T) {
	k := newIdle(Options{MaxBytes: 1 << 20, Whole: true})
	future := k.now.Add(maxFuture + time.Minute)
	k.send("a", "x", "info", k.now, 500, long)
	k.send("a", "x", "info", future, 500, long)
	k.mineAll()
	k.send("a", "x", "info", future, 500, long)
	k.send("a", "x", "info", k.now, 500, long)
	k.mineAll()
	n, lost := k.counts("a", "x", "info"), testutil.ToFloat64(k.metrics.dropped)
	if n < 500 || n > 1000 || float64(n)+lost < 1000 || lost > 1000 {
		t.Errorf("%v lines of 1000, %v are dropped", n, lost)
	}
	k.check(t)
}

// With more streams than there is room for, lines of some are dropped and counted as such, and those of
// others count once. No stream without a row is known.
func TestNoRoomForMoreStreams(t *testing.T) {
	racetest.SkipSerial(t)
	k := newIdle(Options{MaxBytes: 8 << 20, Whole: true})
	const streams = 3000
	for range 2 { // streams that are not known and those that are
		for n := range streams {
			k.send("a", fmt.Sprint(n), "info", k.now, 1, long)
		}
		k.mineAll()
		k.check(t)
		k.now = k.now.Add(time.Second)
	}
	sum := float32(0)
	for n := range streams {
		lines := k.counts("a", fmt.Sprint(n), "info")
		if sum += lines; lines > 2 {
			t.Fatalf("stream %d has %v lines of 2", n, lines)
		}
	}
	if lost := testutil.ToFloat64(k.metrics.dropped); lost == 0 || float64(sum)+lost != 2*streams {
		t.Errorf("%v lines are counted and %v dropped, of %d", sum, lost, 2*streams)
	}
}

// A full queue costs no memory for known streams.
func TestNoRoomAllocations(t *testing.T) {
	k := newIdle(Options{MaxBytes: 1 << 20, Whole: true})
	l := model.LabelsOf("app", "x")
	b := batch("a", l, make([]int64, 200), func(int) string { return long })
	later := batch("a", l, []int64{60e9}, func(int) string { return long })
	see := func() {
		k.See(b)
		k.See(later)
		k.now = k.now.Add(time.Second)
	}
	see()
	if got := testing.AllocsPerRun(100, see); got > 0 {
		t.Errorf("%v allocations", got)
	}
	if joined, dropped := testutil.ToFloat64(k.metrics.joined), testutil.ToFloat64(k.metrics.dropped); joined == 0 || dropped == 0 {
		t.Errorf("%v lines joined, %v were dropped", joined, dropped)
	}
}

package logql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/patterns"
	"github.com/shaledb/shale/internal/read/readtest"
)

const patternTime = int64(1_700_000_400) // Unix seconds, a multiple of 600

// patternWorld is a store whose lines a Keeper may see, too.
type patternWorld struct {
	memory *readtest.Memory
	seen   int64
	reg    *prometheus.Registry
	keeper *patterns.Keeper
	engine *Engine
}

func newPatternWorld(t *testing.T, o patterns.Options) *patternWorld {
	if o.Now == nil {
		o.Now = func() time.Time { return time.Unix(patternTime, 0) }
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	w := &patternWorld{memory: readtest.NewMemory(64), reg: prometheus.NewRegistry()}
	w.memory.SetTextPage(100, 1) // a sample reads all lines of a chunk
	o.Registerer = w.reg
	w.keeper = patterns.New(o)
	t.Cleanup(w.keeper.Close)
	w.engine = New(Options{Read: read.New(read.Options{Sources: []read.Source{w.memory}}), Patterns: w.keeper, Workers: 1, Now: o.Now})
	return w
}

// add stores a line for each second of a range before patternTime, and shows it to the keeper if it is to see
// it.
func (w *patternWorld) add(t *testing.T, tenant, app string, from, to int64, seen bool, text func(i int64) string) {
	l := model.LabelsOf("app", app)
	var lines []readtest.Line
	for i := from; i < to; i++ {
		x := readtest.Line{Time: (patternTime - i) * 1e9, Text: text(i), Metadata: model.LabelsOf("detected_level", []string{"info", "error"}[i%2])}
		if lines = append(lines, x); !seen {
			continue
		}
		b := &model.Batch{Tenant: tenant, Signal: model.Logs, Source: sourceOf(l)}
		b.Text.AppendBlob(x.Time, model.KindText, model.AppendLine(nil, &model.Line{Text: []byte(x.Text), Metadata: x.Metadata}), 0)
		b.EndSeries(l.Key(1, model.Logs))
		w.keeper.See(b)
		if w.seen++; w.seen%200 == 0 {
			w.waitMined(t)
		}
	}
	w.memory.AddText(tenant, l.Key(1, model.Logs), l, lines...)
	if seen {
		w.waitMined(t)
	}
}

// waitMined waits until the lines that the keeper has seen are mined or, for lack of room, counted with
// others or not at all.
func (w *patternWorld) waitMined(t *testing.T) {
	t.Helper()
	for {
		families, err := w.reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		done := int64(0)
		for _, f := range families {
			switch f.GetName() {
			case "shale_logql_patterns_mined_lines_total", "shale_logql_patterns_joined_lines_total", "shale_logql_patterns_dropped_lines_total":
				done += int64(f.GetMetric()[0].GetCounter().GetValue())
			}
		}
		if done == w.seen {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// sourceOf gives the labels of a batch of one series.
type sourceOf model.Labels

func (s sourceOf) BuildLabels(_ int, b *model.LabelsBuilder) {
	for n, v, rest, ok := model.Labels(s).Next(); ok; n, v, rest, ok = rest.Next() {
		b.Add(n, v)
	}
}

// patterns asks for patterns, and returns the lines of each and the cost.
func (w *patternWorld) patterns(t *testing.T, query string, ago, step int64, tenants ...string) (lines map[string]int64, cost *model.Cost) {
	t.Helper()
	cost = &model.Cost{}
	found, err := w.engine.Patterns(context.Background(), &PatternQuery{
		Tenants: tenants, Prepared: prepared(query), Start: (patternTime - ago) * 1e9, End: patternTime * 1e9, Step: step * 1e9,
		Quota: &model.Quota{MaxBytes: 64 << 20}, Cost: cost,
	})
	if err != nil {
		t.Fatal(err)
	}
	lines = make(map[string]int64)
	for _, s := range found {
		for i, x := range s.Samples {
			if lines[s.Level+" "+s.Pattern] += x.Lines; i > 0 && x.Begin != s.Samples[i-1].Begin+step {
				t.Errorf("samples at %d and %d with a step of %d", s.Samples[i-1].Begin, x.Begin, step)
			}
		}
	}
	return lines, cost
}

func job(i int64) string { return fmt.Sprintf("job %d is done after %dms", i, i%7) }

// Patterns that are kept need no lines.
func TestKeptPatterns(t *testing.T) {
	w := newPatternWorld(t, patterns.Options{Whole: true})
	w.add(t, "a", "x", 1, 1001, true, job)
	w.add(t, "a", "y", 1, 1001, true, func(i int64) string { return fmt.Sprint("no such user: ", i) })
	w.add(t, "b", "x", 1, 1001, true, job)
	for _, c := range []struct {
		query   string
		ago     int64
		tenants []string
		want    map[string]int64
	}{
		{`{app="x"}`, 1000, []string{"a"}, map[string]int64{"info job <_> is done after <_>": 500, "error job <_> is done after <_>": 500}},
		{`{app="x"}`, 100, []string{"a"}, map[string]int64{"info job <_> is done after <_>": 50, "error job <_> is done after <_>": 50}},
		{`{app="x"}`, 1000, []string{"a", "b"}, map[string]int64{"info job <_> is done after <_>": 1000, "error job <_> is done after <_>": 1000}},
		{`{app="x",__tenant_id__="b"}`, 1000, []string{"a", "b"}, map[string]int64{"info job <_> is done after <_>": 500, "error job <_> is done after <_>": 500}},
		{`{app=~"y|z"}`, 1000, []string{"a"}, map[string]int64{"info no such user: <_>": 500, "error no such user: <_>": 500}},
		{`{app="x"}`, 20, []string{"a"}, map[string]int64{}},
		{`{app="none"}`, 1000, []string{"a", "c"}, map[string]int64{}},
	} {
		for _, step := range []int64{10, 60, 7200} {
			got, cost := w.patterns(t, c.query, c.ago, step, c.tenants...)
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s, %d s, %v: got %v, expected %v", c.query, c.ago, c.tenants, got, c.want)
			}
			if n := cost.TextLines.Load(); n > 0 {
				t.Errorf("%s: %d lines were read", c.query, n)
			}
		}
	}
}

// Lines that were stored before are sampled, and kept ones are not counted twice.
func TestSampledPatterns(t *testing.T) {
	racetest.SkipSerial(t)
	w := newPatternWorld(t, patterns.Options{})
	w.add(t, "a", "x", 1, 20_001, false, job)
	got, cost := w.patterns(t, `{app="x"}`, 20_000, 60, "a")
	for level, want := range map[string]float64{"info": 10_000, "error": 10_000} {
		if n := float64(got[level+" job <_> is done after <_>"]); math.Abs(n-want) > want/5 {
			t.Errorf("%s: got %v, expected about %v", level, n, want)
		}
	}
	if n := cost.TextLines.Load(); n == 0 || n > sampledChunks*sampledLines {
		t.Errorf("%d lines were read", n)
	}
	again, _ := w.patterns(t, `{app="x"}`, 20_000, 60, "a")
	if fmt.Sprint(got) != fmt.Sprint(again) {
		t.Errorf("the same query gives %v and %v", got, again)
	}
}

// A query with stages is answered from a sample, even of what is kept. If it reads all lines, it is exact.
func TestPatternsOfStages(t *testing.T) {
	w := newPatternWorld(t, patterns.Options{Whole: true})
	w.add(t, "a", "x", 1, 1001, true, job)
	for query, want := range map[string]map[string]int64{
		`{app="x"} |= "after 3ms"`:                    {"info job <_> is done after 3ms": 71, "error job <_> is done after 3ms": 72},
		`{app="x"} | detected_level="info"`:           {"info job <_> is done after <_>": 500},
		`{app="x"} | line_format "{{.app}} has done"`: {"info x has done": 500, "error x has done": 500},
		`{app="x"} |= "nothing"`:                      {},
	} {
		if got, _ := w.patterns(t, query, 1000, 60, "a"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, expected %v", query, got, want)
		}
	}
}

// An empty range has no patterns, wherever it is in the 10 seconds of a count.
func TestPatternsOfEmptyRanges(t *testing.T) {
	w := newPatternWorld(t, patterns.Options{Whole: true})
	for n := range int64(20) { // enough lines in each 10 seconds for a pattern
		w.add(t, "a", "x"+name(n), 50, 150, true, func(int64) string { return "job is done" })
		w.add(t, "a", "x"+name(n), patternTime-20, patternTime, true, func(int64) string { return "job is done" })
	}
	in := (patternTime - 95) * 1e9
	for _, c := range []struct{ start, end int64 }{
		{in, in}, {in, in - 1}, {in, in - 1e9}, {in + 1, in}, {in, 0}, {in, math.MinInt64}, {math.MinInt64, math.MinInt64},
		{0, math.MinInt64}, {0, 0}, {math.MinInt64, 0}, {math.MinInt64, -1}, {-5e9, -1}, {math.MaxInt64, math.MaxInt64},
	} {
		for _, query := range []string{`{app=~"x.*"}`, `{app=~"x.*"} |= "job"`} {
			got, err := w.engine.Patterns(context.Background(), &PatternQuery{
				Tenants: []string{"a"}, Prepared: prepared(query), Start: c.start, End: c.end, Step: 1e9, Quota: &model.Quota{MaxBytes: 1 << 20}, Cost: &model.Cost{},
			})
			if err != nil || len(got) > 0 {
				t.Errorf("%s, %d to %d: %v %v", query, c.start, c.end, got, err)
			}
		}
	}
}

// What a keeper forgets to save memory comes from samples: no line is lost or counted twice.
func TestForgottenPatterns(t *testing.T) {
	w := newPatternWorld(t, patterns.Options{Whole: true, MaxBytes: 50_000})
	// Every hundred lines have a pattern of their own.
	w.add(t, "a", "x", 1, 4901, true, func(i int64) string { return fmt.Sprintf("job%s %d is done", strings.Repeat(";", int(i/100)), i) })
	got, cost := w.patterns(t, `{app="x"}`, 4900, 60, "a")
	all := int64(0)
	for _, n := range got {
		all += n
	}
	if all < 4500 || all > 5300 {
		t.Errorf("%d of 4900 lines: %v", all, got)
	}
	if n := cost.TextLines.Load(); n == 0 {
		t.Error("nothing was sampled, so nothing was forgotten")
	}
	recent, cost := w.patterns(t, `{app="x"}`, 600, 60, "a")
	if n := cost.TextLines.Load(); n > 0 || len(recent) == 0 {
		t.Errorf("%d lines were read for the last ten minutes: %v", n, recent)
	}
}

// TestPatternsAfterAFailure: the tenant whose counts were dropped is answered from what is stored, and others
// from their counts, also one whose first lines come after the failure.
func TestPatternsAfterAFailure(t *testing.T) {
	var asked, failAt atomic.Int64
	w := newPatternWorld(t, patterns.Options{Whole: true, Now: func() time.Time {
		if asked.Add(1) == failAt.Load() {
			panic("a fault while a line is mined")
		}
		return time.Unix(patternTime, 0)
	}})
	w.add(t, "bad", "x", 1, 1001, true, job)
	w.add(t, "good", "x", 1, 1001, true, job)
	failAt.Store(asked.Load() + 2) // the push asks first, and then the mining of its line
	w.add(t, "bad", "y", 1, 2, true, job)
	if n := w.metric(t, "shale_logql_patterns_failures_total"); n != 1 {
		t.Fatalf("%v failures", n)
	}
	w.add(t, "new", "x", 1, 1001, true, job)
	want := map[string]int64{"info job <_> is done after <_>": 500, "error job <_> is done after <_>": 500}
	for tenant, reads := range map[string]bool{"bad": true, "good": false, "new": false} {
		got, cost := w.patterns(t, `{app="x"}`, 1000, 60, tenant)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("tenant %s: got %v, expected %v", tenant, got, want)
		}
		if n := cost.TextLines.Load(); n > 0 != reads {
			t.Errorf("tenant %s: %d lines were read", tenant, n)
		}
	}
}

// metric returns the value of a counter of the keeper.
func (w *patternWorld) metric(t *testing.T, name string) float64 {
	t.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// name makes a word without digits of a number.
func name(i int64) string {
	var b []byte
	for ; i > 0; i /= 20 {
		b = append(b, byte('a'+i%20))
	}
	return string(b) + "x"
}

func TestPatternsRefuse(t *testing.T) {
	w := newPatternWorld(t, patterns.Options{})
	w.add(t, "a", "x", 1, 2001, false, func(i int64) string { return fmt.Sprintf("%s %s %s is done", name(i), name(i*7), name(i*3)) })
	_, err := w.engine.Patterns(context.Background(), &PatternQuery{
		Tenants: []string{"a"}, Prepared: prepared(`{app="x"}`), Start: 0, End: patternTime * 1e9, Step: 1e9, Quota: &model.Quota{MaxBytes: 4000}, Cost: &model.Cost{},
	})
	if !errors.Is(err, model.ErrLimit) {
		t.Error(err)
	}
	_, err = w.engine.Patterns(context.Background(), &PatternQuery{Tenants: []string{"a"}, Prepared: prepared(`rate({app="x"}[1m])`)})
	if !errors.Is(err, model.ErrInvalid) {
		t.Error(err)
	}
}

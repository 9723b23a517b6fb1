package changes

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

func batch(tenant string, s model.Signal, times ...int64) *model.Batch {
	b := &model.Batch{Tenant: tenant, Signal: s}
	for i, t := range times {
		k := model.Key{Lo: uint64(i)}
		if s == model.Logs {
			b.Text.AppendBlob(t, model.KindText, nil, 0)
			b.EndSeries(k)
			continue
		}
		b.AddSample(k, t, 0)
	}
	return b
}

func rows(s model.Signal, lo, hi int64) *model.Reach {
	r := new(model.Reach)
	r.AddRows(s, model.TimeRange{Min: lo, Max: hi})
	return r
}

func lists(s model.Signal) *model.Reach {
	r := new(model.Reach)
	r.AddLists(s)
	return r
}

// TestCauses: each change ends the responses that it concerns, and with so few notes no others.
func TestCauses(t *testing.T) {
	const hour = 4 * window
	series := batch("a", model.Metrics, 5*hour)
	series.Labels.Append(0, model.LabelsOf("x", "y"))
	control := &model.Batch{Tenant: "b", Control: model.Control{Kind: model.ControlDelete}}
	for _, test := range []struct {
		name   string
		change func(*Log)
		reach  *model.Reach
		want   Cause
	}{
		{"rows", func(l *Log) { l.Applied(batch("a", model.Metrics, hour, 5*hour)) }, rows(model.Metrics, 5*hour, 6*hour), Rows},
		{"rows before 1970", func(l *Log) { l.Applied(batch("a", model.Metrics, -1)) }, rows(model.Metrics, -10, -5), Rows},
		{"rows of another window", func(l *Log) { l.Applied(batch("a", model.Metrics, hour, 7*hour)) }, rows(model.Metrics, 5*hour, 6*hour), None},
		{"rows of another tenant", func(l *Log) { l.Applied(batch("b", model.Metrics, 5*hour)) }, rows(model.Metrics, 5*hour, 6*hour), None},
		{"rows of another signal", func(l *Log) { l.Applied(batch("a", model.Logs, 5*hour)) }, rows(model.Metrics, 5*hour, 6*hour), None},
		{"lines", func(l *Log) { l.Applied(batch("a", model.Logs, 5*hour)) }, rows(model.Logs, 5*hour, 6*hour), Rows},
		{"all times", func(l *Log) { l.Applied(batch("a", model.Metrics, hour)) }, rows(model.Metrics, math.MinInt64, math.MaxInt64), Rows},
		{"rows and lists", func(l *Log) { l.Applied(batch("a", model.Metrics, hour)) }, lists(model.Metrics), None},
		{"new series", func(l *Log) { l.Applied(series) }, lists(model.Metrics), Lists},
		{"new series of another signal", func(l *Log) { l.Applied(series) }, lists(model.Logs), None},
		{"parts", (*Log).Lists, lists(model.Logs), Lists},
		{"parts and rows", (*Log).Lists, rows(model.Logs, 0, hour), None},
		{"a deletion", func(l *Log) { l.Applied(control) }, rows(model.Logs, 0, hour), Whole},
		{"the catalogue", (*Log).Whole, lists(model.Metrics), Whole},
		{"nothing", func(*Log) {}, rows(model.Metrics, 0, math.MaxInt64), None},
	} {
		l := New(nil)
		l.Applied(batch("a", model.Metrics, 5*hour)) // before
		at := l.Clock()
		test.change(l)
		if got := l.Changed(at, []string{"a"}, test.reach); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		if got := l.Changed(l.Clock(), []string{"a"}, test.reach); got != None {
			t.Errorf("%s: %q after it was computed again", test.name, got)
		}
	}
}

// TestTenants: a response to several tenants depends on each.
func TestTenants(t *testing.T) {
	l := New(nil)
	l.Applied(batch("c", model.Logs, 10))
	for _, test := range []struct {
		tenants []string
		want    Cause
	}{{[]string{"a", "b"}, None}, {[]string{"a", "c"}, Rows}} {
		if got := l.Changed(0, test.tenants, rows(model.Logs, 0, 100)); got != test.want {
			t.Errorf("%v: %q", test.tenants, got)
		}
	}
}

// TestExpired: retention ends a response without a change.
func TestExpired(t *testing.T) {
	now := int64(100)
	l := New(func() int64 { return now })
	r := rows(model.Logs, 0, 10)
	r.Bound(200)
	r.Bound(150)
	for now = range int64(300) {
		if got, want := l.Changed(0, []string{"a"}, r) == Expired, now > 150; got != want {
			t.Fatalf("at %d: %v", now, got)
		}
	}
}

// TestNeverMissed: whatever meets in the table, a row in the range is a change.
func TestNeverMissed(t *testing.T) {
	l := New(nil)
	rng := rand.New(rand.NewPCG(1, 2))
	kept := 0
	for range 20_000 {
		lo := rng.Int64N(1000*window) - 500*window
		hi := lo + rng.Int64N(50*window)
		tenant, s := string(rune('a'+rng.IntN(20))), model.Signal(1+rng.IntN(2))
		at, in := l.Clock(), false
		for range rng.IntN(3) {
			other, signal, when := string(rune('a'+rng.IntN(20))), model.Signal(1+rng.IntN(2)), lo+rng.Int64N(200*window)-100*window
			l.Applied(batch(other, signal, when))
			in = in || other == tenant && signal == s && lo <= when && when <= hi
		}
		got := l.Changed(at, []string{tenant}, rows(s, lo, hi))
		if in && got != Rows {
			t.Fatalf("%s %v [%d, %d]: missed a row", tenant, s, lo, hi)
		}
		if got == None {
			kept++
		}
	}
	if kept < 15_000 {
		t.Errorf("%d responses of 20,000 were kept", kept)
	}
}

func BenchmarkChanged(b *testing.B) {
	l := New(nil)
	l.Applied(batch("a", model.Metrics, 1000*window))
	r := rows(model.Metrics, 0, 96*window)
	b.ReportAllocs()
	for b.Loop() {
		if l.Changed(0, []string{"a"}, r) != None {
			b.Fatal("changed")
		}
	}
}

func BenchmarkApplied(b *testing.B) {
	times := make([]int64, 1000)
	for i := range times {
		times[i] = 1000*window + int64(i)
	}
	x, l := batch("a", model.Metrics, times...), New(nil)
	b.ReportAllocs()
	for b.Loop() {
		l.Applied(x)
	}
}

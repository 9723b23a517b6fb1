package policy

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// rollups of 5 m and 1 h in a policy of 1 m, 5 m and 1 h.
func TestSlotsOfRollups(t *testing.T) {
	p := Policy{Archives: []Archive{{60, 180}, {300, 240}, {3600, 100}}, Method: Average, XFilesFactor: 0.5}
	const hour = 1_700_002_800
	var rows model.Rows
	add := func(slot, step int64, archive int, v float64) {
		at, start := Rollup(slot, step, archive)
		rows.Append(at, math.Float64bits(v), start)
	}
	for i := range int64(12) { // an hour of 5 m alone
		add(hour+300*i, 300, 1, float64(i))
	}
	add(hour+3600, 300, 1, 50) // a slot that also has points, which it replaces
	rows.Append((hour+3600)*second, math.Float64bits(1), 0)
	rows.Append((hour+3660)*second, math.Float64bits(2), 0)
	rows.Append((hour+3720)*second, math.Float64bits(3), 0)
	for i := range int64(5) {
		rows.Append((hour+3900+60*i)*second, math.Float64bits(float64(i)), 0)
	}
	add(hour+7200, 3600, 2, 99)
	rows.Normalize()
	now := int64(hour + 3*3600)
	for _, c := range []struct {
		from int64
		want string
	}{
		{hour + 2*3600 - 60, "7200:- 7260:-"},
		{hour + 3900 - 60, "3900:0 3960:1 4020:2 4080:3 4140:4 4200:-"},
		{hour + 3600 - 60, "3600:1 3660:2 3720:3 3780:- 3840:- 3900:0"},
		{hour - 1, "0:0 300:1 600:2 900:3 1200:4 1500:5 1800:6 2100:7 2400:8 2700:9 3000:10 3300:11 3600:50 3900:2 4200:-"},
		{hour - 80*3600, "0:5.5 3600:- 7200:99"},
	} {
		w, ok := p.Window(c.from, now-1, now)
		if !ok {
			t.Fatal("no window")
		}
		var b strings.Builder
		for i, v := range p.Slots(w, &rows, nil) {
			if at := w.First + int64(i)*w.Step - hour; at >= 0 {
				fmt.Fprintf(&b, "%d:%s ", at, strings.Replace(fmt.Sprint(v), "NaN", "-", 1))
			}
		}
		if got := b.String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("from %d by %d: got %.200s, want %s", c.from-hour, w.Step, got, c.want)
		}
	}
}

// A file whose archives are not those of the policy still shows its points.
func TestSlotsOfOtherSteps(t *testing.T) {
	const begin = 1_700_006_400
	var rows model.Rows
	for i := range int64(24) {
		at, start := Rollup(begin+600*i, 600, 1)
		rows.Append(at, math.Float64bits(float64(i)), start)
	}
	for _, c := range []struct {
		archives []Archive
		want     string
	}{
		{[]Archive{{60, 10000}}, "[0 NaN NaN NaN NaN NaN NaN NaN NaN NaN 1 NaN"},
		{[]Archive{{300, 10000}}, "[0 NaN 1 NaN 2"},
		{[]Archive{{60, 60}, {3600, 100}}, "[2.5 8.5 14.5 20.5 NaN"},
		{[]Archive{{3600, 100}}, "[5 11 17 23 NaN"},
	} {
		p := Policy{Archives: c.archives, XFilesFactor: 1}
		w, ok := p.Window(begin-1, begin+5*3600, begin+5*3600)
		if !ok {
			t.Fatal("no window")
		}
		if got := fmt.Sprint(p.Slots(w, &rows, nil)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%v: got %.100s, want %s", c.archives, got, c.want)
		}
	}
}

// Rows of Prometheus have any milliseconds and starts, and are not taken for rollups.
func TestRollupStep(t *testing.T) {
	at, start := Rollup(1_700_000_100, 300, 2)
	if got := rollupStep(at, start); got != 300 {
		t.Errorf("got step %d", got)
	}
	for _, c := range [][2]int64{{at, 0}, {at, at}, {at, at + 1}, {at + 2e6, start}, {at - 500e6, start}, {at, start + 1e6}, {at + 1, start}} {
		if got := rollupStep(c[0], c[1]); got != 0 {
			t.Errorf("%v: got step %d", c, got)
		}
	}
}

func TestSlotsDoNotAllocate(t *testing.T) {
	p := Policy{Archives: []Archive{{60, 120}, {300, 240}}, XFilesFactor: 0.5}
	rows := minutes(600)
	w, _ := p.Window(rows.Times[0]/second, rows.Times[599]/second, rows.Times[599]/second)
	dst := make([]float64, 0, w.Len())
	if n := testing.AllocsPerRun(10, func() { p.Slots(w, rows, dst) }); n > 1 {
		t.Errorf("%v allocations, want at most the grid", n)
	}
}

func minutes(n int64) *model.Rows {
	rows := &model.Rows{}
	for i := range n {
		rows.Append((1_700_000_000+60*i)*second, math.Float64bits(float64(i)), 0)
	}
	return rows
}

// BenchmarkSlots lays out 30 days of minutes.
func BenchmarkSlots(b *testing.B) {
	rows := minutes(43200)
	last := rows.Times[43199] / second
	for _, c := range []struct {
		name     string
		archives []Archive
	}{{"60s", []Archive{{60, 50000}}}, {"5m", []Archive{{60, 1440}, {300, 10000}}}, {"1h", []Archive{{60, 1440}, {300, 2000}, {3600, 10000}}}} {
		b.Run(c.name, func(b *testing.B) {
			p := Policy{Archives: c.archives, XFilesFactor: 0.5}
			w, _ := p.Window(rows.Times[0]/second, last, last)
			var dst []float64
			for b.Loop() {
				dst = p.Slots(w, rows, dst[:0])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/43200, "ns/row")
		})
	}
}

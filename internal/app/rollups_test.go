package app

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/read/graphite/series"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/retention"
)

// policiesOf parses the two files of carbon.
func policiesOf(t *testing.T, schemas, aggregations string) *policy.Policies {
	t.Helper()
	s, err := carbonconf.Parse("storage-schemas.conf", []byte(schemas))
	must(t, err)
	a, err := carbonconf.Parse("storage-aggregation.conf", []byte(aggregations))
	must(t, err)
	p, err := policy.Parse(s, a)
	must(t, err)
	return p
}

const day = 24 * time.Hour

const someSchemas = `
[fine]
pattern = ^fine\.
retentions = 60s:1d,5m:6d,1h:5y
[coarse]
pattern = ^coarse\.
retentions = 5m:2d,2h:5y
[odd]
pattern = ^odd\.
retentions = 60s:1d,7m:20d,70m:5y
[single]
pattern = .*
retentions = 60s:5y
`

const someAggregations = `
[sum]
pattern = \.sum$
xFilesFactor = 0
aggregationMethod = sum
[max]
pattern = \.max$
xFilesFactor = 0.3
aggregationMethod = max
[last]
pattern = \.last$
xFilesFactor = 0
aggregationMethod = last
[absmin]
pattern = \.absmin$
xFilesFactor = 0.1
aggregationMethod = absmin
`

// renders draws targets, of rollups or of rows.
func (s *setup) renders(rollups bool, from, until int64, targets ...string) (series.List, *model.Cost, error) {
	o := graphite.Options{Read: s.Querier(), Policies: func() func(string) (policy.Policy, error) { return s.o.Rollups().Of }}
	if rollups {
		o.Rollups = s.rolledPolicies()
	}
	q := &graphite.Query{
		Tenant: "a", Targets: targets, From: from, Until: until, Now: time.Unix(0, s.now).UTC(), Quota: new(model.Quota), Cost: new(model.Cost),
	}
	list, err := graphite.New(o).Render(context.Background(), q)
	return list, q.Cost, err
}

// values shows all bits of series.
func values(list series.List) string {
	var b strings.Builder
	for _, x := range list {
		fmt.Fprintf(&b, "%s %d-%d/%d\n", x.Name, x.Start, x.End, x.Step)
		for i, v := range x.Values {
			if v == v {
				fmt.Fprintf(&b, "  %d %x %g\n", x.Start+int64(i)*x.Step, math.Float64bits(v), v)
			}
		}
	}
	return b.String()
}

func (s *setup) compact(t *testing.T) { t.Helper(); must(t, s.Compact(context.Background())) }

// pushMinutes pushes a sample of a name for each of some minutes, in one request, at the end of the last one.
func (s *setup) pushMinutes(t *testing.T, name string, begin, from, to int64, value func(minute int64) float64) {
	t.Helper()
	b := s.Path().Batch("a", model.Metrics)
	defer s.Path().Recycle(b)
	l := model.LabelsOf("__name__", name)
	b.Source = oneSeries(l)
	for i := from; i < to; i++ {
		s.now = begin + i*int64(time.Minute)
		b.Samples.Append(s.now, math.Float64bits(value(i)), 0)
	}
	b.EndSeries(l.Key(s.Path().Seed(), model.Metrics))
	res, err := s.Path().Push(context.Background(), b)
	if must(t, err); len(res.Rejected) > 0 {
		t.Fatal(res.Rejected)
	}
}

// TestRollupsByDefault: rollups are made if a schema has several archives. Otherwise no block is read for
// them.
func TestRollupsByDefault(t *testing.T) {
	for schemas, want := range map[string]bool{
		"[a]\npattern = .*\nretentions = 60s:1d,1h:3y\n": true,
		"[a]\npattern = .*\nretentions = 60s:3y\n":       false,
		"": false,
	} {
		p := policiesOf(t, schemas, "")
		if got := rollupsBy(func() *policy.Policies { return p }, false).Makes; got != want {
			t.Errorf("%q: rollups %t, want %t", schemas, got, want)
		}
	}
}

// TestRollupsAreRead: a render reads the rollups of a day that is over, and shows what the points show.
func TestRollupsAreRead(t *testing.T) {
	racetest.SkipSerial(t) // TestRollups reads them at random
	p := policiesOf(t, someSchemas, someAggregations)
	s := newSetup(t, func(o *EngineOptions) { o.Rollups = func() *policy.Policies { return p } })
	begin := s.now / int64(day) * int64(day)
	for i := int64(0); i < 3*1440; i += 60 {
		for _, name := range []string{"fine.a", "fine.sum", "coarse.max", "odd.last", "single.a"} {
			s.pushMinutes(t, name, begin, i, i+60, func(i int64) float64 { return float64(i*i) / 7 })
		}
	}
	must(t, s.Ship())
	s.now += int64(2 * time.Hour)
	s.compact(t)
	now := s.now / int64(time.Second)
	from := begin/int64(time.Second) - 86400*10
	got, cost, err := s.renders(true, from, now, "*.*")
	must(t, err)
	want, raw, err := s.renders(false, from, now, "*.*")
	must(t, err)
	if g, w := values(got), values(want); g != w || len(got) != 5 {
		t.Errorf("from rollups:\n%s\nfrom points:\n%s", g, w)
	}
	if cost.Samples.Load() > raw.Samples.Load()*3/4 {
		t.Errorf("read %d rows of rollups, %d without them", cost.Samples.Load(), raw.Samples.Load())
	}
	must(t, s.Close())
}

// TestLatePointsWaitForTheirRollups: retention drops no points whose rollups lack others that came late,
// however long ago all have expired, before compaction had its chance.
func TestLatePointsWaitForTheirRollups(t *testing.T) {
	p := policiesOf(t, someSchemas, someAggregations)
	s := newSetup(t, func(o *EngineOptions) {
		o.Rollups = func() *policy.Policies { return p }
		o.Retention = keeping(4 * day)
	})
	w := &rolled{setup: s, t: t}
	begin := s.now / int64(day) * int64(day)
	give := func(at int64, v float64) { must(t, s.push("a", model.LabelsOf("__name__", "coarse.last"), at, v)) }
	blocks := func() int { return len(s.catalog.State().Blocks) }
	s.now = begin + int64(day)
	give(begin+int64(day/2), 1)
	must(t, s.Ship())
	s.now = begin + int64(2*day)
	s.compact(t) // makes the rollups of the first point
	give(begin+int64(day/2+time.Minute), 2)
	must(t, s.Ship())
	s.now = begin + int64(40*day)
	give(s.now, 3) // the time by which points expire is that of the newest
	must(t, s.Ship())
	if w.expireRows(); blocks() != 3 {
		t.Fatalf("%d blocks are left before compaction, want 3", blocks())
	}
	s.compact(t)
	if w.expireRows(); blocks() != 1 {
		t.Fatalf("%d blocks are left after compaction, want 1", blocks())
	}
	at := (begin + int64(day/2)) / int64(time.Second)
	got, _, err := s.renders(true, at-1, at+1, "coarse.last")
	must(t, err)
	if len(got) != 1 || got[0].Start != at || len(got[0].Values) == 0 || got[0].Values[0] != 2 {
		t.Errorf("got %s, want the last value 2", values(got))
	}
	must(t, s.Close())
}

var (
	rollupSeed = flag.Uint64("rollup-seed", 0, "the seed of TestRollups; 0: any")
	rollupRuns = flag.Int("rollup-runs", 12, "the number of stores of TestRollups")
)

// rolled is a store with rollups and all that it was given.
type rolled struct {
	*setup
	t       *testing.T
	r       *rand.Rand
	begin   int64
	names   []string
	given   map[string]map[int64]float64 // by name and time
	files   *policy.Policies
	tainted map[int64]bool // days that got late points or deletions after their points had expired
	// late are the days of late points that are not shipped.
	late map[int64]bool
	// raws and rolls count rows read without and with rollups.
	raws, rolls int64
	log         []string
}

func (w *rolled) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// give pushes random points of some names in a range.
func (w *rolled) give(from, to int64, most int) {
	w.t.Helper()
	b := w.Path().Batch("a", model.Metrics)
	defer w.Path().Recycle(b)
	var labels manySeries
	step := []int64{1, 10, 60, 60, 300}[w.r.IntN(5)] * int64(time.Second)
	for _, name := range w.names {
		if w.r.IntN(4) == 0 {
			continue
		}
		l := model.LabelsOf("__name__", name)
		if metric, tag, ok := strings.Cut(name, ";dc="); ok {
			l = model.LabelsOf("__name__", metric, "dc", tag)
		}
		for range 1 + w.r.IntN(most) {
			at := from + w.r.Int64N(to-from+1)
			if at -= at % step; at < from {
				continue
			}
			v := []float64{float64(w.r.IntN(1000)), w.r.NormFloat64() * 1e3, math.Copysign(0, -1), -float64(w.r.IntN(5)), w.r.Float64() / 3}[w.r.IntN(5)]
			b.Samples.Append(at, math.Float64bits(v), 0)
			w.given[name][at] = v
		}
		labels = append(labels, l)
		b.EndSeries(l.Key(w.Path().Seed(), model.Metrics))
	}
	b.Source = labels
	res, err := w.Path().Push(context.Background(), b)
	must(w.t, err)
	if len(res.Rejected) > 0 {
		w.t.Fatalf("rejected: %v", res.Rejected)
	}
}

type manySeries []model.Labels

func (m manySeries) BuildLabels(i int, b *model.LabelsBuilder) {
	for n, v, rest, ok := m[i].Next(); ok; n, v, rest, ok = rest.Next() {
		b.Add(n, v)
	}
}

// expireRows drops what has expired.
func (w *rolled) expireRows() {
	x := &expiry{catalog: w.catalog, compact: w.compactor, rules: w.rules, grace: time.Hour, now: func() int64 { return w.now }}
	must(w.t, x.drop(context.Background()))
}

// delete deletes points of a name or of all, in a range.
func (w *rolled) delete() {
	name := w.names[w.r.IntN(len(w.names))]
	from := w.begin + w.r.Int64N(w.now-w.begin)
	d := deletion.Deletion{
		Tenant: "a", Signal: model.Metrics, Range: model.TimeRange{Min: from, Max: from + w.r.Int64N(3*int64(day))},
		Matchers: []deletion.Matcher{{Name: "__name__", Op: model.MatchEqual, Value: name}},
	}
	if strings.Contains(name, ";") {
		return
	}
	_, err := w.Delete(context.Background(), d)
	must(w.t, err)
	w.note("delete %s in %v", name, d.Range)
	for at := range w.given[name] {
		if d.Range.Contains(at) {
			delete(w.given[name], at)
		}
	}
	w.taint(d.Range.Min, d.Range.Max)
}

// keep returns how long points are kept.
func (w *rolled) keep() time.Duration {
	if w.o.Retention == nil {
		return retention.Forever
	}
	return w.o.Retention.Longest()
}

// taint notes days whose points may be gone and that change now.
func (w *rolled) taint(from, to int64) {
	for d := from / int64(day); d <= to/int64(day); d++ {
		w.late[d] = true
		if keep := w.keep(); keep != retention.Forever && d*int64(day) < w.now-int64(keep) {
			w.tainted[d] = true
		}
	}
}

// model lays out all points that were given.
func (w *rolled) model(name string, from, until int64) (policy.Window, []float64, bool) {
	p, err := w.o.Rollups().Of(name)
	must(w.t, err)
	win, ok := p.Window(from, until, w.now/int64(time.Second))
	if !ok {
		return win, nil, false
	}
	rows := &model.Rows{}
	for _, at := range slices.Sorted(maps.Keys(w.given[name])) {
		if win.Range().Contains(at) {
			rows.Append(at, math.Float64bits(w.given[name][at]), 0)
		}
	}
	return win, p.Slots(win, rows, nil), true
}

// check draws a window in each way.
func (w *rolled) check() {
	w.t.Helper()
	now := w.now / int64(time.Second)
	from := now - w.r.Int64N(50*86400)
	until := from + w.r.Int64N(now-from+1)
	if w.r.IntN(2) == 0 {
		until = now
	}
	targets := []string{"fine.*", "coarse.*", "odd.*", "single.*", "seriesByTag('dc=x')"}
	got, cost, err := w.renders(true, from, until, targets...)
	if err != nil {
		w.fail("render of rollups: %v", err)
	}
	w.rolls += cost.Samples.Load()
	if w.keep() == retention.Forever {
		want, cost, err := w.renders(false, from, until, targets...)
		must(w.t, err)
		w.raws += cost.Samples.Load()
		if g, x := values(got), values(want); g != x {
			w.fail("%d to %d:\n%s", from, until, firstDiff(g, x))
		}
	}
	for _, s := range got {
		win, want, ok := w.model(s.Name, from, until)
		if !ok || s.Start != win.First || s.Step != win.Step || len(want) != len(s.Values) {
			w.fail("%s: window %d-%d/%d, want %+v", s.Name, s.Start, s.End, s.Step, win)
		}
		p, err := w.files.Of(s.Name)
		must(w.t, err)
		rolls := p.RollupStep(win) > 0
		for i, v := range s.Values {
			at := s.Start + int64(i)*s.Step
			if !rolls && w.keep() != retention.Forever && at*int64(time.Second) < w.now-int64(w.keep()) {
				continue // hidden
			}
			if w.tainted[at/86400] || w.tainted[(at+s.Step-1)/86400] {
				continue
			}
			if math.Float64bits(v) != math.Float64bits(want[i]) && (v == v || want[i] == want[i]) {
				w.fail("%s at %d by %d: %g, want %g", s.Name, at, s.Step, v, want[i])
			}
		}
	}
}

func firstDiff(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d: got %q, want %q", i, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(x), len(y))
}

func (w *rolled) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(w.log, "\n"))
}

// TestRollups does to a store what happens to stores: points that come in time and late, deletions, merges,
// restarts, changes of the files, retention. Renders from rollups are those from the points, bit for bit,
// where the points still are, and those of all points that were given where they are gone.
func TestRollups(t *testing.T) {
	seed := *rollupSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("again: go test ./internal/app -run 'TestRollups$' -rollup-seed %d", seed)
	var raws, rolls int64
	for run := range max(1, *rollupRuns/racetest.Fewer) {
		w := newRolled(t, rand.New(rand.NewPCG(seed, uint64(run))), run%3 == 2)
		for range 60 {
			w.step(run%3 == 1)
		}
		must(t, w.Close())
		checkFolder(t, w.mem)
		survey, err := catalog.ReadSurvey(context.Background(), w.o.Bucket, nil)
		must(t, err)
		for _, problem := range survey.Problems {
			t.Error(problem)
		}
		raws, rolls = raws+w.raws, rolls+w.rolls
	}
	t.Logf("read %d rows with rollups, %d without them where both were read", rolls, raws)
}

func newRolled(t *testing.T, r *rand.Rand, retains bool) *rolled {
	w := &rolled{t: t, r: r, given: map[string]map[int64]float64{}, tainted: map[int64]bool{}, late: map[int64]bool{}}
	w.names = []string{"fine.a", "fine.sum", "fine.max", "fine.absmin", "coarse.a", "coarse.last", "odd.a", "odd.sum", "single.a", "fine.tagged;dc=x", "coarse.tagged;dc=x"}
	for _, name := range w.names {
		w.given[name] = map[int64]float64{}
	}
	w.files = policiesOf(t, someSchemas, someAggregations)
	w.setup = newSetup(t, func(o *EngineOptions) {
		o.Rollups = func() *policy.Policies { return w.files }
		if retains {
			o.Retention = keeping(time.Duration(4+r.IntN(8)) * day)
		}
	})
	w.begin = w.now
	return w
}

// step does one random thing, and then looks.
func (w *rolled) step(changes bool) {
	now := w.now
	switch n := w.r.IntN(20); {
	case n < 7:
		w.now += w.r.Int64N(2 * int64(day))
		w.note("points until %s", time.Unix(0, w.now).UTC())
		w.give(now, w.now, 150)
	case n < 9:
		from := w.begin + w.r.Int64N(now-w.begin+1)
		to := min(from+w.r.Int64N(int64(day)), now)
		w.note("late points from %s to %s", time.Unix(0, from).UTC(), time.Unix(0, to).UTC())
		w.taint(from, to)
		w.give(from, to, 5)
	case n < 10:
		if now > w.begin {
			w.delete()
		}
	case n < 13:
		w.note("ship")
		clear(w.late)
		must(w.t, w.Ship())
	case n < 17:
		w.note("compact at %s", time.Unix(0, now).UTC())
		w.compact(w.t)
	case n < 18:
		w.note("expire")
		for d := range w.late {
			w.taint(d*int64(day), d*int64(day))
		}
		w.expireRows()
	case n < 19:
		w.note("restart")
		must(w.t, w.Close())
		var err error
		w.Engine, err = OpenEngine(context.Background(), w.o)
		must(w.t, err)
	default:
		if changes {
			schemas := []string{someSchemas, strings.Replace(someSchemas, "5m:6d,1h:5y", "2m:5d,30m:5y", 1), strings.Replace(someSchemas, "60s:1d,5m:6d,1h:5y", "5m:2d,10m:5y", 1)}
			w.files = policiesOf(w.t, schemas[w.r.IntN(3)], []string{someAggregations, strings.Replace(someAggregations, "= sum", "= min", 1)}[w.r.IntN(2)])
			w.note("policies %s", w.files.ID())
		}
	}
	w.check()
}

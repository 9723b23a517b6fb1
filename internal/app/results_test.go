package app

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/vector"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/results"
	"github.com/shaledb/shale/internal/write"
)

var (
	resultSeed   = flag.Uint64("result-seed", 0, "the one world of TestResults to try; 0: as many as -result-worlds says")
	resultWorlds = flag.Int("result-worlds", 6, "worlds of TestResults that are tried")
)

// TestResults asks the queries of dashboards that slide, each with and without kept results, while rows come
// in order and late, are deleted, expire, and move from buffers to parts to blocks, also in other processes.
// Both answers must be equal, bit for bit. A failure names the seed of its world.
func TestResults(t *testing.T) {
	seeds := []uint64{*resultSeed}
	if *resultSeed == 0 {
		seeds = seeds[:0]
		for range max(1, *resultWorlds/racetest.Fewer) {
			seeds = append(seeds, rand.Uint64())
		}
	}
	hits, asked := 0.0, 0
	for _, seed := range seeds {
		w := &resultWorld{r: rand.New(rand.NewPCG(seed, 0)), now: worldBegin, mem: vfs.NewCrashableMem()}
		err := w.live()
		hits, asked = hits+w.hits, asked+w.asked
		if err != nil {
			t.Fatalf("%v\nagain: go test ./internal/app -run TestResults -result-seed %d", err, seed)
		}
	}
	if *resultSeed == 0 && hits < float64(asked) {
		t.Errorf("%v extents were taken from kept results in %d queries: expected more of them", hits, asked)
	}
}

// resultWorld is an engine with kept results, and what happens to it.
type resultWorld struct {
	r    *rand.Rand
	now  int64
	mem  *vfs.MemFS
	o    EngineOptions
	e    *Engine
	logs *logql.Engine
	prom *shalepromql.Engine

	panels []panel
	truth  history // of the deletions that may be cancelled
	asked  int
	hits   float64
}

func (w *resultWorld) open() (err error) {
	b, err := bucketfs.New(w.mem, "/bucket")
	if err != nil {
		return err
	}
	w.o = EngineOptions{
		DataDir: crashDir, Node: "n", MemoryBytes: 256 << 20, Idle: true, Now: func() int64 { return w.now }, FS: w.mem, Bucket: b,
		Write: write.Limits{MaxFuture: 10 * time.Minute}, Retention: w.o.Retention, Registerer: prometheus.NewRegistry(),
		Results: results.Limits{
			Split: []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour}[w.r.IntN(3)], ClosedAfter: time.Duration(1+w.r.IntN(120)) * time.Second,
			TenantPercent: 50, MaxBytes: []int64{4 << 20, 1 << 20, 200 << 10}[w.r.IntN(3)],
		},
	}
	if w.r.IntN(3) == 0 {
		w.o.Retention = randomRules(w.r)
	}
	w.o.Windows.Window = []time.Duration{2 * time.Hour, 5 * time.Minute}[w.r.IntN(2)]
	if w.e, err = OpenEngine(context.Background(), w.o); err != nil {
		return err
	}
	w.logs = logql.New(logql.Options{Read: w.e.Querier(), Results: w.e.Results(), Now: func() time.Time { return time.Unix(0, w.now) }})
	w.prom, _ = shalepromql.Features("").Engine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60000 },
	})
	w.prom.SubqueryStep = time.Minute
	return nil
}

func (w *resultWorld) close() error {
	if w.e == nil {
		return nil
	}
	w.hits += resultCounter(w.o.Registerer.(*prometheus.Registry), "shale_cache_hits_total")
	e := w.e
	w.e = nil
	return e.Close()
}

// resultCounter returns the value of a metric of the tier.
func resultCounter(r *prometheus.Registry, name string) (n float64) {
	all, _ := r.Gather()
	for _, f := range all {
		for _, m := range f.Metric {
			if f.GetName() == name && m.Label[0].GetValue() == "result" {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func (w *resultWorld) live() (err error) {
	if err := w.open(); err != nil {
		return err
	}
	defer func() { _ = w.close() }()
	for range 5 {
		w.panels = append(w.panels, w.randomPanel())
	}
	// A few hours of rows, so that there is something to keep.
	for range 60 {
		w.now += int64(3 * time.Minute)
		if err := pushBatch(w.e.Path(), w.batch(w.now)); err != nil {
			return err
		}
	}
	for i := range 120 {
		w.now += w.r.Int64N(int64(40 * time.Second))
		if w.r.IntN(20) == 0 {
			w.now += w.r.Int64N(int64(30 * time.Minute))
		}
		at := w.now
		if w.r.IntN(8) == 0 {
			at -= w.r.Int64N(int64(6 * time.Hour))
		}
		if err := pushBatch(w.e.Path(), w.batch(at)); err != nil {
			return err
		}
		if w.r.IntN(2) == 0 {
			if err := w.happen(); err != nil {
				return fmt.Errorf("after push %d: %w", i, err)
			}
		}
		for range 3 {
			if err := w.ask(); err != nil {
				return fmt.Errorf("after push %d: %w", i, err)
			}
		}
	}
	return w.close()
}

// happen does one of the things that change rows, or must not.
func (w *resultWorld) happen() (err error) {
	switch w.r.IntN(24) {
	default:
		return nil
	case 0, 1, 2:
		err = w.e.Flush()
	case 3, 4:
		_, err = w.e.head.Work(context.Background())
	case 5, 6:
		err = w.e.Ship()
	case 7:
		err = w.e.Compact(context.Background())
	case 8:
		if err = w.close(); err == nil {
			err = w.open()
		}
	case 9:
		clone := w.mem.CrashClone(vfs.CrashCloneCfg{})
		err = w.close()
		if w.mem = clone; err == nil {
			err = w.open()
		}
	case 10, 11:
		err = w.truth.delete(w.e, w.r)
	case 12:
		err = w.truth.cancel(w.e, w.r)
	case 13:
		err = compactElsewhere(w.e)
	case 14:
		err = dropExpired(w.e)
	case 15:
		err = w.shipElsewhere()
	}
	return err
}

// shipElsewhere lets another process ship rows into the bucket.
func (w *resultWorld) shipElsewhere() error {
	o := w.o
	o.DataDir, o.Node, o.Registerer, o.Results = "/elsewhere", "other", nil, results.Limits{}
	if err := w.mem.MkdirAll(o.DataDir, 0o755); err != nil {
		return err
	}
	e, err := OpenEngine(context.Background(), o)
	if err != nil {
		return err
	}
	err = pushBatch(e.Path(), w.batch(w.now-w.r.Int64N(int64(3*time.Hour))))
	if err == nil {
		err = e.Ship()
	}
	if closed := e.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = w.e.catalog.Refresh(context.Background())
	}
	return err
}

// batch returns a push of rows around a time. Values are few bits long, so that sums do not depend on their
// order, which upstream does not keep everywhere.
func (w *resultWorld) batch(at int64) *worldtest.Batch {
	b := &worldtest.Batch{Tenant: fmt.Sprint("t", w.r.IntN(2)), Signal: []model.Signal{model.Metrics, model.Logs}[w.r.IntN(2)]}
	for range 1 + w.r.IntN(12) {
		i := w.r.IntN(16)
		s := worldtest.Series{Labels: model.LabelsOf("__name__", fmt.Sprint("m", i%4), "g", fmt.Sprint(i%3), "i", fmt.Sprint(i))}
		for range 1 + w.r.IntN(3) {
			t := at - w.r.Int64N(60)*int64(time.Second)
			switch {
			case b.Signal == model.Logs:
				text := fmt.Sprintf(`level=%s n=%d %s`, []string{"info", "warn"}[w.r.IntN(2)], w.r.IntN(50), []string{"needle", "started", "other"}[w.r.IntN(3)])
				for range 1 + w.r.IntN(4)/3 { // now and then twice
					s.Rows = append(s.Rows, worldtest.LineRow(t, &model.Line{Text: []byte(text)}))
				}
			case i == 3 && w.r.IntN(3) == 0:
				s.Rows = append(s.Rows, worldtest.HistogramRow(t, worldtest.Histogram(w.r)))
			case w.r.IntN(30) == 0:
				s.Rows = append(s.Rows, worldtest.Float(t, model.StaleNaN))
			default:
				s.Rows = append(s.Rows, worldtest.Float(t, math.Float64bits(float64(w.r.IntN(64))/8)))
			}
		}
		b.Series = append(b.Series, s)
	}
	return b
}

var resultQueries = map[model.Signal][]string{
	model.Metrics: {
		`sum(rate(m0[5m]))`, `sum by (g) (increase(m1[10m]))`, `avg by (i) (m2)`, `max(m0 offset 10m)`, `rate(m1[5m])`, `count by (g) (count_over_time(m2[1h]))`,
		`topk(2, sum by (i) (count_over_time(m1[5m])))`, `sum(count_over_time(m0[5m])) / sum(count_over_time(m1[5m]))`,
		`max_over_time(sum(count_over_time(m0[5m]))[30m:1m])`, `quantile_over_time(0.9, m1[15m])`, `last_over_time(m2[30m])`, `sum(max by (i) (m0))`,
		`count(m1 offset -5m)`, `absent(m1)`, `sum by (g) (rate(m3[10m]))`, `count(m3)`, `m0`, `sum(m0 @ start())`, `min(m2) + min(min_over_time(m2[5m] @ 1700003000))`,
		`label_replace(max by (g) (m0), "x", "$1", "g", "(.).*")`, `sum by (g) (count_over_time({i="4"}[5m]))`, `avg(rate(m1[2m])) > 0`, `quantile_over_time(2, m0[5m])`,
		`sum(count_over_time(m0[5m])) and on () (time() % 600 < 300)`, `timestamp(m1)`, `changes(m2[20m])`, `group by (g) (m2)`,
	},
	model.Logs: {
		`sum by (g) (count_over_time({i=~".+"}[5m]))`, `rate({g="1"} |= "needle" [1m])`, `sum(bytes_over_time({i=~".+"}[10m]))`, `topk(2, sum by (i) (rate({i=~".+"}[5m])))`,
		`sum by (level) (count_over_time({i=~".+"} | logfmt [5m]))`, `max by (g) (max_over_time({i=~".+"} | logfmt | unwrap n [10m]))`,
		`quantile_over_time(0.9, {g="0"} | logfmt | unwrap n [15m]) by (g)`, `absent_over_time({g="2"} |= "started" [1m])`, `stddev_over_time({g="0"} | logfmt | unwrap n [5m]) by (g) > 1e9`,
		`sum(count_over_time({g="1"}[5m] offset 10m)) / sum(count_over_time({g="0"}[5m]))`, `first_over_time({g="1"} | logfmt | unwrap n [10m]) by (i)`,
		`sum(sum_over_time({i=~".+"} | logfmt | unwrap n [5m])) by (level)`, `sum by (i) (count_over_time({i=~".+"} |= "nowhere" [5m]))`,
		// A series for each line is too large for the smaller memories, so that the aggregation is kept.
		`max by (level) (avg_over_time({i=~".+"} | logfmt | unwrap n [10m]))`, `sum by (g) (avg_over_time({i=~".+"} | logfmt | label_format x="{{.n}}" | unwrap n [30m]))`,
		`avg by (level) (rate({i=~".+"} | logfmt [20m])) > 0.01`, `topk(1, stddev by (g) (sum_over_time({i=~".+"} | logfmt | unwrap n [10m])))`,
		`avg_over_time({g="2"} | logfmt | unwrap level [5m]) by (g)`, `count_over_time({g="1"}[1h] offset -5m)`, `label_replace(rate({g="0"}[5m]), "x", "$1", "i", "(.).*")`,
	},
}

// panel is a query of a dashboard.
type panel struct {
	signal       model.Signal
	text, tenant string
	rg, step     time.Duration
	aligned      bool // its times are multiples of the step
}

func (w *resultWorld) randomPanel() panel {
	p := panel{signal: []model.Signal{model.Metrics, model.Logs}[w.r.IntN(2)], tenant: fmt.Sprint("t", w.r.IntN(2)), aligned: w.r.IntN(4) > 0}
	all := resultQueries[p.signal]
	p.text = all[w.r.IntN(len(all))]
	shapes := [][2]time.Duration{{time.Hour, 15 * time.Second}, {3 * time.Hour, time.Minute}, {6 * time.Hour, 5 * time.Minute}, {48 * time.Hour, time.Hour}, {time.Hour, 7 * time.Second}}
	shape := shapes[w.r.IntN(len(shapes))]
	p.rg, p.step = shape[0], shape[1]
	return p
}

// ask asks a query over a range that ends about now: mostly one of the dashboard.
func (w *resultWorld) ask() error {
	p := w.randomPanel()
	if i := w.r.IntN(6); i < len(w.panels) {
		p = w.panels[i]
	}
	if p.signal == model.Logs && w.r.IntN(3) == 0 {
		return w.askVolume(&p)
	}
	end := w.now
	if p.aligned {
		end -= end % int64(p.step)
	}
	if w.r.IntN(10) == 0 {
		end -= w.r.Int64N(60) * int64(p.step)
	}
	start := end - int64(p.rg)
	if w.r.IntN(4) == 0 {
		start += w.r.Int64N(int64(p.rg/p.step/2)) * int64(p.step)
	}
	steps := vector.Steps{Start: start, Step: int64(p.step), Count: int((end-start)/int64(p.step)) + 1}
	answer := func(fresh bool) string {
		if p.signal == model.Logs {
			return w.numbers(p.tenant, p.text, steps, fresh)
		}
		return w.promql(p.tenant, p.text, steps, fresh)
	}
	w.asked++
	kept, fresh := answer(false), answer(true)
	if kept != fresh {
		return fmt.Errorf("%s of %s at %+v:\n%s", p.text, p.tenant, steps, firstDifference(kept, fresh))
	}
	return nil
}

// volumeQueries are selectors and targets of volumes.
var volumeQueries = [][2]string{{`{i=~".+"}`, "g"}, {`{g="1"}`, ""}, {`{g="0"}`, "i"}, {`{i=~".+"}`, ""}}

// askVolume asks for volumes in the steps of a panel, over a range that slides by less than a step.
func (w *resultWorld) askVolume(p *panel) error {
	v := volumeQueries[w.r.IntN(len(volumeQueries))]
	sel, err := logql.ParseSelector(v[0])
	if err != nil {
		return err
	}
	q := logql.VolumeQuery{ByName: w.r.IntN(4) == 0, Limit: 1 + w.r.IntN(20)}
	q.Tenants, q.Selectors = []string{p.tenant}, []logql.Selector{sel}
	if w.r.IntN(4) == 0 {
		q.Tenants = []string{"t0", "t1"}
	}
	if v[1] != "" {
		q.Targets = []string{v[1]}
	}
	q.Range = model.TimeRange{Min: w.now - int64(p.rg), Max: w.now}
	for t := q.Range.Min - q.Range.Min%int64(p.step); t < w.now; t += int64(p.step) {
		if t > q.Range.Min {
			q.Cuts = append(q.Cuts, t)
		}
	}
	volumes := func(fresh bool) string {
		q := q
		q.Quota, q.Cost = &model.Quota{MaxBytes: 1 << 30}, &model.Cost{Fresh: fresh}
		groups, err := w.logs.VolumeBy(context.Background(), &q)
		if err != nil {
			return err.Error()
		}
		var b strings.Builder
		for _, g := range groups {
			b.WriteString(g.Name)
			for step := range g.Present.All() {
				fmt.Fprintf(&b, " %d:%v", step, g.Values[step])
			}
			b.WriteByte('\n')
		}
		return b.String()
	}
	w.asked++
	if kept, fresh := volumes(false), volumes(true); kept != fresh {
		return fmt.Errorf("volume of %v by %v of %v at %+v in steps of %v:\n%s", v[0], v[1], q.Tenants, q.Range, p.step, firstDifference(kept, fresh))
	}
	return nil
}

func firstDifference(kept, fresh string) string {
	a, b := strings.Split(kept, "\n"), strings.Split(fresh, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("line %d\n kept %.2000s\nfresh %.2000s", i, x, y)
		}
	}
	return ""
}

// numbers returns all of an answer to LogQL as text.
func (w *resultWorld) numbers(tenant, text string, steps vector.Steps, fresh bool) string {
	p, err := logql.Prepare(text)
	if err != nil {
		return err.Error()
	}
	n, err := w.logs.Numbers(context.Background(), &logql.MetricQuery{
		Tenants: []string{tenant}, Prepared: p, Steps: steps, Quota: &model.Quota{MaxBytes: 1 << 30}, Cost: &model.Cost{Fresh: fresh},
	})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprintln(&b, n.Kind, n.Warnings)
	for _, s := range n.Matrix.Series {
		b.WriteString(s.Labels.String())
		for step := range s.Present.All() {
			fmt.Fprintf(&b, " %d:%x", step, math.Float64bits(s.Values[step]))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// promql returns all of an answer to PromQL as text.
func (w *resultWorld) promql(tenant, text string, steps vector.Steps, fresh bool) string {
	store := &shalepromql.Queryable{
		Read: w.e.Querier(), Tenant: tenant, Quota: &model.Quota{MaxBytes: 1 << 30}, Cost: &model.Cost{Fresh: fresh}, Results: w.e.Results(),
	}
	ctx := context.Background()
	q, err := w.prom.NewRangeQuery(ctx, store, nil, text, time.Unix(0, steps.Start), time.Unix(0, steps.Time(steps.Count-1)), time.Duration(steps.Step))
	if err != nil {
		return err.Error()
	}
	defer q.Close()
	r := q.Exec(ctx)
	if r.Err != nil {
		return r.Err.Error()
	}
	var b strings.Builder
	warnings, infos := r.Warnings.AsStrings(text, 0, 0)
	slices.Sort(warnings)
	slices.Sort(infos)
	fmt.Fprintln(&b, warnings, infos)
	for _, s := range r.Value.(promql.Matrix) {
		b.WriteString(s.Metric.String())
		for _, p := range s.Floats {
			fmt.Fprintf(&b, " %d:%x", p.T, math.Float64bits(p.F))
		}
		for _, p := range s.Histograms {
			fmt.Fprintf(&b, " %d:%v", p.T, p.H)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

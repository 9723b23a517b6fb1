package app

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/write"
)

var (
	worldSeed = flag.Uint64("world-seed", 0, "the one world to try; 0: as many as -worlds says")
	worlds    = flag.Int("worlds", 12, "random worlds that are tried")
)

// TestWorlds pushes the same random batches into several engines that differ in everything that must not
// matter: memory, and the moments of flushes, merges, ships, compactions, restarts and power cuts. At the
// same points they must return the same results to the same queries, which a map computes. A failure names
// the seed of its world.
func TestWorlds(t *testing.T) {
	seeds := []uint64{*worldSeed}
	if *worldSeed == 0 {
		seeds = seeds[:0]
		for range *worlds {
			seeds = append(seeds, rand.Uint64())
		}
	}
	for _, seed := range seeds {
		w := newWorld(rand.New(rand.NewPCG(seed, 0)))
		for variant := range uint64(3) {
			if err := w.run(t, rand.New(rand.NewPCG(seed, variant+1))); err != nil {
				t.Fatalf("variant %d: %v\nagain: go test ./internal/app -run TestWorlds -world-seed %d", variant, err, seed)
			}
		}
	}
}

// row is one row of the world, with its value as text: kind and bits, or bytes.
type row struct {
	at, start int64
	kind      model.Kind
	value     string
}

// seriesID names a series of a tenant and signal, and a family of its rows.
type seriesID struct {
	tenant string
	signal model.Signal
	labels string
	family model.Family
}

// batch is one push: series with rows of both families, in the order of arrival.
type batch struct {
	tenant string
	signal model.Signal
	series []batchSeries
}

type batchSeries struct {
	labels model.Labels
	rows   map[model.Family][]row
}

// world is a list of pushes, and the time that passes before each.
type world struct {
	pushes []batch
	passes []time.Duration
}

const worldBegin = int64(1_700_000_000 * time.Second)

func newWorld(r *rand.Rand) *world {
	w := &world{}
	var labels []model.Labels
	for i := range 1 + r.IntN(40) {
		labels = append(labels, model.LabelsOf("__name__", fmt.Sprint("m", i%4), "i", fmt.Sprint(i)))
	}
	now := worldBegin
	for range 5 + r.IntN(60) {
		pass := time.Duration(r.Int64N(int64(20 * time.Minute)))
		if r.IntN(8) == 0 {
			pass = time.Duration(r.Int64N(int64(6 * time.Hour)))
		}
		now += int64(pass)
		w.passes = append(w.passes, pass)
		b := batch{tenant: fmt.Sprint("t", r.IntN(3)), signal: model.Metrics}
		if r.IntN(2) == 0 {
			b.signal = model.Logs
		}
		for range 1 + r.IntN(12) {
			s := batchSeries{labels: labels[r.IntN(len(labels))], rows: map[model.Family][]row{}}
			if b.signal == model.Logs {
				for range r.IntN(8) {
					s.rows[model.Text] = append(s.rows[model.Text], randomLine(r, now))
				}
				b.series = append(b.series, s)
				continue
			}
			for range r.IntN(6) {
				s.rows[model.Samples] = append(s.rows[model.Samples], randomSample(r, now))
			}
			for range max(0, r.IntN(5)-2) {
				s.rows[model.Exemplars] = append(s.rows[model.Exemplars], randomExemplar(r, now))
			}
			b.series = append(b.series, s)
		}
		w.pushes = append(w.pushes, b)
	}
	return w
}

// randomTime is mostly now, to the second so that times meet, sometimes late, and now and then ancient.
func randomTime(r *rand.Rand, now int64) int64 {
	at := now - r.Int64N(120)*int64(time.Second)
	switch r.IntN(20) {
	case 0:
		at -= r.Int64N(72) * int64(time.Hour)
	case 1:
		at = r.Int64N(100) * int64(time.Second)
	}
	return at - at%int64(time.Second)
}

func randomSample(r *rand.Rand, now int64) row {
	x := row{at: randomTime(r, now)}
	if r.IntN(4) == 0 {
		x.start = x.at - r.Int64N(1000)
	}
	if r.IntN(3) == 0 {
		x.kind, x.value = model.KindHistogram, string(model.AppendHistogram(nil, randomHistogram(r)))
		return x
	}
	special := []uint64{model.StaleNaN, 0x7ff8000000000001, 1 << 63, math.Float64bits(math.Inf(-1)), 0x7ff800000000beef}
	bits := math.Float64bits(float64(r.IntN(100)))
	switch r.IntN(4) {
	case 0:
		bits = special[r.IntN(len(special))]
	case 1:
		bits = math.Float64bits(r.NormFloat64())
	}
	x.value = string(floatValue(bits))
	return x
}

// floatValue writes the bits of a float as the text of a row.
func floatValue(bits uint64) []byte { return fmt.Appendf(nil, "%016x", bits) }

func randomHistogram(r *rand.Rand) *model.Histogram {
	h := &model.Histogram{Gauge: r.IntN(4) == 0, Float: r.IntN(2) == 0, Schema: int32(r.IntN(13) - 4), Sum: math.Float64bits(r.NormFloat64())}
	if r.IntN(8) == 0 {
		h.Sum = model.StaleNaN
		return h
	}
	number := func(n int) uint64 {
		if h.Float {
			return math.Float64bits(float64(n) + 0.5)
		}
		return uint64(n)
	}
	buckets := func() (spans []model.HistogramSpan, values []uint64) {
		for range r.IntN(3) {
			n := 1 + r.IntN(4)
			spans = append(spans, model.HistogramSpan{Offset: int32(r.IntN(5)), Length: uint32(n)})
			for range n {
				values = append(values, number(r.IntN(50)))
			}
		}
		return spans, values
	}
	h.Count, h.ZeroCount, h.ZeroThreshold = number(r.IntN(1000)), number(r.IntN(10)), math.Float64bits(0.001)
	h.PositiveSpans, h.Positive = buckets()
	if r.IntN(3) == 0 {
		h.NegativeSpans, h.Negative = buckets()
	}
	if r.IntN(4) == 0 {
		h.Schema, h.ZeroCount, h.ZeroThreshold, h.NegativeSpans, h.Negative = -53, number(0), 0, nil, nil
		if h.Float {
			h.ZeroCount = 0
		}
		for i := range len(h.Positive) {
			h.Custom = append(h.Custom, math.Float64bits(float64(i)))
		}
	}
	return h
}

func randomExemplar(r *rand.Rand, now int64) row {
	e := model.Exemplar{Value: math.Float64bits(float64(r.IntN(3))), Labels: model.LabelsOf("trace_id", fmt.Sprint(r.IntN(4)))}
	return row{at: randomTime(r, now), kind: model.KindExemplar, value: string(model.AppendExemplar(nil, &e))}
}

// randomLine is mostly one of a few, so that lines repeat. Some have the largest size, so that one series
// fills pages.
func randomLine(r *rand.Rand, now int64) row {
	l := model.Line{Text: fmt.Appendf(nil, "level=info msg=%q n=%d", []string{"started", "needle found", "stopped \x00\xff"}[r.IntN(3)], r.IntN(5))}
	switch r.IntN(12) {
	case 0:
		l.Text = nil
	case 1:
		noise := make([]byte, r.IntN(200_000))
		for i := range noise {
			noise[i] = byte('a' + r.IntN(16))
		}
		l.Text = append(l.Text, noise...)
	}
	if r.IntN(3) == 0 {
		l.Metadata = model.LabelsOf("trace_id", fmt.Sprint(r.IntN(100)), "level", []string{"", "info"}[r.IntN(2)])
	}
	return row{at: randomTime(r, now), kind: model.KindText, value: string(model.AppendLine(nil, &l))}
}

// answers is what must come back: per series the rows by the rule of their family.
type answers map[seriesID][]row

func (a answers) push(b *batch) {
	for _, s := range b.series {
		for f, rows := range s.rows {
			id := seriesID{b.tenant, b.signal, string(s.labels), f}
			for _, x := range rows {
				a[id] = add(a[id], x, f)
			}
		}
	}
}

func add(rows []row, x row, f model.Family) []row {
	stale := func(x row) bool {
		if x.kind == model.KindHistogram {
			var h model.Histogram
			return h.Parse([]byte(x.value)) == nil && h.Sum == model.StaleNaN
		}
		return x.value == string(floatValue(model.StaleNaN))
	}
	at, _ := slices.BinarySearchFunc(rows, x.at+1, func(r row, t int64) int { return cmp.Compare(r.at, t) })
	if f == model.Samples && at > 0 && rows[at-1].at == x.at {
		if !stale(x) || stale(rows[at-1]) {
			rows[at-1] = x
		}
		return rows
	}
	for i := at - 1; i >= 0 && rows[i].at == x.at; i-- {
		if rows[i].value == x.value {
			return rows
		}
	}
	return slices.Insert(rows, at, x)
}

// question is a request with the answer that it must get.
type question struct {
	tenant string
	signal model.Signal
	family model.Family
	name   string // "": all
	rg     model.TimeRange
	needle string // of lines: what they must contain, "": anything
}

func randomQuestion(r *rand.Rand, now int64) question {
	q := question{tenant: fmt.Sprint("t", r.IntN(3)), signal: model.Metrics, family: model.Samples, rg: model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}}
	switch r.IntN(6) {
	case 0, 1, 2:
		q.signal, q.family = model.Logs, model.Text
		q.needle = []string{"", "", "needle", "started", "nowhere"}[r.IntN(5)]
	case 3:
		q.family = model.Exemplars
	}
	if r.IntN(2) == 0 {
		q.name = fmt.Sprint("m", r.IntN(4))
	}
	if r.IntN(2) == 0 {
		q.rg.Min = now - r.Int64N(int64(80*time.Hour))
		q.rg.Max = q.rg.Min + r.Int64N(int64(10*time.Hour))
	}
	return q
}

func (a answers) to(q question) answers {
	want := answers{}
	for id, rows := range a {
		if id.tenant != q.tenant || id.signal != q.signal || id.family != q.family {
			continue
		}
		if q.name != "" && string(model.Labels(id.labels).Get("__name__")) != q.name {
			continue
		}
		for _, x := range rows {
			if q.rg.Contains(x.at) && (q.needle == "" || strings.Contains(x.value, q.needle)) {
				want[id] = append(want[id], x)
			}
		}
	}
	return want
}

// ask puts a question to the engine.
func ask(e *Engine, q question) (answers, error) {
	req := &model.Request{Tenant: q.tenant, Signal: q.signal, Family: q.family, Range: q.rg}
	if q.name != "" {
		req.Matchers = []model.Matcher{{Name: "__name__", Op: model.MatchEqual, Value: q.name, Match: func(v string) bool { return v == q.name }}}
	}
	if q.family == model.Text {
		return askText(e, q, req)
	}
	ctx := context.Background()
	set, err := e.Querier().Select(ctx, req)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	got := answers{}
	var rows model.Rows
	for set.Next(ctx) {
		rows.Reset()
		if err := set.AppendRows(ctx, &rows); err != nil {
			return nil, err
		}
		id := seriesID{q.tenant, q.signal, string(set.Labels()), q.family}
		for i, at := range rows.Times {
			x := row{at: at, start: rows.Start(i), kind: rows.Kind(i)}
			if x.kind == model.KindFloat {
				x.value = string(floatValue(rows.Values[i]))
			} else {
				x.value = string(rows.Blob(i))
			}
			got[id] = append(got[id], x)
		}
	}
	return got, set.Err()
}

// askText puts a question for lines, once without the lines, whose series must be among those with them.
func askText(e *Engine, q question, req *model.Request) (answers, error) {
	if q.needle != "" {
		req.TextFilter = &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: q.needle}}}}}
	}
	got, series := answers{}, map[string]bool{}
	err := eachLine(e, req, func(l model.Labels, read readtest.Line) {
		line := model.Line{Text: []byte(read.Text), Metadata: read.Metadata}
		x := row{at: read.Time, kind: model.KindText, value: string(model.AppendLine(nil, &line))}
		if series[string(l)] = true; q.needle == "" || strings.Contains(x.value, q.needle) {
			id := seriesID{q.tenant, q.signal, string(l), q.family}
			got[id] = append(got[id], x)
		}
	})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	set, err := e.Querier().Select(ctx, req)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	for set.Next(ctx) {
		delete(series, string(set.Labels()))
	}
	if len(series) > 0 {
		return nil, fmt.Errorf("%d series have lines and are not selected", len(series))
	}
	return got, errors.Join(set.Err(), set.Close())
}

func (a answers) differs(b answers) string {
	var out []string
	for id, want := range a {
		if got := b[id]; !slices.Equal(want, got) {
			out = append(out, fmt.Sprintf("%+v:\nwant %s\n got %s", id, written(want), written(got)))
		}
	}
	for id, got := range b {
		if len(a[id]) == 0 {
			out = append(out, fmt.Sprintf("%+v: should not be there: %s", id, written(got)))
		}
	}
	slices.Sort(out)
	return strings.Join(out[:min(len(out), 3)], "\n")
}

// run lives through the world with random settings and at random moments does what must not matter.
func (w *world) run(t *testing.T, r *rand.Rand) error {
	now := worldBegin
	mem := vfs.NewCrashableMem()
	o := EngineOptions{
		DataDir: crashDir, Node: "n", MemoryBytes: int64(16+r.IntN(3)*100) << 20, Idle: true, Now: func() int64 { return now },
		Write: write.Limits{MaxFuture: 10 * time.Minute},
	}
	open := func() (*Engine, error) {
		b, err := bucketfs.New(mem, "/bucket")
		if err != nil {
			return nil, err
		}
		o.FS, o.Bucket = mem, b
		o.Windows.Window = []time.Duration{2 * time.Hour, 5 * time.Minute, 24 * time.Hour}[r.IntN(3)]
		return OpenEngine(context.Background(), o)
	}
	e, err := open()
	if err != nil {
		return err
	}
	defer func() {
		if e != nil {
			_ = e.Close()
		}
	}()
	truth := answers{}
	for i := range w.pushes {
		now += int64(w.passes[i])
		if err := pushBatch(e.Path(), &w.pushes[i]); err != nil {
			return fmt.Errorf("push %d: %w", i, err)
		}
		truth.push(&w.pushes[i])
		for range r.IntN(3) {
			switch r.IntN(12) {
			case 0, 1, 2:
				err = e.Flush()
			case 3, 4:
				_, err = e.head.Work(context.Background())
			case 5:
				err = e.Ship()
			case 6:
				err = e.Compact(context.Background())
			case 7: // restart
				err, e = e.Close(), nil
				if err == nil {
					e, err = open()
				}
			case 8: // power cut
				clone := mem.CrashClone(vfs.CrashCloneCfg{})
				err, e = e.Close(), nil
				if mem = clone; err == nil {
					e, err = open()
				}
			}
			if err != nil {
				return fmt.Errorf("after push %d: %w", i, err)
			}
		}
		for range r.IntN(2) {
			if err := check(e, truth, randomQuestion(r, now)); err != nil {
				return fmt.Errorf("after push %d: %w", i, err)
			}
		}
	}
	for _, f := range model.Families() {
		for tenant := range 3 {
			q := question{tenant: fmt.Sprint("t", tenant), signal: model.Metrics, family: f, rg: everything}
			if f == model.Text {
				q.signal = model.Logs
			}
			if err := check(e, truth, q); err != nil {
				return fmt.Errorf("at the end: %w", err)
			}
		}
	}
	last := e
	e = nil
	if err := last.Close(); err != nil {
		return err
	}
	checkFolder(t, mem)
	return nil
}

// written shows rows, long values by their beginning and length.
func written(rows []row) string {
	var out []string
	for _, x := range rows {
		out = append(out, fmt.Sprintf("{%d %d %d %.60q of %d}", x.at, x.start, x.kind, x.value, len(x.value)))
	}
	return strings.Join(out, " ")
}

func check(e *Engine, truth answers, q question) error {
	got, err := ask(e, q)
	if err != nil {
		return err
	}
	if d := truth.to(q).differs(got); d != "" {
		return fmt.Errorf("%+v:\n%s", q, d)
	}
	return nil
}

// BuildLabels makes a batch the source of its labels.
func (b *batch) BuildLabels(i int, lb *model.LabelsBuilder) {
	for n, v, rest, ok := b.series[i].labels.Next(); ok; n, v, rest, ok = rest.Next() {
		lb.Add(n, v)
	}
}

func pushBatch(p *write.Path, in *batch) error {
	b := p.Batch(in.tenant, in.signal)
	defer p.Recycle(b)
	b.Source = in
	for _, s := range in.series {
		for f, rows := range s.rows {
			for _, x := range rows {
				if x.kind != model.KindFloat {
					b.Columns(f).AppendBlob(x.at, x.kind, []byte(x.value), x.start)
					continue
				}
				var bits uint64
				if _, err := fmt.Sscanf(x.value, "%x", &bits); err != nil {
					return err
				}
				b.Columns(f).Append(x.at, bits, x.start)
			}
		}
		b.EndSeries(s.labels.Key(p.Seed(), in.signal))
	}
	res, err := p.Push(context.Background(), b)
	if err == nil && len(res.Rejected) > 0 {
		err = fmt.Errorf("rejected: %v", res.Rejected)
	}
	return err
}

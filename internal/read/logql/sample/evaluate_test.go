package sample

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/selection"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/read/readtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is lines in several sources.
type world struct{ *readtest.World }

const (
	tenant = "t"
	ms     = 1e6
)

func drawWorld(t *rapid.T) *world {
	var streams []model.Labels
	for i := range rapid.IntRange(1, 4).Draw(t, "streams") {
		streams = append(streams, model.LabelsOf("s", fmt.Sprint(i), "app", fmt.Sprint(i%2)))
	}
	w := readtest.NewWorld(streams...)
	w.Fill(t, tenant, 3, 40, func(t *rapid.T) readtest.Line {
		x := readtest.Line{
			Time: rapid.Int64Range(0, 100).Draw(t, "at") * ms,
			Text: rapid.SampledFrom([]string{"n=1", "n=2.5 k=a", "n=-3 k=b", "k=a", "n=7s", "", "n=1e3 k=a x"}).Draw(t, "line"),
		}
		if rapid.IntRange(0, 3).Draw(t, "has metadata") == 0 {
			x.Metadata = model.LabelsOf(rapid.SampledFrom([]string{"m", "k", "app"}).Draw(t, "name"), rapid.StringMatching("[xy]").Draw(t, "metadata"))
		}
		return x
	})
	return &world{w}
}

func (w *world) execution(p *Program, tenants []string) *selection.Execution {
	var sources []read.Source
	for _, s := range w.Sources {
		sources = append(sources, s)
	}
	plan := selection.Plan{
		Read: read.New(read.Options{Sources: sources}), Program: p.Selection(), Workers: 3,
		Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 40}}, Cost: &model.Cost{},
	}
	for i, t := range tenants {
		plan.Requests = append(plan.Requests, model.Request{
			Tenant: t, Signal: model.Logs, Family: model.Text, Matchers: syntax.Models(p.expr.Range.Query.Matchers),
			TextFilter: p.Selection().TextFilter, Quota: plan.Quota, Cost: plan.Cost,
		})
		plan.Tenants = append(plan.Tenants, int32(i))
	}
	return selection.New(plan)
}

var selectors = []string{
	`{app=~".+"}`, `{app="1"}`, `{app=~".+"} |= "k"`, `{app=~".+"} |= "k" != "b"`, `{app=~".+"} | logfmt`, `{app=~".+"} | logfmt | k="a"`,
	`{app=~".+"} | drop m`, `{app=~".+"} | m="x"`, `{app=~".+"} |= "n" | logfmt k`,
}

var unwraps = []string{`| logfmt | unwrap n | __error__=""`, `| logfmt | unwrap duration(n) | __error__=""`, `| logfmt | unwrap n`}

// drawText returns the text of a range aggregation.
func drawText(t *rapid.T, width, offset int64) string {
	rng := fmt.Sprintf("[%dms]", width)
	if offset != 0 {
		rng += fmt.Sprintf(" offset %dms", offset)
	}
	selector := rapid.SampledFrom(selectors).Draw(t, "selector")
	if rapid.Bool().Draw(t, "counts") {
		op := rapid.SampledFrom([]string{"count_over_time", "rate", "bytes_over_time", "bytes_rate"}).Draw(t, "op")
		return op + "(" + selector + rng + ")"
	}
	op := rapid.SampledFrom([]string{"sum_over_time", "rate", "avg_over_time", "min_over_time", "first_over_time", "last_over_time",
		"quantile_over_time", "rate_counter", "stddev_over_time"}).Draw(t, "op")
	text := op + "("
	if op == "quantile_over_time" {
		text += "0.5, "
	}
	text += selector + rapid.SampledFrom(unwraps).Draw(t, "unwrap") + rng + ")"
	switch op {
	case "avg_over_time", "min_over_time", "first_over_time", "last_over_time", "quantile_over_time", "stddev_over_time":
		text += rapid.SampledFrom([]string{"", " by (k)", " without (s, m)", " by ()"}).Draw(t, "grouping")
	}
	return text
}

// taken is what the naive evaluator knows of a line.
type taken struct {
	time   int64
	order  int
	labels string
	value  float64
	failed bool
}

func (w *world) samples(t *rapid.T, p *Program) []taken {
	var out []taken
	for _, l := range w.Streams {
		matches := true
		for _, m := range p.expr.Range.Query.Matchers {
			matches = matches && m.Match(string(l.Get(m.Name)))
		}
		if !matches {
			continue
		}
		for _, x := range w.Lines[string(l)] {
			if f := p.pipeline.Filter(); f != nil {
				rows := model.TextRows{Times: []int64{0}, Bytes: []byte(x.Text), Ends: []uint32{uint32(len(x.Text))}}
				f.Bind(context.Background())
				if len(f.Select(nil, &rows, 0, 1)) == 0 {
					continue
				}
			}
			r := p.pipeline.Runner()
			r.SetStream(l)
			var s line.Sample
			ok, err := r.Sample(x.Time, []byte(x.Text), x.Metadata, &s)
			if err != nil {
				t.Fatal(err)
			}
			v := s.Value
			switch {
			case p.bytes:
				v = float64(s.Bytes)
			case p.expr.Range.Unwrap == nil:
				v = 1
			}
			if ok {
				out = append(out, taken{x.Time, len(out), string(s.Labels), v, s.Failed})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b taken) int { return cmp.Compare(a.time, b.time) })
	return out
}

func naiveValue(e *syntax.RangeAggregation, in []taken) float64 {
	v, sum := make([]float64, len(in)), 0.0
	for i := range in {
		v[i] = in[i].value
		sum += v[i]
	}
	switch e.Op {
	case syntax.AvgOverTime:
		return sum / float64(len(v))
	case syntax.MinOverTime:
		return slices.Min(v)
	case syntax.FirstOverTime:
		return v[0]
	case syntax.LastOverTime:
		return v[len(v)-1]
	case syntax.QuantileOverTime:
		slices.Sort(v)
		return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	case syntax.Rate, syntax.BytesRate:
		return sum / e.Range.Range.Seconds()
	case syntax.StddevOverTime:
		squares := 0.0
		for _, x := range v {
			squares += (x - sum/float64(len(v))) * (x - sum/float64(len(v)))
		}
		return math.Sqrt(squares / float64(len(v)))
	}
	return sum
}

// naive returns each value of the result by step and labels, or the text of an error.
func naive(p *Program, steps vector.Steps, all []taken) (map[string]float64, string) {
	out := make(map[string]float64)
	e := p.expr.Range
	for i := range steps.Count {
		end := steps.Time(i) - int64(e.Offset)
		by := make(map[string][]taken)
		var failed []model.Labels
		for _, s := range all {
			if s.time <= end-int64(e.Range) || s.time > end {
				continue
			}
			if s.failed {
				failed = append(failed, model.Labels(s.labels))
			}
			by[s.labels] = append(by[s.labels], s)
		}
		if len(failed) > 0 {
			return nil, (&pipelineError{slices.MinFunc(failed, vector.CompareLabels)}).Error()
		}
		for labels, in := range by {
			out[fmt.Sprint(i, model.Labels(labels))] = naiveValue(p.expr, in)
		}
	}
	return out, ""
}

// TestEvaluate compares with an evaluator that looks at all lines of each window. Nothing stays open or
// charged but the result.
func TestEvaluate(t *testing.T) { rapid.Check(t, checkEvaluate) }

func checkEvaluate(t *rapid.T) {
	w := drawWorld(t)
	for range 3 {
		steps := vector.Steps{
			Start: rapid.Int64Range(-20, 110).Draw(t, "start") * ms, Step: rapid.Int64Range(1, 40).Draw(t, "step") * ms,
			Count: rapid.IntRange(1, 20).Draw(t, "count"),
		}
		text := drawText(t, rapid.Int64Range(1, 50).Draw(t, "width"), rapid.Int64Range(-10, 10).Draw(t, "offset"))
		expr, err := syntax.Parse(text)
		if err != nil {
			t.Fatal(text, err)
		}
		e := expr.(*syntax.RangeAggregation)
		var outer *syntax.Grouping
		if rapid.Bool().Draw(t, "below a sum") {
			outer = &syntax.Grouping{Labels: rapid.SampledFrom([][]string{{"app"}, {"s"}, {"k", "app"}, {"m"}, nil}).Draw(t, "by")}
		}
		p, err := Compile(e, outer)
		if err != nil {
			t.Fatal(text, err)
		}
		x := w.execution(p, []string{tenant})
		x.MergeBytes = rapid.SampledFrom([]int64{1, 20, x.MergeBytes}).Draw(t, "bytes to merge")
		x.PortionBytes = rapid.SampledFrom([]int64{1, 1000, x.PortionBytes}).Draw(t, "bytes of a portion")
		m, err := p.Evaluate(context.Background(), x, steps, []string{tenant}, nil)
		want, failure := naive(p, steps, w.samples(t, p))
		switch {
		case failure != "":
			if err == nil || err.Error() != failure {
				t.Fatalf("%s: error %v, should be %s", text, err, failure)
			}
			m = &vector.Matrix{}
		case err != nil:
			t.Fatalf("%s: %v", text, err)
		case e.Op != syntax.RateCounter: // compared in package window
			if diff := difference(m, want); diff != "" {
				t.Fatalf("%s (sum by %v, %+v): %s", text, outer, steps, diff)
			}
		}
		if err == nil && e.Op != syntax.StddevOverTime {
			checkTop(t, w, p, m)
		}
		for _, s := range w.Sources {
			if s.Open() != 0 {
				t.Fatal("a cursor is open")
			}
		}
		if used := x.Quota.Charged().Bytes(); used != m.Size() {
			t.Fatalf("%s: %d bytes are charged for a result of %d", text, used, m.Size())
		}
	}
}

// checkTop compares the first series of an evaluation with those of its matrix.
func checkTop(t *rapid.T, w *world, p *Program, m *vector.Matrix) {
	e := &syntax.VectorAggregation{Op: syntax.TopK, K: rapid.IntRange(1, 4).Draw(t, "k")}
	x := w.execution(p, []string{tenant})
	top := vector.NewTop(x.Quota, e, m.Steps)
	rest, err := p.Evaluate(context.Background(), x, m.Steps, []string{tenant}, top)
	if err != nil {
		t.Fatal(err)
	}
	if rest != nil { // series still have labels that a sum leaves out
		if diff := difference(rest, values(m)); diff != "" {
			t.Fatal(diff)
		}
		return
	}
	if p.outer != nil {
		if m, err = vector.Aggregate(context.Background(), new(model.Quota), &syntax.VectorAggregation{Op: syntax.Sum, Grouping: *p.outer}, m); err != nil {
			t.Fatal(err)
		}
	}
	want, err := vector.Aggregate(context.Background(), new(model.Quota), e, m)
	if err != nil {
		t.Fatal(err)
	}
	want.SortByLabels()
	got := top.Matrix()
	got.SortByLabels()
	if diff := difference(got, values(want)); diff != "" {
		t.Fatalf("first %d series: %s", e.K, diff)
	}
}

// values returns the values of a matrix by step and labels.
func values(m *vector.Matrix) map[string]float64 {
	out := map[string]float64{}
	for _, s := range m.Series {
		for step := range s.Present.All() {
			out[fmt.Sprint(step, s.Labels)] = s.Values[step]
		}
	}
	return out
}

func difference(m *vector.Matrix, want map[string]float64) string {
	n := 0
	for i := range m.Series {
		s := &m.Series[i]
		if i > 0 && vector.CompareLabels(m.Series[i-1].Labels, s.Labels) >= 0 {
			return "series are out of order"
		}
		for step, v := range s.Values {
			if !s.Present.Has(step) {
				continue
			}
			n++
			key := fmt.Sprint(step, s.Labels)
			if o, ok := want[key]; !ok || math.Abs(o-v) > 1e-12*max(math.Abs(o), math.Abs(v), 1) {
				return fmt.Sprintf("%s: %v, should be %v (%v)", key, v, o, ok)
			}
		}
	}
	if n != len(want) {
		return fmt.Sprintf("%d values, should be %d", n, len(want))
	}
	return ""
}

func compiled(t testing.TB, text string) *Program {
	t.Helper()
	expr, err := syntax.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(expr.(*syntax.RangeAggregation), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// someLines returns a world with one stream of lines at 0, 1, 2 ms and so on.
func someLines(texts ...string) *world {
	w := &world{&readtest.World{Sources: []*readtest.Memory{readtest.NewMemory(1)}}}
	l := model.LabelsOf("app", "x")
	for i, text := range texts {
		w.Sources[0].AddText(tenant, l.Key(1, model.Logs), l, readtest.Line{Time: int64(i) * ms, Text: text})
	}
	return w
}

// TestStatistics: what chunks know of their lines is not read.
func TestStatistics(t *testing.T) {
	w := someLines(strings.Split("abcdefgh", "")...)
	w.Sources[0].SetTextPage(1, 1)
	for text, pages := range map[string]int64{
		`count_over_time({app="x"}[4ms]) `: 8, // their metadata may be part of labels
		`absent_over_time({app="x"}[4ms])`: 0,
	} {
		before := w.Sources[0].TextReads().Pages.Load()
		p := compiled(t, text)
		if _, err := p.Evaluate(context.Background(), w.execution(p, []string{tenant}), vector.Steps{Start: 3 * ms, Step: 4 * ms, Count: 2}, []string{tenant}, nil); err != nil {
			t.Fatal(err)
		}
		if got := w.Sources[0].TextReads().Pages.Load() - before; got != pages {
			t.Errorf("%s: %d pages read, should be %d", text, got, pages)
		}
	}
	for text, by := range map[string][]string{
		`bytes_over_time({app="x"}[4ms])`: {"app"}, `bytes_over_time({app="x"} | json [4ms])`: nil, `bytes_over_time({app="x"} | logfmt --strict | json [4ms])`: nil,
	} {
		p, err := Compile(compiled(t, text).expr, &syntax.Grouping{Labels: by})
		if err != nil {
			t.Fatal(err)
		}
		before := w.Sources[0].TextReads().Pages.Load()
		m, err := p.Evaluate(context.Background(), w.execution(p, []string{tenant}), vector.Steps{Start: 3 * ms, Step: 4 * ms, Count: 2}, []string{tenant}, nil)
		if err != nil || len(m.Series) != 1 || m.Series[0].Values[1] != 4 {
			t.Fatalf("%s: %v %+v", text, err, m)
		}
		if got := w.Sources[0].TextReads().Pages.Load() - before; got != 0 {
			t.Errorf("%s by %v: %d pages read", text, by, got)
		}
	}
}

// TestGaps: where windows leave gaps, lines there are not looked at, and pages of them alone are not read.
func TestGaps(t *testing.T) {
	var many strings.Builder
	for i := range 2 * line.MaxLabels {
		fmt.Fprintf(&many, "k%d=1 ", i)
	}
	w := someLines("a=1", many.String(), "a=1")
	p := compiled(t, `count_over_time({app="x"} | logfmt [1ms])`)
	x := w.execution(p, []string{tenant})
	m, err := p.Evaluate(context.Background(), x, vector.Steps{Start: 0, Step: 2 * ms, Count: 2}, []string{tenant}, nil)
	if err != nil || len(m.Series) != 1 || m.Series[0].Present.Len() != 2 || x.Figures().Passed != 2 {
		t.Errorf("a line in a gap: %v, %+v, %d lines pass", err, m, x.Figures().Passed)
	}
	w = &world{&readtest.World{Sources: []*readtest.Memory{readtest.NewMemory(1)}}}
	w.Sources[0].SetTextPage(20, 1)
	l := model.LabelsOf("app", "x")
	var lines []readtest.Line
	for i := range 2000 {
		lines = append(lines, readtest.Line{Time: int64(i) * ms, Text: "a=1"})
	}
	w.Sources[0].AddText(tenant, l.Key(1, model.Logs), l, lines...)
	for _, text := range []string{
		`count_over_time({app="x"} [1ms])`, `count_over_time({app="x"} |= "a" [1ms])`, `count_over_time({app="x"} | logfmt | a="1" [1ms])`,
	} {
		p := compiled(t, text)
		x := w.execution(p, []string{tenant})
		m, err := p.Evaluate(context.Background(), x, vector.Steps{Start: 0, Step: 1000 * ms, Count: 2}, []string{tenant}, nil)
		if err != nil || len(m.Series) != 1 || !slices.Equal(m.Series[0].Values, []float64{1, 1}) {
			t.Fatalf("%s: %v, %+v", text, err, m)
		}
		if f := x.Figures(); f.PagesRead != 2 {
			t.Errorf("%s: %d pages are read, should be 2", text, f.PagesRead)
		}
	}
}

// TestMetadataHidesALabel of the stream: lines count under the same labels, whether stages look at them or
// not.
func TestMetadataHidesALabel(t *testing.T) {
	w := &world{&readtest.World{Sources: []*readtest.Memory{readtest.NewMemory(1)}}}
	l := model.LabelsOf("app", "x", "foo", "1", "foo_extracted", "2")
	w.Sources[0].AddText(tenant, l.Key(1, model.Logs), l, readtest.Line{Text: "a", Metadata: model.LabelsOf("foo", "3")})
	for _, text := range []string{`count_over_time({app="x"}[5s])`, `count_over_time({app="x"} | drop zz [5s])`} {
		p, err := Compile(compiled(t, text).expr, &syntax.Grouping{Labels: []string{"foo_extracted"}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Evaluate(context.Background(), w.execution(p, []string{tenant}), vector.Steps{Start: ms, Count: 1}, []string{tenant}, nil)
		if err != nil || len(m.Series) != 1 || m.Series[0].Labels.String() != `{foo_extracted="3"}` {
			t.Errorf("%s: %v, %+v", text, err, m)
		}
	}
}

// TestErrors: which lines end an evaluation, and with what.
func TestErrors(t *testing.T) {
	w := someLines(`{"a":1}`, `{"a":`, `{"a":2}`)
	steps := vector.Steps{Start: 0, Step: ms, Count: 3}
	for _, c := range []struct {
		text  string
		by    []string
		error string
	}{
		{`count_over_time({app="x"} | json [1ms])`, nil, "pipeline error: 'JSONParserErr' for series: '{__error__=\"JSONParserErr\", __error_details__="},
		{`count_over_time({app="x"} | json | __error__="" [1ms])`, nil, ""},
		{`count_over_time({app="x"} | json [1ms])`, []string{}, ""}, // nothing is parsed
		{`count_over_time({app="x"} | json | __error__="JSONParserErr" [1ms])`, []string{"a"}, ""},
		{`count_over_time({app="x"} | json | __error__!="" [1ms])`, nil, "pipeline error"},
		{`sum_over_time({app="x"} | json | unwrap app [1ms])`, nil, "pipeline error: 'SampleExtractionErr'"},
		{`sum_over_time({app="x"} | json | unwrap app | __error__="" [1ms])`, nil, ""},
		{`count_over_time({app="x"} | json [1ms] offset 5ms)`, nil, ""},
	} {
		p := compiled(t, c.text)
		if c.by != nil {
			var err error
			if p, err = Compile(p.expr, &syntax.Grouping{Labels: c.by}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := p.Evaluate(context.Background(), w.execution(p, []string{tenant}), steps, []string{tenant}, nil)
		switch {
		case c.error == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.error != "" && (err == nil || !strings.HasPrefix(err.Error(), c.error)):
			t.Errorf("%s: %v, should be %s", c.text, err, c.error)
		}
	}
}

// TestTenants: labels say whose lines were counted.
func TestTenants(t *testing.T) {
	w := someLines("a", "b")
	l := model.LabelsOf("app", "x", tenantLabel, "own")
	w.Sources[0].AddText("u", l.Key(1, model.Logs), l, readtest.Line{Time: ms, Text: "c"})
	p := compiled(t, `count_over_time({app="x"}[5ms])`)
	both := []string{tenant, "u"}
	m, err := p.Evaluate(context.Background(), w.execution(p, both), vector.Steps{Start: 2 * ms, Count: 1}, both, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range m.Series {
		got = append(got, fmt.Sprint(s.Labels, s.Values))
	}
	want := []string{`{__tenant_id__="t", app="x"} [2]`, `{__tenant_id__="u", app="x", original___tenant_id__="own"} [1]`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, should be %q", got, want)
	}
}

// TestAbsent gives the labels that the selector is sure of, where there is no line.
func TestAbsent(t *testing.T) {
	w := someLines("a")
	p := compiled(t, `absent_over_time({app="x", a=~"b|", c="d", c!="e"}[2ms])`)
	m, err := p.Evaluate(context.Background(), w.execution(p, []string{tenant}), vector.Steps{Start: 0, Step: ms, Count: 4}, []string{tenant}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Series) != 1 || m.Series[0].Labels.String() != `{app="x"}` || m.Series[0].Present.Len() != 4 {
		t.Errorf("%+v", m)
	}
	p = compiled(t, `absent_over_time({app="x"}[2ms])`)
	m, err = p.Evaluate(context.Background(), w.execution(p, []string{tenant}), vector.Steps{Start: 0, Step: ms, Count: 4}, []string{tenant}, nil)
	if err != nil || len(m.Series) != 1 || m.Series[0].Present.Len() != 2 || !m.Series[0].Present.Has(2) {
		t.Errorf("%v %+v", err, m)
	}
}

// TestMemory: a query whose series do not fit its memory ends with an error that names the setting.
func TestMemory(t *testing.T) {
	var texts []string
	for i := range 3000 {
		texts = append(texts, fmt.Sprintf("id=%d", i))
	}
	w := someLines(texts...)
	p := compiled(t, `count_over_time({app="x"} | logfmt [5s])`)
	x := w.execution(p, []string{tenant})
	x.Quota.MaxBytes = 600 << 10
	_, err := p.Evaluate(context.Background(), x, vector.Steps{Start: 3000 * ms, Step: ms, Count: 100}, []string{tenant}, nil)
	if err == nil || !strings.Contains(err.Error(), "query.max-bytes") {
		t.Error(err)
	}
	if used := x.Quota.Charged().Bytes(); used != 0 {
		t.Errorf("%d bytes stay charged", used)
	}
}

// TestResultIsCharged: in the end exactly the result is charged, whichever workers have found its series,
// even if the query's memory has no room for anything else.
func TestResultIsCharged(t *testing.T) {
	p := compiled(t, `count_over_time({app="x"} | logfmt [5s])`)
	run := func(limit int64) (used, size int64) {
		q := &model.Quota{MaxBytes: limit}
		e := newEvaluation(p, q, vector.Steps{Start: 1000 * ms, Step: ms, Count: 1000}, nil)
		for worker := range 3 {
			w := e.NewWorker()
			w.Bind(context.Background(), func(int64) error { return nil })
			w.SetStream(0, model.LabelsOf("app", "x"))
			for i := range 300 {
				text := fmt.Appendf(nil, "id=%d", 250*worker+i) // some are known to two workers
				if _, err := w.Line(&selection.Line{Time: 5 * ms, Text: text}); err != nil {
					t.Fatal(err)
				}
			}
		}
		all, err := e.join(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		m, err := e.matrix(context.Background(), all, 3)
		if err != nil {
			t.Fatal(err)
		}
		e.release()
		if len(m.Series) != 800 {
			t.Fatalf("%d series, should be 800", len(m.Series))
		}
		return q.Charged().Bytes(), m.Size()
	}
	_, size := run(0)
	for _, limit := range []int64{0, size + 10*grain} { // workers keep some grains
		if used, size := run(limit); used != size {
			t.Errorf("limit %d: %d bytes are charged for a result of %d", limit, used, size)
		}
	}
}

// TestLineAllocatesNothing for a line of a known series.
func TestLineAllocatesNothing(t *testing.T) {
	for _, text := range []string{
		`count_over_time({app="x"} | logfmt [1m])`, `sum_over_time({app="x"} | logfmt | unwrap n [1m])`, `bytes_over_time({app="x"} | json [1m])`,
	} {
		p := compiled(t, text)
		x := w1(p)
		l := selection.Line{Time: 5, Text: []byte(`n=1.5 k=a`)}
		if n := testing.AllocsPerRun(100, func() {
			if _, err := x.Line(&l); err != nil {
				t.Fatal(err)
			}
		}); n > 0 && !strings.Contains(text, "json") { // an error has a text
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

// TestSetsOfAChunk: the labels of each set of metadata are made once for a chunk, however many calls its rows
// come in, and a row of chunks that are merged does not touch those of all sets.
func TestSetsOfAChunk(t *testing.T) {
	p := compiled(t, `count_over_time({app="x"}[5s])`)
	p, err := Compile(p.expr, &syntax.Grouping{Labels: []string{"level"}})
	if err != nil {
		t.Fatal(err)
	}
	w := w1(p).(*worker)
	rows := func(levels ...string) *model.TextRows {
		r := &model.TextRows{}
		for i, l := range levels {
			r.Times, r.Ends = append(r.Times, 5), append(r.Ends, 0)
			r.Metadata, r.MetadataOf = append(r.Metadata, model.LabelsOf("level", l)), append(r.MetadataOf, uint32(i+1))
		}
		return r
	}
	count := func(level string) (n float64) {
		if l := model.LabelsOf("level", level); w.table.find(w.hashOf(l), l) != nil {
			s := w.table.find(w.hashOf(l), l)
			s.window.Values(func(_ int, v float64) { n = v })
		}
		return n
	}
	first, second := rows("info", "warn"), rows("warn", "error", "info")
	for i := range 3 {
		for _, r := range []*model.TextRows{first, second} {
			if err := w.Row(r, r, i%2); err != nil {
				t.Fatal(err)
			}
		}
	}
	if count("info") != 2 || count("warn") != 3 || count("error") != 1 || len(w.sets) != 0 {
		t.Errorf("rows by themselves: %v, %v, %v, with %d sets", count("info"), count("warn"), count("error"), len(w.sets))
	}
	w.NextChunk()
	for range 2 {
		if err := w.Picked(second, second, []int32{0, 1}); err != nil {
			t.Fatal(err)
		}
		if !w.sets[1].known || !w.sets[2].known || w.sets[3].known {
			t.Errorf("known sets: %+v", w.sets)
		}
		w.sets[1].series = w.sets[2].series // shows that it is used again
	}
	if count("warn") != 4 || count("error") != 4 {
		t.Errorf("rows of a chunk: %v, %v", count("warn"), count("error"))
	}
	w.NextChunk()
	if err := w.Rows(first, first, 0, 2); err != nil {
		t.Fatal(err)
	}
	if count("info") != 3 || count("warn") != 5 {
		t.Errorf("rows of the next chunk: %v, %v", count("info"), count("warn"))
	}
}

// w1 returns a worker of an evaluation.
func w1(p *Program) selection.Worker {
	e := newEvaluation(p, new(model.Quota), vector.Steps{Count: 1, Start: 10}, nil)
	w := e.NewWorker()
	w.Bind(context.Background(), func(int64) error { return nil })
	w.SetStream(0, model.LabelsOf("app", "x"))
	return w
}

// TestEarliestFailure: streams that share a page are scanned in the order of their keys. A stream that begins
// after a failed line is left out, and the one after it, which fails earlier, is not.
func TestEarliestFailure(t *testing.T) {
	streams := make([]model.Labels, 3)
	for i := range streams {
		streams[i] = model.LabelsOf("s", fmt.Sprint(i))
	}
	slices.SortFunc(streams, func(a, b model.Labels) int { return a.Key(1, model.Logs).Compare(b.Key(1, model.Logs)) })
	m := readtest.NewMemory(1)
	m.SetTextPage(1, len(streams))
	for i, x := range []readtest.Line{{Time: 50 * ms, Text: "n=a"}, {Time: 90 * ms, Text: "n=1"}, {Time: 10 * ms, Text: "n=b"}} {
		m.AddText(tenant, streams[i].Key(1, model.Logs), streams[i], x)
	}
	p := compiled(t, `sum_over_time({s=~".+"} | logfmt | unwrap n [10ms])`)
	x := (&world{&readtest.World{Sources: []*readtest.Memory{m}}}).execution(p, []string{tenant})
	_, err := p.Evaluate(context.Background(), x, vector.Steps{Start: 10 * ms, Step: 10 * ms, Count: 10}, []string{tenant}, nil)
	if want := fmt.Sprintf("s=%q", streams[2].Get("s")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, should be of %s", err, want)
	}
}

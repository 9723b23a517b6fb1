package pipeline

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/write/graphite/aggregate"
)

var (
	casesFile   = flag.String("cases", "testdata/cases.jsonl", "cases of test/carbon-oracle/python/aggregation_cases.py")
	answersFile = flag.String("answers", "testdata/carbon.jsonl", "what test/carbon-oracle/python/aggregator.py says of them")
)

// question is a case: points that arrive at times, and what rules there are.
type question struct {
	Aggregation, Rewrite string
	Forward              bool
	Intervals            int64
	WriteBack            *int64
	Points               []point
	Until                int64
}

// point is a point, and the second in which it comes in or goes out.
type point struct {
	Now   int64
	Path  string
	Time  int64
	Value float64
}

func (p *point) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&p.Now, &p.Path, &p.Time, &p.Value})
}

// recorder is a sink that keeps what goes out.
type recorder struct {
	now int64 // Unix seconds
	out []point
}

func (r *recorder) Store(_ context.Context, _ string, paths []string, times []int64, values []float64) error {
	for i := range paths {
		r.out = append(r.out, point{r.now, paths[i], times[i], values[i]})
	}
	return nil
}

// run has the points of a case go through a pipeline. Where restart is set, everything is opened again
// after each of so many points, as after a kill.
func (q *question) run(t *testing.T, restart int) []point {
	r := &recorder{now: q.Points[0].Now}
	settings := files(t, "", "", q.Rewrite)
	settings.Aggregations = t.TempDir() + "/aggregation-rules.conf"
	if err := os.WriteFile(settings.Aggregations, []byte(q.Aggregation), 0o644); err != nil {
		t.Fatal(err)
	}
	o := aggregate.Options{
		FS: vfs.NewMem(), Dir: "/log", Intervals: q.Intervals, MaxBytes: 64 << 20, Sink: r, Now: func() int64 { return r.now * 1e9 },
		Idle: true, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	}
	if q.WriteBack != nil {
		o.WriteBack = *q.WriteBack
	}
	var a *aggregate.Aggregator
	var p *Pipeline
	begin := func() {
		var err error
		o.Registerer = prometheus.NewRegistry()
		if a, err = aggregate.Open(o); err != nil {
			t.Fatal(err)
		}
		p = open(t, Options{Rules: settings, Aggregator: a, AggregatesOnly: !q.Forward})
	}
	begin()
	advance := func(to int64) {
		for r.now < to {
			r.now++
			a.Work(t.Context())
		}
	}
	for i, in := range q.Points {
		advance(in.Now)
		if path, dropped := p.Pass("t", []byte(in.Path), in.Time*1e9, in.Value); dropped == "" {
			r.out = append(r.out, point{r.now, string(path), in.Time, in.Value})
		}
		if restart > 0 && i%restart == 0 {
			if err := p.Sync(); err != nil {
				t.Fatal(err)
			}
			begin()
		}
	}
	advance(q.Until)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(r.out, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.Now, b.Now), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Time, b.Time), cmp.Compare(a.Value, b.Value))
	})
	return r.out
}

// TestAsCarbonAggregator compares what goes out, and when, with carbon-aggregator 1.1.10.
func TestAsCarbonAggregator(t *testing.T) {
	cases, wants := readCases(t)
	for i := range cases {
		if diff := gocmp.Diff(wants[i], cases[i].run(t, 0), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("case %d: -carbon +shale\n%s", i+1, diff)
		}
	}
}

// TestRestartsChangeNoAggregate: with a restart after each tenth point, the store has the same values in
// the end.
func TestRestartsChangeNoAggregate(t *testing.T) {
	last := func(all []point) map[point]float64 {
		m := map[point]float64{}
		for _, p := range all {
			m[point{Path: p.Path, Time: p.Time}] = p.Value
		}
		return m
	}
	cases, _ := readCases(t)
	for i := range cases {
		// A restart delays what is due, so intervals must not be forgotten in between.
		cases[i].Intervals = 1 << 20
		if diff := gocmp.Diff(last(cases[i].run(t, 0)), last(cases[i].run(t, 10))); diff != "" {
			t.Errorf("case %d: -without +with restarts\n%s", i+1, diff)
		}
	}
}

func readCases(t *testing.T) (cases []question, wants [][]point) {
	t.Helper()
	cases, wants = readLines[question](t, *casesFile), readLines[[]point](t, *answersFile)
	if len(cases) != len(wants) || len(cases) == 0 {
		t.Fatalf("%d cases, %d answers", len(cases), len(wants))
	}
	return cases, wants
}

func readLines[T any](t *testing.T, path string) (all []T) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

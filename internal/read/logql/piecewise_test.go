package logql

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/read/results"
)

// pathLines is a source with lines of many paths, half a second apart.
func pathLines(apps, lines int) *readtest.Memory {
	m := readtest.NewMemory(1)
	for app := range apps {
		l := model.LabelsOf("app", fmt.Sprint(app))
		var all []readtest.Line
		for i := range lines {
			all = append(all, readtest.Line{
				Time: int64(i) * second / 2,
				Text: fmt.Sprintf(`{"ms":%d,"path":"/items/%d","method":"m%d"}`, i*7%100, i*(app+1), i%3),
			})
		}
		m.AddText("a", l.Key(1, model.Logs), l, all...)
	}
	return m
}

// TestPieces gives queries less and less memory. They have the same result in pieces until even one step
// takes more than there is, and then an error. Nothing but the result stays charged.
func TestPieces(t *testing.T) {
	racetest.SkipSerial(t) // TestPiecesAreKept goes through pieces, too
	m := pathLines(2, 1200)
	e := New(Options{Read: read.New(read.Options{Sources: []read.Source{m}})})
	steps := vector.Steps{Start: 10 * second, Step: 10 * second, Count: 60}
	for _, query := range []string{
		`topk(3, sum by (path) (rate({app=~".+"} | json [10s])))`,
		`sum by (method) (count_over_time({app="0"} | json [10s]))`,
		`count(count_over_time({app=~".+"} | json [10s]))`,
		`max(sum by (path) (count_over_time({app="0"} | json [30s])))`,
		`avg_over_time({app="0"} | json | unwrap ms [10s]) by (method)`,
		`sum(sum by (path) (count_over_time({app="0"} | json [10s])) or vector(0))`,
		`sum by (path) (bytes_over_time({app="0"} | json [10s] offset 20s))`,
		`sum by (path) (count_over_time({app="0"} | json [10s])) unless absent_over_time({app="0"} | json | ms > 90 [1s] offset -15s)`,
		`sum by (app, path) (rate({app=~".+"} | json [10s])) / on (app) group_left () sum by (app) (rate({app=~".+"} | json [10s]))`,
		`topk(2, label_replace(sum by (path) (count_over_time({app="0"} | json [10s])), "path", "x", "path", ".*"))`,
	} {
		run := func(limit int64) (*Numbers, string, *model.Quota, error) {
			p, err := Prepare(query)
			if err != nil {
				t.Fatal(err)
			}
			quota := &model.Quota{MaxBytes: limit, Pool: &model.QueryPool{MaxBytes: 1 << 40}}
			n, err := e.Numbers(context.Background(), &MetricQuery{Tenants: []string{"a"}, Prepared: p, Steps: steps, Quota: quota})
			if err != nil {
				return nil, "", quota, err
			}
			return n, numbersTable(n), quota, nil
		}
		whole, want, _, err := run(0)
		if err != nil {
			t.Fatal(err)
		}
		reread, refused := 0, 0
		for limit := int64(1 << 22); limit > 1<<10; limit = limit * 2 / 3 {
			n, got, quota, err := run(limit)
			switch {
			case model.NeedsMoreMemory(err):
				refused++
				continue
			case err != nil:
				t.Fatal(err)
			case got != want:
				t.Fatalf("%s with %d bytes:\n%s\nshould be\n%s", query, limit, got, want)
			case n.Stats.Lines > whole.Stats.Lines:
				reread++
			}
			if most := quota.Charged().Bytes(); most > limit {
				t.Errorf("%s: %d bytes are charged of %d", query, most, limit)
			}
		}
		if refused == 0 || reread == 0 {
			t.Errorf("%s: %d refused, %d in pieces", query, refused, reread)
		}
	}
}

// TestPiecesAreKept repeats a query that is too large for its memory as a whole, but not in pieces. The
// second time it reads hardly any line.
func TestPiecesAreKept(t *testing.T) {
	m := pathLines(1, 4000)
	kept := results.New(results.Options{
		Limits:  results.Limits{Split: time.Minute, ClosedAfter: time.Second, MaxBytes: 1 << 30},
		Changes: new(results.Changes), Now: func() int64 { return 3600 * second }, Registerer: prometheus.NewRegistry(),
	})
	e := New(Options{Read: read.New(read.Options{Sources: []read.Source{m}}), Results: kept})
	p, err := Prepare(`max by (method) (avg_over_time({app="0"} | json | unwrap ms [10s]))`)
	if err != nil {
		t.Fatal(err)
	}
	run := func(limit int64, fresh bool) (string, int64) {
		t.Helper()
		quota := &model.Quota{MaxBytes: limit, Pool: &model.QueryPool{MaxBytes: 1 << 40}}
		n, err := e.Numbers(context.Background(), &MetricQuery{
			Tenants: []string{"a"}, Prepared: p, Steps: vector.Steps{Start: 10 * second, Step: 10 * second, Count: 190}, Quota: quota,
			Cost: &model.Cost{Fresh: fresh},
		})
		if err != nil {
			t.Fatal(err)
		}
		return numbersTable(n), n.Stats.Lines
	}
	want, whole := run(0, true)
	const limit = 3 << 20
	if got, lines := run(limit, true); got != want || lines <= whole {
		t.Fatalf("the limit does not cut the query in pieces: %d lines, as a whole %d; %v", lines, whole, got == want)
	}
	if got, _ := run(limit, false); got != want {
		t.Fatal("the first result differs")
	}
	got, lines := run(limit, false)
	if got != want || lines > whole/4 {
		t.Errorf("%d of %d lines are read again; %v", lines, whole, got == want)
	}
}

// TestAggregationIsKept repeats aggregations of a leaf whose values are too large to be kept. The leaf is
// read once to learn that and once to keep the aggregation; after that, hardly any line is read, however
// often the leaf is refused.
func TestAggregationIsKept(t *testing.T) {
	m := pathLines(1, 4000)
	now := int64(3600 * second)
	kept := results.New(results.Options{
		Limits:  results.Limits{Split: time.Minute, ClosedAfter: time.Second, MaxBytes: 100 << 10},
		Changes: new(results.Changes), Now: func() int64 { return now }, Registerer: prometheus.NewRegistry(),
	})
	e := New(Options{Read: read.New(read.Options{Sources: []read.Source{m}}), Results: kept})
	for _, query := range []string{
		`max by (method) (avg_over_time({app="0"} | json | unwrap ms [10s]))`,
		`avg by (method) (avg_over_time({app="0"} | json | unwrap ms [20s]))`,
		`stddev(rate({app="0"} | json [10s])) * 2`,
	} {
		p, err := Prepare(query)
		if err != nil {
			t.Fatal(err)
		}
		run := func(from int64, fresh bool) (string, int64) {
			t.Helper()
			n, err := e.Numbers(context.Background(), &MetricQuery{
				Tenants: []string{"a"}, Prepared: p, Steps: vector.Steps{Start: from * second, Step: 10 * second, Count: 150}, Cost: &model.Cost{Fresh: fresh},
			})
			if err != nil {
				t.Fatal(err)
			}
			return numbersTable(n), n.Stats.Lines
		}
		for i := range int64(8) {
			want, whole := run(20+10*i, true)
			got, lines := run(20+10*i, false)
			if got != want {
				t.Fatalf("%s: the result of time %d differs", query, i)
			}
			if few := lines < whole/4; few != (i >= 2) {
				t.Errorf("%s: %d of %d lines are read at time %d", query, lines, whole, i)
			}
			now += int64(4 * time.Minute)
		}
	}
}

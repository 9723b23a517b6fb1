package promql_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
)

const tenant = "t"

func add(m *readtest.Memory, tenant string, l model.Labels, from, n int64) {
	var rows model.Rows
	for i := range n {
		rows.Append((from+i)*1e9, math.Float64bits(float64(i)), 0)
	}
	m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
}

// store has up{i="0"} to up{i="9"}, with samples at 0, 1, 2 ... 9 s, in two sources, and one series of
// another tenant.
func store() (*promql.Queryable, []*readtest.Memory) {
	ms := []*readtest.Memory{readtest.NewMemory(2), readtest.NewMemory(1)}
	for i := range 10 {
		l := model.LabelsOf("__name__", "up", "i", fmt.Sprint(i))
		add(ms[i%2], tenant, l, 0, 5)
		add(ms[(i+1)%2], tenant, l, 5, 5)
	}
	add(ms[0], "other", model.LabelsOf("__name__", "up", "secret", "x"), 0, 5)
	return &promql.Queryable{
		Read: read.New(read.Options{Sources: []read.Source{ms[0], ms[1]}}), Tenant: tenant, Quota: new(model.Quota), Cost: new(model.Cost),
	}, ms
}

func open(t *testing.T, q *promql.Queryable, mint, maxt int64) storage.Querier {
	t.Helper()
	querier, err := q.Querier(mint, maxt)
	if err != nil {
		t.Fatal(err)
	}
	return querier
}

var (
	ctx = context.Background()
	up  = labels.MustNewMatcher(labels.MatchEqual, "__name__", "up")
)

// walk returns the label i of every series and the number of samples.
func walk(set storage.SeriesSet) (names []string, samples int, err error) {
	for set.Next() {
		s := set.At()
		names = append(names, s.Labels().Get("i"))
		for it := s.Iterator(nil); it.Next() != 0; samples++ {
		}
	}
	return names, samples, set.Err()
}

func closed(t *testing.T, ms []*readtest.Memory) {
	t.Helper()
	for i, m := range ms {
		if n := m.Open(); n != 0 {
			t.Errorf("source %d has %d open cursors", i, n)
		}
	}
}

func TestSelect(t *testing.T) {
	for _, c := range []struct {
		name       string
		mint, maxt int64
		sorted     bool
		hints      *storage.SelectHints
		series     int
		samples    int
	}{
		{"all", math.MinInt64, math.MaxInt64, false, nil, 10, 100},
		{"sorted", math.MinInt64, math.MaxInt64, true, nil, 10, 100},
		{"bounds are inside", 2000, 4000, false, nil, 10, 30},
		{"nothing in range", 20_000, 30_000, false, nil, 0, 0},
		{"backwards", 4000, 2000, false, nil, 0, 0},
		{"hints bound more", 0, 9000, false, &storage.SelectHints{Start: 3000, End: 3999}, 10, 10},
		{"limit", 0, 9000, false, &storage.SelectHints{Start: 0, End: 9000, Limit: 3}, 3, 30},
		{"labels only", 0, 9000, true, &storage.SelectHints{Start: 0, End: 9000, Func: "series"}, 10, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, ms := store()
			querier := open(t, q, c.mint, c.maxt)
			names, samples, err := walk(querier.Select(ctx, c.sorted, c.hints, up))
			if err != nil || len(names) != c.series || samples != c.samples {
				t.Errorf("%d series, %d samples, %v", len(names), samples, err)
			}
			if c.sorted && !slices.IsSorted(names) {
				t.Errorf("not sorted: %q", names)
			}
			if q.Cost.Series.Load() != int64(c.series) || q.Cost.Samples.Load() != int64(c.samples) {
				t.Errorf("cost: %d series, %d samples", q.Cost.Series.Load(), q.Cost.Samples.Load())
			}
			closed(t, ms) // even before Close
			if err := querier.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSeriesStayValid: the engine keeps every series of a set and reads them all at the end.
func TestSeriesStayValid(t *testing.T) {
	q, _ := store()
	querier := open(t, q, 0, 9000)
	defer querier.Close()
	var all []storage.Series
	set := querier.Select(ctx, false, nil, up)
	for set.Next() {
		all = append(all, set.At())
	}
	seen := map[string]bool{}
	for _, s := range all {
		seen[s.Labels().String()] = true
		it, want := s.Iterator(nil), int64(0)
		for ; it.Next() != 0; want++ {
			if ms, v := it.At(); ms != want*1000 || v != float64(want%5) {
				t.Fatalf("%s: (%d, %g) at %d", s.Labels(), ms, v, want)
			}
		}
		if want != 10 {
			t.Fatalf("%s has %d samples", s.Labels(), want)
		}
	}
	if len(seen) != 10 {
		t.Fatalf("%d label sets", len(seen))
	}
}

func TestCloseUnpins(t *testing.T) {
	q, ms := store()
	querier := open(t, q, 0, 9000)
	for range 3 {
		querier.Select(ctx, false, nil, up).Next()
	}
	if ms[0].Open() == 0 {
		t.Fatal("nothing is pinned by a set that is being walked")
	}
	for range 2 {
		if err := querier.Close(); err != nil {
			t.Fatal(err)
		}
		closed(t, ms)
	}
}

func TestErrorsAreNeverShortAnswers(t *testing.T) {
	bad := fmt.Errorf("%w: a page", model.ErrCorrupt)
	for name, f := range map[string]readtest.Failure{"select": {Select: bad}, "next": {Next: bad}, "rows": {Rows: bad}} {
		for _, sorted := range []bool{false, true} {
			q, ms := store()
			ms[1].Fail(f)
			querier := open(t, q, 0, 9000)
			if _, _, err := walk(querier.Select(ctx, sorted, nil, up)); !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("%s: %v", name, err)
			}
			closed(t, ms)
			if err := querier.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	q, ms := store()
	ms[1].Fail(readtest.Failure{Labels: bad})
	querier := open(t, q, 0, 9000)
	defer querier.Close()
	if _, _, err := querier.LabelNames(ctx, nil); !errors.Is(err, model.ErrCorrupt) {
		t.Errorf("label names: %v", err)
	}
	if _, _, err := querier.LabelValues(ctx, "i", nil); !errors.Is(err, model.ErrCorrupt) {
		t.Errorf("label values: %v", err)
	}
}

func TestQuotaAndCancellation(t *testing.T) {
	for _, quota := range []*model.Quota{{MaxSeries: 9}, {MaxSamples: 99}, {MaxBytes: 900}} {
		q, ms := store()
		q.Quota = quota
		querier := open(t, q, 0, 9000)
		if _, _, err := walk(querier.Select(ctx, true, nil, up)); !errors.Is(err, model.ErrLimit) {
			t.Errorf("%+v: %v", quota, err)
		}
		closed(t, ms)
	}
	q, ms := store()
	done, cancel := context.WithCancel(ctx)
	querier := open(t, q, 0, 9000)
	set := querier.Select(done, false, nil, up)
	if !set.Next() {
		t.Fatal(set.Err())
	}
	cancel()
	if set.Next() || !errors.Is(set.Err(), context.Canceled) {
		t.Errorf("after the end: %v", set.Err())
	}
	closed(t, ms)
	if _, _, err := querier.LabelNames(done, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("label names: %v", err)
	}
}

// TestQuotaOfProjection: only labels that are kept are charged.
func TestQuotaOfProjection(t *testing.T) {
	const rows = 10 * (200 + 10*16) // of ten series
	for _, c := range []struct {
		hints *storage.SelectHints
		bytes int64
		ok    bool
	}{
		{&storage.SelectHints{End: 9000, Func: "count", By: true}, rows + 20, true},
		{&storage.SelectHints{End: 9000, Func: "count", By: true}, rows + 5, false},
		{&storage.SelectHints{End: 9000, Func: "count", By: true, Grouping: []string{"i"}}, rows + 20, false},
		{&storage.SelectHints{End: 9000, Func: "count"}, rows + 20, false},
	} {
		q, ms := store()
		q.Quota = &model.Quota{MaxBytes: c.bytes}
		series, _, err := walk(open(t, q, 0, 9000).Select(ctx, false, c.hints, up))
		if c.ok && (err != nil || len(series) != 10) || !c.ok && !errors.Is(err, model.ErrLimit) {
			t.Errorf("%+v, %d bytes: %d series, %v", c.hints, c.bytes, len(series), err)
		}
		closed(t, ms)
	}
}

func TestShardsAreRefused(t *testing.T) {
	q, _ := store()
	set := open(t, q, 0, 9000).Select(ctx, false, &storage.SelectHints{ShardCount: 2}, up)
	if set.Next() || !errors.Is(set.Err(), model.ErrInvalid) {
		t.Errorf("%v", set.Err())
	}
}

func TestLabelQueries(t *testing.T) {
	q, _ := store()
	querier := open(t, q, 0, 9000)
	defer querier.Close()
	names, _, err := querier.LabelNames(ctx, nil)
	if d := cmp.Diff([]string{"__name__", "i"}, names); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	values, _, err := querier.LabelValues(ctx, "i", &storage.LabelHints{Limit: 3})
	if d := cmp.Diff([]string{"0", "1", "2"}, values); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	values, _, err = querier.LabelValues(ctx, "i", nil, labels.MustNewMatcher(labels.MatchRegexp, "i", "[78]"))
	if d := cmp.Diff([]string{"7", "8"}, values); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	if values, _, err = querier.LabelValues(ctx, "secret", nil); err != nil || len(values) != 0 {
		t.Errorf("of another tenant: %q %v", values, err)
	}
}

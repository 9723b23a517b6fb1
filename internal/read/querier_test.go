package read_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/readtest"
)

const tenant = "t"

func labelsFor(i int) model.Labels {
	return model.LabelsOf("__name__", "m", "i", fmt.Sprint(i))
}

func keyFor(i int) model.Key { return labelsFor(i).Key(7, model.Metrics) }

func request(r model.TimeRange) *model.Request {
	return &model.Request{Tenant: tenant, Signal: model.Metrics, Range: r, Quota: new(model.Quota), Cost: new(model.Cost)}
}

// answer is a whole result by labels: time to (value, start).
type answer map[string]map[int64][2]int64

func collect(t require, q *read.Querier, req *model.Request) answer {
	ctx := context.Background()
	set, err := q.Select(ctx, req)
	if err != nil {
		t.Fatalf("select: %v", err)
	}
	got := answer{}
	var last model.Key
	rows := model.Rows{}
	rows.Append(math.MinInt64, 1, 1) // rows that were there before must stay
	for n := 0; set.Next(ctx); n++ {
		if n > 0 && !last.Less(set.Key()) {
			t.Fatalf("key %s after %s", set.Key(), last)
		}
		last = set.Key()
		base := rows.Len()
		if err := set.AppendRows(ctx, &rows); err != nil {
			t.Fatalf("rows: %v", err)
		}
		m := map[int64][2]int64{}
		for i := base; i < rows.Len(); i++ {
			if i > base && rows.Times[i] <= rows.Times[i-1] {
				t.Fatalf("time %d after %d", rows.Times[i], rows.Times[i-1])
			}
			m[rows.Times[i]] = [2]int64{int64(rows.Values[i]), rows.Start(i)}
		}
		if len(m) > 0 {
			got[set.Labels().String()] = m
		}
	}
	if err := set.Err(); err != nil {
		t.Fatalf("set: %v", err)
	}
	if err := set.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if rows.Times[0] != math.MinInt64 || rows.Start(0) != 1 {
		t.Fatalf("the rows before were changed")
	}
	return got
}

type require interface {
	Fatalf(format string, args ...any)
}

// TestMerge compares the merge of random sources with a map.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := rapid.IntRange(1, 6).Draw(t, "sources")
		orders := rapid.Permutation([]uint64{1, 2, 3, 4, 5, 6}).Draw(t, "orders")
		rg := model.Always()
		if rapid.Bool().Draw(t, "bounded") {
			rg.Min = rapid.Int64Range(-5, 30).Draw(t, "min")
			rg.Max = rg.Min + rapid.Int64Range(0, 60).Draw(t, "width")
		}
		type row struct {
			order uint64
			v, st int64
		}
		want := map[string]map[int64]row{}
		var srcs []read.Source
		var mem []*readtest.Memory
		for s := range sources {
			m := readtest.NewMemory(orders[s])
			mem = append(mem, m)
			srcs = append(srcs, m)
			for range rapid.IntRange(0, 6).Draw(t, "series") {
				i := rapid.IntRange(0, 5).Draw(t, "which")
				var rows model.Rows
				at := rapid.Int64Range(0, 80).Draw(t, "from")
				for range rapid.IntRange(1, 100).Draw(t, "rows") {
					v := uint64(rapid.IntRange(0, 3).Draw(t, "v"))
					if v == 0 {
						v = model.StaleNaN
					}
					st := int64(0)
					if rapid.IntRange(0, 9).Draw(t, "hasStart") == 0 {
						st = at - 1
					}
					rows.Append(at, v, st)
					at += rapid.Int64Range(1, 4).Draw(t, "gap")
				}
				l := labelsFor(i)
				m.Add(tenant, keyFor(i), l, &rows)
				if want[l.String()] == nil {
					want[l.String()] = map[int64]row{}
				}
				for j, ts := range rows.Times {
					n := row{orders[s], int64(rows.Values[j]), rows.Start(j)}
					old, ok := want[l.String()][ts]
					stale, oldStale := rows.Values[j] == model.StaleNaN, uint64(old.v) == model.StaleNaN
					if !ok || oldStale && !stale || oldStale == stale && n.order >= old.order {
						want[l.String()][ts] = n
					}
				}
			}
		}
		expect := answer{}
		for l, m := range want {
			for ts, r := range m {
				if rg.Contains(ts) {
					if expect[l] == nil {
						expect[l] = map[int64][2]int64{}
					}
					expect[l][ts] = [2]int64{r.v, r.st}
				}
			}
		}
		q := read.New(read.Options{Sources: srcs})
		req := request(rg)
		if d := cmp.Diff(expect, collect(t, q, req)); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
		n := int64(0)
		for _, m := range expect {
			n += int64(len(m))
		}
		if got := req.Cost.Samples.Load(); got != n {
			t.Fatalf("cost says %d samples, want %d", got, n)
		}
		for _, m := range mem {
			if m.Open() != 0 {
				t.Fatalf("%d cursors left open", m.Open())
			}
		}
	})
}

func twoSources() (*readtest.Memory, *readtest.Memory, *read.Querier, *prometheus.Registry) {
	a, b := readtest.NewMemory(2), readtest.NewMemory(1)
	for i := range 10 {
		for j, m := range []*readtest.Memory{a, b} {
			var rows model.Rows
			for s := range 10 {
				rows.Append(int64(100*(1-j)+s), uint64(s), 0)
			}
			m.Add(tenant, keyFor(i), labelsFor(i), &rows)
		}
	}
	reg := prometheus.NewRegistry()
	return a, b, read.New(read.Options{Sources: []read.Source{a, b}, Registerer: reg}), reg
}

// drain reads a set to its end and returns its error.
func drain(ctx context.Context, q *read.Querier, req *model.Request) (series int, err error) {
	set, err := q.Select(ctx, req)
	if err != nil {
		return 0, err
	}
	var rows model.Rows
	for set.Next(ctx) {
		series++
		rows.Reset()
		if err := set.AppendRows(ctx, &rows); err != nil {
			return series, errors.Join(err, set.Close())
		}
	}
	return series, errors.Join(set.Err(), set.Close())
}

func TestErrorsReachTheCallerAndCloseCursors(t *testing.T) {
	for name, f := range map[string]readtest.Failure{
		"select": {Select: model.ErrTransient}, "next": {Next: model.ErrTransient}, "rows": {Rows: model.ErrTransient},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, q, _ := twoSources()
			b.Fail(f)
			_, err := drain(context.Background(), q, request(model.Always()))
			if !errors.Is(err, model.ErrTransient) {
				t.Errorf("got %v", err)
			}
			if a.Open() != 0 || b.Open() != 0 {
				t.Errorf("%d and %d cursors left open", a.Open(), b.Open())
			}
		})
	}
	a, b, q, _ := twoSources()
	b.Fail(readtest.Failure{Labels: model.ErrCorrupt})
	if _, _, err := q.LabelNames(context.Background(), request(model.Always()), 0); !errors.Is(err, model.ErrCorrupt) {
		t.Errorf("label names: %v", err)
	}
	if _, _, err := q.LabelValues(context.Background(), request(model.Always()), "i", 0); !errors.Is(err, model.ErrCorrupt) {
		t.Errorf("label values: %v", err)
	}
	_ = a
}

func TestCancelled(t *testing.T) {
	a, b, q, _ := twoSources()
	ctx, cancel := context.WithCancel(context.Background())
	set, err := q.Select(ctx, request(model.Always()))
	if err != nil {
		t.Fatal(err)
	}
	if !set.Next(ctx) {
		t.Fatal(set.Err())
	}
	cancel()
	if set.Next(ctx) || !errors.Is(set.Err(), context.Canceled) {
		t.Errorf("went on: %v", set.Err())
	}
	if err := set.Close(); err != nil || a.Open()+b.Open() != 0 {
		t.Errorf("close: %v, %d open", err, a.Open()+b.Open())
	}
	if _, err := q.Select(ctx, request(model.Always())); !errors.Is(err, context.Canceled) || a.Open()+b.Open() != 0 {
		t.Errorf("select: %v, %d open", err, a.Open()+b.Open())
	}
	if _, _, err := q.LabelNames(ctx, request(model.Always()), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("label names: %v", err)
	}
}

func TestQuota(t *testing.T) {
	for name, quota := range map[string]*model.Quota{
		"series": {MaxSeries: 9}, "samples": {MaxSamples: 199}, "bytes": {MaxBytes: 3000},
	} {
		_, _, q, _ := twoSources()
		req := request(model.Always())
		req.Quota = quota
		if _, err := drain(context.Background(), q, req); !errors.Is(err, model.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _, q, _ := twoSources()
	req := request(model.Always())
	req.Quota = &model.Quota{MaxSeries: 10, MaxSamples: 200}
	if n, err := drain(context.Background(), q, req); err != nil || n != 10 {
		t.Errorf("at the limit: %d series, %v", n, err)
	}
	req = request(model.Always())
	req.Quota = &model.Quota{MaxBytes: 200}
	if _, _, err := q.LabelValues(context.Background(), req, "i", 0); !errors.Is(err, model.ErrLimit) {
		t.Errorf("label values: %v", err)
	}
}

// A query may cover so much time. What is hidden, what lies ahead, and lists of labels do not count.
func TestRange(t *testing.T) {
	a, b, _, _ := twoSources()
	now := int64(1000)
	q := read.New(read.Options{Sources: []read.Source{a, b}, Horizon: keeping(900), Now: func() int64 { return now }})
	quota := &model.Quota{MaxRange: 500, Tenant: "team-a"}
	ask := func(from, to int64) error {
		req := request(model.TimeRange{Min: from, Max: to})
		req.Quota = quota
		_, err := drain(context.Background(), q, req)
		return err
	}
	for _, r := range [][2]int64{{500, 1000}, {500, 5000}, {700, 800}, {-500, 99}} {
		if err := ask(r[0], r[1]); err != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
	if err := ask(499, 600); !errors.Is(err, model.ErrLimit) || !strings.Contains(err.Error(), "query.max-range") || !strings.Contains(err.Error(), "team-a") {
		t.Errorf("with the ranges before: %v", err)
	}
	if err := q.Kept(&model.Request{Tenant: "a", Signal: model.Metrics, Range: model.Always(), Quota: quota, Cost: new(model.Cost)}); !errors.Is(err, model.ErrLimit) {
		t.Errorf("kept results: %v", err)
	}
	quota = &model.Quota{MaxRange: 500}
	req := request(model.Always())
	req.Quota, req.LabelsOnly = quota, true
	if _, _, err := q.LabelNames(context.Background(), req, 0); err != nil {
		t.Error(err)
	}
	if _, err := drain(context.Background(), q, req); err != nil {
		t.Error(err)
	}
	quota = &model.Quota{MaxRange: 500}
	if err := ask(99, 1000); !errors.Is(err, model.ErrLimit) {
		t.Errorf("all: %v", err)
	}
}

// keeping is a horizon that is the same for all series.
func keeping(keep int64) func(string, model.Signal, int64) (int64, *model.Horizon) {
	return func(_ string, _ model.Signal, now int64) (int64, *model.Horizon) { return now - keep, nil }
}

func TestRetention(t *testing.T) {
	a, b, _, _ := twoSources()
	now := int64(1000)
	q := read.New(read.Options{Sources: []read.Source{a, b}, Horizon: keeping(900), Now: func() int64 { return now }})
	if n := len(collect(t, q, request(model.Always()))); n != 10 {
		t.Fatalf("%d series", n)
	}
	for l, m := range collect(t, q, request(model.Always())) {
		if first := slices.Min(slices.Collect(maps.Keys(m))); first != 100 {
			t.Errorf("%s begins at %d", l, first)
		}
	}
	if n, err := drain(context.Background(), q, request(model.TimeRange{Min: 0, Max: 99})); n != 0 || err != nil {
		t.Errorf("beyond retention: %d series, %v", n, err)
	}
	now = 2000
	if names, _, err := q.LabelNames(context.Background(), request(model.Always()), 0); len(names) != 0 || err != nil {
		t.Errorf("names beyond retention: %q, %v", names, err)
	}
}

func TestCollisionKeepsTheFirstLabels(t *testing.T) {
	a, b, q, reg := twoSources()
	var rows model.Rows
	rows.Append(1, 1, 0)
	k := model.Key{Hi: 1, Lo: 1}
	a.Add(tenant, k, model.LabelsOf("a", "1"), &rows)
	b.Add(tenant, k, model.LabelsOf("b", "1"), &rows)
	if got := collect(t, q, request(model.Always())); len(got) != 11 {
		t.Errorf("%d series", len(got))
	}
	if n := testutil.CollectAndCount(reg); n != 1 {
		t.Fatalf("%d metrics", n)
	}
	mf, err := reg.Gather()
	if err != nil || mf[0].GetMetric()[0].GetCounter().GetValue() != 1 {
		t.Errorf("collisions: %v, %v", mf, err)
	}
}

func TestLabelsAreSortedUnions(t *testing.T) {
	a, _, q, _ := twoSources()
	var rows model.Rows
	rows.Append(1, 1, 0)
	l := model.LabelsOf("zone", "x", "i", "99")
	a.Add(tenant, l.Key(7, model.Metrics), l, &rows)
	for _, c := range []struct {
		limit int
		want  []string
		more  bool
	}{
		{0, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "99"}, false},
		{3, []string{"0", "1", "2"}, true},
		{11, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "99"}, false},
	} {
		got, more, err := q.LabelValues(context.Background(), request(model.Always()), "i", c.limit)
		if err != nil || more != c.more || !slices.Equal(got, c.want) {
			t.Errorf("limit %d: %q, %v, %v", c.limit, got, more, err)
		}
	}
	got, _, err := q.LabelNames(context.Background(), request(model.Always()), 0)
	if want := []string{"__name__", "i", "zone"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("names: %q, %v", got, err)
	}
}

// TestLabelLimitBoundsMemory has more values than the set may hold, in an order that makes it cut often.
func TestLabelLimitBoundsMemory(t *testing.T) {
	m := readtest.NewMemory(1)
	var want []string
	for i := range 1000 {
		var rows model.Rows
		rows.Append(1, 1, 0)
		l := model.LabelsOf("v", fmt.Sprintf("%04d", i))
		m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
		if i < 5 {
			want = append(want, fmt.Sprintf("%04d", i))
		}
	}
	q := read.New(read.Options{Sources: []read.Source{m}})
	req := request(model.Always())
	req.Quota = &model.Quota{MaxBytes: 5000}
	got, more, err := q.LabelValues(context.Background(), req, "v", 5)
	if err != nil || !more || !slices.Equal(got, want) {
		t.Errorf("%q, %v, %v", got, more, err)
	}
}

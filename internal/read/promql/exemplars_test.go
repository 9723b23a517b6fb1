package promql_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
)

func addExemplar(m *readtest.Memory, tenant string, l model.Labels, at int64, v float64, trace string) {
	var rows model.Rows
	e := model.Exemplar{Value: math.Float64bits(v), Labels: model.LabelsOf("trace_id", trace)}
	rows.AppendBlob(at, model.KindExemplar, model.AppendExemplar(nil, &e), 0)
	m.AddFamily(tenant, l.Key(7, model.Metrics), l, model.Exemplars, &rows)
}

// exemplars has series a, b and c in two sources. The first series has three exemplars, one of them twice,
// the second has two at one time, the third none.
func exemplars() (*promql.Queryable, []*readtest.Memory) {
	ms := []*readtest.Memory{readtest.NewMemory(2), readtest.NewMemory(1)}
	series := func(name string) model.Labels { return model.LabelsOf("__name__", name, "job", "x") }
	addExemplar(ms[0], tenant, series("a"), 3e9, 3, "late")
	addExemplar(ms[0], tenant, series("a"), 1e9, 1, "twice")
	addExemplar(ms[1], tenant, series("a"), 1e9, 1, "twice")
	addExemplar(ms[1], tenant, series("a"), 2e9+999_999, math.Inf(1), "two")
	addExemplar(ms[1], tenant, series("b"), 2e9, 5, "first")
	addExemplar(ms[0], tenant, series("b"), 2e9, 4, "second")
	add(ms[0], tenant, series("c"), 0, 5)
	addExemplar(ms[0], "other", series("a"), 2e9, 9, "secret")
	return &promql.Queryable{
		Read: read.New(read.Options{Sources: []read.Source{ms[0], ms[1]}}), Tenant: tenant, Quota: new(model.Quota), Cost: new(model.Cost),
	}, ms
}

func selectExemplars(q *promql.Queryable, ctx context.Context, from, to int64, selectors ...string) ([]exemplar.QueryResult, error) {
	querier, err := q.ExemplarQuerier(ctx)
	if err != nil {
		return nil, err
	}
	var sets [][]*labels.Matcher
	for _, s := range selectors {
		sets = append(sets, []*labels.Matcher{
			labels.MustNewMatcher(labels.MatchRegexp, "__name__", s), labels.MustNewMatcher(labels.MatchEqual, "job", "x"),
		})
	}
	return querier.Select(from, to, sets...)
}

func lines(found []exemplar.QueryResult) []string {
	out := []string{}
	for _, r := range found {
		for _, e := range r.Exemplars {
			out = append(out, fmt.Sprintf("%s %g at %d (%t) %s", r.SeriesLabels.Get("__name__"), e.Value, e.Ts, e.HasTs, e.Labels.Get("trace_id")))
		}
	}
	return out
}

func TestExemplars(t *testing.T) {
	a := []string{"a 1 at 1000 (true) twice", "a +Inf at 2000 (true) two", "a 3 at 3000 (true) late"}
	b := []string{"b 5 at 2000 (true) first", "b 4 at 2000 (true) second"}
	for _, c := range []struct {
		name      string
		from, to  int64
		selectors []string
		want      []string
	}{
		{"all", math.MinInt64, math.MaxInt64, []string{".+"}, append(append([]string{}, a...), b...)},
		{"of one series", 0, 5000, []string{"b"}, b},
		{"bounds are inside", 2000, 2000, []string{"a"}, a[1:2]},
		{"union", 0, 5000, []string{"b", "a|b", "a", "zzz"}, append(append([]string{}, a...), b...)},
		{"a series without", 0, 5000, []string{"c"}, []string{}},
		{"no selector", 0, 5000, nil, []string{}},
		{"backwards", 5000, 0, []string{".+"}, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, ms := exemplars()
			found, err := selectExemplars(q, ctx, c.from, c.to, c.selectors...)
			if err != nil || found == nil {
				t.Fatalf("%v, %v", found, err)
			}
			if d := cmp.Diff(c.want, lines(found)); d != "" {
				t.Errorf("-want +got: %s", d)
			}
			closed(t, ms)
		})
	}
}

func TestExemplarLimits(t *testing.T) {
	for _, quota := range []*model.Quota{{MaxSamples: 4}, {MaxSeries: 1}, {MaxBytes: 600}, {Pool: &model.QueryPool{MaxBytes: 600}}} {
		q, ms := exemplars()
		q.Quota = quota
		if found, err := selectExemplars(q, ctx, 0, 5000, ".+"); !errors.Is(err, model.ErrLimit) && !errors.Is(err, model.ErrTransient) || found != nil {
			t.Errorf("%+v: %v, %v", quota, found, err)
		}
		closed(t, ms)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	q, ms := exemplars()
	if _, err := selectExemplars(q, done, 0, 5000, ".+"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	closed(t, ms)
}

func TestExemplarErrors(t *testing.T) {
	bad := fmt.Errorf("%w: a page", model.ErrCorrupt)
	for name, f := range map[string]readtest.Failure{"select": {Select: bad}, "next": {Next: bad}, "rows": {Rows: bad}} {
		q, ms := exemplars()
		ms[0].Fail(f)
		if found, err := selectExemplars(q, ctx, 0, 5000, "zzz", ".+"); !errors.Is(err, model.ErrCorrupt) || found != nil {
			t.Errorf("%s: %v, %v", name, found, err)
		}
		closed(t, ms)
	}
	for name, kind := range map[string]model.Kind{"cut short": model.KindExemplar, "another kind": model.KindHistogram} {
		q, ms := exemplars()
		var rows model.Rows
		rows.AppendBlob(1, kind, []byte("abc"), 0)
		l := model.LabelsOf("__name__", "a", "job", "x")
		ms[0].AddFamily(tenant, l.Key(7, model.Metrics), l, model.Exemplars, &rows)
		if _, err := selectExemplars(q, ctx, 0, 5000, "a"); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		closed(t, ms)
	}
}

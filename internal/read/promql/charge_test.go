package promql_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	upstream "github.com/prometheus/prometheus/promql"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
)

// storeOf returns a store with the series under a quota.
func storeOf(m *readtest.Memory, quota *model.Quota) *promql.Queryable {
	return &promql.Queryable{Read: read.New(read.Options{Sources: []read.Source{m}}), Tenant: tenant, Quota: quota, Cost: new(model.Cost)}
}

// TestChargeOfLongRange: the charge for a long range at short steps does not overflow.
func TestChargeOfLongRange(t *testing.T) {
	const samples = 1_100_000 // times the milliseconds of 290 years, that is more than 63 bits
	theirs := boundless()
	defer theirs.Close()
	ours := &promql.Engine{Upstream: theirs, SubqueryStep: time.Minute}
	for _, histograms := range []bool{false, true} {
		m := readtest.NewMemory(1)
		l := model.LabelsOf("__name__", "m", "pod", "a")
		var rows model.Rows
		for i := range int64(samples) {
			if histograms {
				h := model.Histogram{Count: uint64(i), Sum: math.Float64bits(4)}
				rows.AppendBlob(i*1e9, model.KindHistogram, model.AppendHistogram(nil, &h), 0)
			} else {
				rows.Append(i*1e9, math.Float64bits(1), 0)
			}
		}
		m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
		for _, text := range []string{`sum(rate(m[290y]))`, `sum_over_time({__name__=~"m"}[290y])`} {
			pool := &model.QueryPool{MaxBytes: 1 << 40}
			q, err := ours.NewRangeQuery(ctx, storeOf(m, &model.Quota{Pool: pool}), nil, text, time.Unix(samples, 0), time.Unix(samples, 3e6), time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if r := q.Exec(ctx); r.Err != nil {
				t.Errorf("%s: %v", text, r.Err)
			}
			if pool.Used() <= 0 {
				t.Errorf("%s: %d bytes are charged", text, pool.Used())
			}
			q.Close()
		}
	}
}

// TestDistantAt: a time so distant that its offset overflows gives upstream's result.
func TestDistantAt(t *testing.T) {
	theirs := boundless()
	defer theirs.Close()
	m := readtest.NewMemory(1)
	l := model.LabelsOf("__name__", "m_total", "pod", "a")
	var rows model.Rows
	for i := range int64(100) {
		rows.Append(i*10e9, math.Float64bits(float64(i)), 0)
	}
	m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
	for _, at := range []string{
		"@ 18446744073.709", "@ 18446744573.709", "@ 9300000000", "@ -9300000000", "@ -9223370000", "@ -9223372036.9", "@ -9223372000 offset 290y",
		"@ -9223372036854775", "@ 400", "@ 400 offset 1m",
	} {
		for _, text := range []string{`sum(m_total %s)`, `rate(m_total[5m] %s)`} {
			text = fmt.Sprintf(text, at)
			var results []string
			for _, e := range []upstream.QueryEngine{theirs, &promql.Engine{Upstream: theirs, SubqueryStep: time.Minute}} {
				q, err := e.NewInstantQuery(ctx, storeOf(m, new(model.Quota)), nil, text, time.Unix(500, 0))
				if err != nil {
					t.Fatal(err)
				}
				results = append(results, q.Exec(ctx).String())
				q.Close()
			}
			if results[0] != results[1] {
				t.Errorf("%s: got %q, want %q", text, results[1], results[0])
			}
		}
	}
}

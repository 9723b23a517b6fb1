package promql_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
)

// counts returns a queryable over one series of histograms with these counts, a second apart. A negative
// count is a float.
func counts(ns ...int) *promql.Queryable {
	m := readtest.NewMemory(1)
	l := model.LabelsOf("__name__", "up")
	var rows model.Rows
	for i, n := range ns {
		at := int64(i) * 1e9
		if n < 0 {
			rows.Append(at, math.Float64bits(float64(n)), at+5e5)
			continue
		}
		h := model.Histogram{Count: uint64(n), PositiveSpans: []model.HistogramSpan{{Length: 1}}, Positive: []uint64{uint64(n)}}
		rows.AppendBlob(at, model.KindHistogram, model.AppendHistogram(nil, &h), at-1e9)
	}
	m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
	return &promql.Queryable{Read: read.New(read.Options{Sources: []read.Source{m}}), Tenant: tenant, Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 20}}, Cost: new(model.Cost)}
}

// TestHistogramBeforeTheRange: a histogram exactly on the open end of a selector's range is not returned
// and not charged, but tells whether the first one in the range follows a reset.
func TestHistogramBeforeTheRange(t *testing.T) {
	const no, unknown = histogram.NotCounterReset, histogram.UnknownCounterReset
	for _, c := range []struct {
		name string
		ns   []int
		mint int64
		want []histogram.CounterResetHint
	}{
		{"no reset", []int{1, 2, 3}, 1, []histogram.CounterResetHint{no, no}},
		{"reset", []int{5, 2, 3}, 1, []histogram.CounterResetHint{unknown, no}},
		{"a float is before", []int{-1, 2, 3}, 1, []histogram.CounterResetHint{unknown, no}},
		{"nothing is before", []int{1, 2, 3}, 0, []histogram.CounterResetHint{unknown, no, no}},
		{"further before", []int{1, 2, 3}, 2, []histogram.CounterResetHint{unknown, no}},
		{"only the one before", []int{1}, 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := counts(c.ns...)
			set := open(t, q, c.mint, 9000).Select(ctx, false, nil, up)
			n := 0
			for set.Next() {
				it := set.At().Iterator(nil)
				for typ := it.Next(); typ != chunkenc.ValNone; typ = it.Next() {
					if n++; typ != chunkenc.ValHistogram {
						t.Fatalf("%v at %d", typ, it.AtT())
					}
					_, h := it.AtHistogram(nil)
					if n > len(c.want) || h.CounterResetHint != c.want[n-1] {
						t.Errorf("hint %d at %d, want %v", h.CounterResetHint, it.AtT(), c.want)
					}
					if it.AtST() != it.AtT()-1000 {
						t.Errorf("start %d at %d", it.AtST(), it.AtT())
					}
				}
			}
			if set.Err() != nil || n != len(c.want) || q.Cost.Samples.Load() != int64(n) {
				t.Errorf("%d samples, %d counted, want %d: %v", n, q.Cost.Samples.Load(), len(c.want), set.Err())
			}
		})
	}
}

// TestBoundaryIsNotCharged compares a range with a sample on its open end with a range without one.
func TestBoundaryIsNotCharged(t *testing.T) {
	used := func(mint int64) int64 {
		q := counts(1, 2, 3, -4, 5)
		if _, n, err := walk(open(t, q, mint, 9000).Select(ctx, false, nil, up)); err != nil || n != 4 {
			t.Fatalf("%d samples, %v", n, err)
		}
		return q.Quota.Pool.Used()
	}
	if with, without := used(1), used(500); with != without {
		t.Errorf("%d bytes with a sample on the boundary, %d without", with, without)
	}
	q := counts(1, 2, 3, -4, 5)
	q.Quota = &model.Quota{MaxSamples: 5}
	if _, _, err := walk(open(t, q, 1, 9000).Select(ctx, false, nil, up)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
}

// TestWarningOfBoth: of a warning that a function and the aggregation above it give with the same text, the
// position is that of the aggregation, in whatever order the series come.
func TestWarningOfBoth(t *testing.T) {
	theirs := upstream.NewEngine(upstream.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{}), EnableDelayedNameRemoval: true})
	defer theirs.Close()
	m := readtest.NewMemory(1)
	for pod := range 12 {
		l := model.LabelsOf("__name__", "h", "pod", fmt.Sprint(pod))
		var rows model.Rows
		for i := range 10 {
			h := model.Histogram{Count: uint64(i), PositiveSpans: []model.HistogramSpan{{Length: 1}}, Positive: []uint64{uint64(i)}}
			// Two of three series have one kind of buckets, the others change it.
			if pod%3 == 1 || pod%3 == 2 && i > 7 {
				h.Schema, h.Custom = histogram.CustomBucketsSchema, []uint64{math.Float64bits(1)}
			}
			rows.AppendBlob(int64(i)*10e9, model.KindHistogram, model.AppendHistogram(nil, &h), 0)
		}
		m.Add(tenant, l.Key(7, model.Metrics), l, &rows)
	}
	const text = `sum(increase(h[1m]))`
	want, got := "", ""
	for out, e := range map[*string]upstream.QueryEngine{&want: theirs, &got: &promql.Engine{Upstream: theirs, EnableDelayedNameRemoval: true}} {
		err := evaluate(e, storeOf(m, new(model.Quota)), text, 2*time.Minute, 10*time.Second, func(r *upstream.Result) { *out = exactly(r, text) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

package read_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/readtest"
)

// drawKinds appends a row of any kind that the family may have.
func drawKinds(t *rapid.T, f model.Family, at int64, rows *model.Rows) {
	start := max(0, rapid.Int64Range(-20, 2).Draw(t, "start"))
	n := rapid.Uint64Range(0, 3).Draw(t, "value")
	if n == 0 {
		n = model.StaleNaN
	}
	switch {
	case f == model.Exemplars:
		e := model.Exemplar{Value: n, Labels: model.LabelsOf("trace_id", fmt.Sprint(n))}
		rows.AppendBlob(at, model.KindExemplar, model.AppendExemplar(nil, &e), 0)
	case rapid.Bool().Draw(t, "histogram"):
		h := model.Histogram{Sum: n, Count: 7, Positive: make([]uint64, n%5)}
		rows.AppendBlob(at, model.KindHistogram, model.AppendHistogram(nil, &h), start)
	default:
		rows.Append(at, n, start)
	}
}

func rowText(r *model.Rows, i int) string {
	if r.Kind(i) == model.KindFloat {
		return fmt.Sprintf("%d: %x from %d", r.Times[i], r.Values[i], r.Start(i))
	}
	return fmt.Sprintf("%d: kind %d %x from %d", r.Times[i], r.Kind(i), r.Blob(i), r.Start(i))
}

func rowTexts(r *model.Rows) []string {
	out := make([]string, r.Len())
	for i := range out {
		out[i] = rowText(r, i)
	}
	return out
}

// TestMergeKinds merges rows of all kinds, and compares with the rows that model makes of the same input.
// It checks that exactly the cost of the rows is charged.
func TestMergeKinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]model.Family{model.Samples, model.Exemplars}).Draw(t, "family")
		want := map[model.Key]*model.Rows{}
		var sources []read.Source
		for s := range rapid.IntRange(1, 5).Draw(t, "sources") {
			m := readtest.NewMemory(uint64(s + 1))
			sources = append(sources, m)
			for range rapid.IntRange(0, 4).Draw(t, "series") {
				i := rapid.IntRange(0, 2).Draw(t, "which")
				var rows model.Rows
				for range rapid.IntRange(1, 30).Draw(t, "rows") {
					drawKinds(t, f, rapid.Int64Range(0, 40).Draw(t, "at"), &rows)
				}
				m.AddFamily(tenant, keyFor(i), labelsFor(i), f, &rows)
				if want[keyFor(i)] == nil {
					want[keyFor(i)] = new(model.Rows)
				}
				want[keyFor(i)].AppendRows(&rows, 0, rows.Len())
			}
		}
		req := request(model.Always())
		req.Family = f
		req.Quota.Pool = &model.QueryPool{MaxBytes: 1 << 30}
		set, err := read.New(read.Options{Sources: sources}).Select(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		var rows model.Rows
		if rapid.Bool().Draw(t, "behind other rows") {
			drawKinds(t, f, -5, &rows)
		}
		before := rowTexts(&rows)
		for set.Next(context.Background()) {
			base, used := rows.Len(), req.Quota.Pool.Used()
			held := len(rows.Bytes) + 8*len(rows.Starts) + len(rows.Kinds)
			if err := set.AppendRows(context.Background(), &rows); err != nil {
				t.Fatal(err)
			}
			expect := want[set.Key()]
			delete(want, set.Key())
			expect.NormalizeAs(f)
			if got := rowTexts(&rows); !slices.Equal(got[base:], rowTexts(expect)) || !slices.Equal(got[:len(before)], before) {
				t.Fatalf("got %q after %q, want %q", got[base:], before, rowTexts(expect))
			}
			charged := req.Quota.Pool.Used() - used
			if cost := 16*(rows.Len()-base) + len(rows.Bytes) + 8*len(rows.Starts) + len(rows.Kinds) - held; charged != int64(cost) {
				t.Fatalf("%d bytes are charged for %d", charged, cost)
			}
		}
		if err := set.Err(); err != nil || len(want) > 0 {
			t.Fatalf("%d series are missing: %v", len(want), err)
		}
	})
}

// TestBlobsAreCharged: a few rows may be large.
func TestBlobsAreCharged(t *testing.T) {
	for _, limit := range []int64{5000, 20_000} {
		m := readtest.NewMemory(1)
		var rows model.Rows
		rows.AppendBlob(1, model.KindHistogram, model.AppendHistogram(nil, &model.Histogram{Positive: make([]uint64, 10_000)}), 0)
		m.Add(tenant, keyFor(1), labelsFor(1), &rows)
		req := request(model.Always())
		req.Quota = &model.Quota{MaxBytes: limit}
		if _, err := drain(context.Background(), read.New(read.Options{Sources: []read.Source{m}}), req); (err == nil) != (limit > 10_000) {
			t.Errorf("%d bytes: %v", limit, err)
		}
	}
}

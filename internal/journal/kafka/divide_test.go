package kafka

import (
	"fmt"
	"testing"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
)

// A part that is too large becomes several records that fit, with all rows in their order, and the labels of
// their series in each.
func TestDivide(t *testing.T) {
	b := &model.Batch{Tenant: "team", Signal: model.Metrics}
	want := map[model.Key][]string{}
	for i := range 40 {
		k := model.Key{Lo: uint64(i)}
		b.Labels.Append(uint32(i), model.Labels(fmt.Sprintf("labels of %d", i)))
		for j := range i % 7 {
			b.Samples.Append(int64(j)*1e9, uint64(i*1000+j), 0)
			want[k] = append(want[k], fmt.Sprint(j, i*1000+j))
		}
		for j := range i % 3 {
			b.Exemplars.AppendBlob(int64(j), model.KindExemplar, []byte("exemplar"), 0)
			want[k] = append(want[k], fmt.Sprint("exemplar ", j))
		}
		b.EndSeries(k)
	}
	for _, limit := range []int{1, 150, 300, 1000, 1 << 20} {
		got, series := map[model.Key][]string{}, map[model.Key]bool{}
		parts := fitting(nil, 3, b, limit)
		for _, p := range parts {
			var back model.Batch
			if err := journal.DecodeBatch(p.record, &back); err != nil {
				t.Fatal(err)
			}
			if p.partition != 3 || back.Tenant != "team" || len(p.record) > limit && rowsOf(&back) > 1 {
				t.Errorf("limit %d: a record of partition %d and tenant %q has %d bytes", limit, p.partition, back.Tenant, len(p.record))
			}
			if back.Labels.Len() != len(back.Keys) {
				t.Errorf("limit %d: a record of %d series has the labels of %d", limit, len(back.Keys), back.Labels.Len())
			}
			for i, k := range back.Keys {
				series[k] = true
				if l := string(back.Labels.At(i)); l != fmt.Sprintf("labels of %d", k.Lo) {
					t.Errorf("limit %d: series %s has %q", limit, k, l)
				}
				for j := back.Samples.Begin(i); j < back.Samples.End(i); j++ {
					got[k] = append(got[k], fmt.Sprint(back.Samples.Times[j]/1e9, back.Samples.Values[j]))
				}
				for j := back.Exemplars.Begin(i); j < back.Exemplars.End(i); j++ {
					got[k] = append(got[k], fmt.Sprint("exemplar ", back.Exemplars.Times[j]))
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || len(series) != 40 {
			t.Errorf("limit %d: %d series, got %v, expected %v", limit, len(series), got, want)
		}
		if limit == 1<<20 && len(parts) != 1 {
			t.Errorf("%d records, expected one", len(parts))
		}
	}
}

// A splitter with much memory in any column is not kept, and few are.
func TestSplittersKeepLittle(t *testing.T) {
	kept := make(splitters, 2)
	b := &model.Batch{Tenant: "team", Signal: model.Metrics}
	for i := range 300_000 {
		b.Samples.Append(int64(i), 1, 0)
	}
	b.EndSeries(model.Key{})
	of := func(model.Key) int32 { return 0 }
	split(kept, b, 2, of, 1<<30)
	if len(kept) != 0 {
		t.Error("a splitter with 300,000 samples was kept")
	}
	for range 4 {
		kept.put(new(splitter))
	}
	if len(kept) != 2 {
		t.Errorf("%d splitters were kept, expected 2", len(kept))
	}
}

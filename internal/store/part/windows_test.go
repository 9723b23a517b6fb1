package part

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

// TestActive: no series with a row in the range is left out, and none without one in the windows of the range
// comes.
func TestActive(t *testing.T) {
	racetest.SkipSerial(t)
	rapid.Check(t, func(rt *rapid.T) {
		all := drawWorld(rt)
		o := testOptions(rapid.Bool().Draw(rt, "labels"), Fast)
		o.Windows = file.Windows{Start: 1700000000e9, Length: rapid.SampledFrom([]int64{60e9, 7e9, 3600e9}).Draw(rt, "length"), Count: rapid.IntRange(1, file.MaxWindows).Draw(rt, "count")}
		r, _ := writeSized(t, all, o, rapid.SampledFrom([]file.Sizes{formatSizes, tiny, tinyRuns}).Draw(rt, "sizes"))
		parttest.Must(t, Check(context.Background(), r))
		if r.Meta().Windows != o.Windows {
			rt.Fatalf("windows %+v", r.Meta().Windows)
		}
		from := 1700000000e9 + rapid.Int64Range(-100e9, 4000e9).Draw(rt, "from")
		rg := model.TimeRange{Min: from, Max: from + rapid.Int64Range(-1, 4000e9).Draw(rt, "span")}
		var ranks file.Ranks
		for i := range all {
			if rapid.IntRange(0, 3).Draw(rt, "take") > 0 {
				ranks = append(ranks, uint32(i))
			}
		}
		got, err := r.Active(context.Background(), slices.Clone(ranks), rg)
		parttest.Must(t, err)
		for _, rank := range ranks {
			hit := false
			mask := uint64(0)
			for _, rows := range []*model.Rows{&all[rank].rows, &all[rank].exemplars} {
				for _, at := range rows.Times {
					hit = hit || rg.Contains(at)
				}
				mask |= o.Windows.MaskOf(rows.Times)
			}
			in := slices.Contains(got, rank)
			if hit && !in {
				rt.Fatalf("rank %d has rows in %v and is left out", rank, rg)
			}
			if in && mask&o.Windows.MaskOfRange(rg) == 0 && !(rg.Min <= r.Meta().Range.Min && r.Meta().Range.Max <= rg.Max) {
				rt.Fatalf("rank %d has no rows in the windows of %v", rank, rg)
			}
		}
	})
}

func TestActiveWithoutWindows(t *testing.T) {
	all := avalanche(2, 10, 5)
	r, _ := writePart(t, all, testOptions(false, Fast))
	rg := model.TimeRange{Min: all[0].rows.Times[2], Max: all[0].rows.Times[2]}
	got, err := r.Active(context.Background(), file.Ranks{1, 3}, rg)
	if err != nil || !slices.Equal(got, file.Ranks{1, 3}) {
		t.Fatalf("%v, %v", got, err)
	}
	got, err = r.Active(context.Background(), file.Ranks{1, 3}, model.TimeRange{Min: 1, Max: 2})
	if err != nil || len(got) != 0 {
		t.Fatalf("of a time before all rows: %v, %v", got, err)
	}
}

package compact

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// TestCells has cells cover all times of the inputs once, and end at days.
func TestCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instants := rapid.OneOf(
			rapid.Int64Range(19_990*int64(day), 20_010*int64(day)), rapid.Int64(),
			rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64, math.MaxInt64 - 1, 0, -1, dayOf(math.MaxInt64), dayOf(math.MaxInt64) - 1, dayOf(math.MinInt64 + int64(day))}),
		)
		r := model.TimeRange{Min: instants.Draw(t, "min"), Max: instants.Draw(t, "max")}
		now := rapid.Int64Range(19_995*int64(day), 20_005*int64(day)).Draw(t, "now")
		over := dayOf(now - int64(time.Hour))
		cells := dayCells(r, now, over)
		if len(cells) > recentDays+2 {
			t.Fatalf("%d cells", len(cells))
		}
		for i, c := range cells {
			if c.Min > c.Max || i > 0 && cells[i-1].Max+1 != c.Min {
				t.Fatalf("cell %d of %v", i, cells)
			}
			if (c.level == catalog.Settled) != (c.Max < over) && r.Min <= r.Max {
				t.Fatalf("cell %v of level %d, the day that is not over begins at %d", c, c.level, over)
			}
			if c.Min != math.MinInt64 && dayOf(c.Min) != c.Min || c.Max != math.MaxInt64 && dayOf(c.Max) == dayOf(c.Max+1) {
				t.Fatalf("cell %v does not end with a day", c)
			}
			if c.wholeDay() && c.Max-c.Min != int64(day)-1 {
				t.Fatalf("cell %v is no day", c)
			}
		}
		if r.Min <= r.Max && (r.Min < cells[0].Min || r.Max > cells[len(cells)-1].Max) {
			t.Fatalf("%v is not in %v", r, cells)
		}
	})
	h := halves(7)
	if h[0].Max != 6 || h[1].Min != 7 || h[0].Min != math.MinInt64 || h[1].Max != math.MaxInt64 {
		t.Errorf("%v", h)
	}
}

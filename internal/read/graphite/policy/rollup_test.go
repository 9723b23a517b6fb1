package policy

import (
	"math"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// TestRollOfTooFewPoints: a slot whose points make no value has a row, which gives no value either, but shows
// that points which come later are not all.
func TestRollOfTooFewPoints(t *testing.T) {
	const hour = 1_700_002_800
	for _, method := range []Method{Average, Sum, Last, Max, Min, AvgZero, AbsMax} {
		p := Policy{Archives: []Archive{{60, 180}, {300, 240}, {3600, 100}}, Method: method, XFilesFactor: 0.5}
		var rows, rolled model.Rows
		rows.Append((hour+60)*second, math.Float64bits(7), 0) // one point of five
		for i := range int64(3) {
			rows.Append((hour+3600+60*i)*second, math.Float64bits(1), 0)
		}
		p.Roll(3600, &rows, &rolled)
		if rolled.Len() != 2 || rolled.Times[0] != model.RollupTime(hour, 3600) {
			t.Fatalf("%v: rows at %v", method, rolled.Times)
		}
		w, ok := p.Window(hour-3600, hour+7200, hour+80*3600)
		if !ok {
			t.Fatal("no window")
		}
		want, got := p.Slots(w, &rows, nil), p.Slots(w, &rolled, nil)
		for i := range want {
			if math.Float64bits(want[i]) != math.Float64bits(got[i]) && !(math.IsNaN(want[i]) && math.IsNaN(got[i])) {
				t.Errorf("%v: slot %d: %v, want %v", method, i, got[i], want[i])
			}
		}
		rolled.Append((hour+120)*second, math.Float64bits(8), 0)
		rolled.Normalize()
		if !Conflicts(&rolled) {
			t.Errorf("%v: a later point of the first slot is not seen", method)
		}
	}
}

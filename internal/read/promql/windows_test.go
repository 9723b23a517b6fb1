package promql

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMayShareMilli compares with the definition: neighbours less than a millisecond apart.
func TestMayShareMilli(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfNDistinct(rapid.Int64Range(0, 30*nanosPerMilli), 0, 12, rapid.ID[int64]).Draw(t, "times")
		slices.Sort(times)
		want := false
		for i := 1; i < len(times); i++ {
			want = want || times[i]-times[i-1] < nanosPerMilli
		}
		if got := mayShareMilli(times); got != want {
			t.Fatalf("%v: %t", times, got)
		}
	})
}

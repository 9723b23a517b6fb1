package samples

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPosOf compares what lies before a rank, asked for in any order, with what a walk over all ranks counts.
func TestPosOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d sampleDir
		var want []columnPos
		var pos columnPos
		mixed := rapid.Bool().Draw(t, "mixed")
		for range rapid.IntRange(1, 6).Draw(t, "stretches") {
			same := rapid.Bool().Draw(t, "same") // stretches of one row each are counted together
			for range rapid.IntRange(1, 100).Draw(t, "ranks") {
				n, kind := int64(1), int64(0)
				if !same {
					n = rapid.SampledFrom([]int64{0, 1, 2, shortRows - 1, shortRows, 40}).Draw(t, "rows")
				}
				if mixed && n > 0 && !same {
					kind = rapid.Int64Range(0, 1).Draw(t, "kind")
				}
				d.counts, want = append(d.counts, n), append(want, pos)
				if mixed {
					d.mixed = append(d.mixed, kind)
				}
				if n == 1 {
					pos.single++
				} else if n > 1 {
					pos.multi++
				}
				if n < shortRows && kind == 0 {
					pos.short += uint32(n)
				} else {
					pos.long++
				}
			}
		}
		if d.count() != nil {
			t.Skip("no rows")
		}
		if d.end != pos {
			t.Fatalf("in all %v, want %v", d.end, pos)
		}
		for range 100 {
			if i := rapid.IntRange(0, len(want)-1).Draw(t, "rank"); d.posOf(i) != want[i] {
				t.Fatalf("before rank %d lies %v, want %v", i, d.posOf(i), want[i])
			}
		}
	})
}

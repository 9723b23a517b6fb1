package model

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestRollup: a rollup is read back bit for bit, is a histogram that is stored as it is, and no other
// histogram is taken for one.
func TestRollup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := func(name string) float64 { return math.Float64frombits(rapid.Uint64().Draw(t, name)) }
		r := Rollup{
			Step: rapid.Int64Range(1, 86400).Draw(t, "step"), Count: rapid.Int64Range(0, 86400).Draw(t, "count"),
			Sum: value("sum"), Min: value("min"), Max: value("max"), Last: value("last"), Given: rapid.Bool().Draw(t, "given"),
		}
		if r.HasOwn = rapid.Bool().Draw(t, "own"); r.HasOwn {
			r.Own = value("own value")
		}
		blob := AppendRollup(nil, &r)
		var back Rollup
		if !ParseRollup(blob, &back) || string(AppendRollup(nil, &back)) != string(blob) || back.Step != r.Step || back.Count != r.Count {
			t.Fatalf("%+v becomes %+v", r, back)
		}
		var h Histogram
		if err := h.Parse(blob); err != nil || string(AppendHistogram(nil, &h)) != string(blob) {
			t.Fatalf("not a histogram: %v", err)
		}
		var rows Rows
		rows.AppendBlob(1, KindHistogram, blob, 0)
		if step := rows.RollupStep(0); step != r.Step {
			t.Fatalf("step %d of %+v", step, r)
		}
		if n := rapid.IntRange(0, len(blob)-1).Draw(t, "cut"); ParseRollup(blob[:n], &back) {
			t.Fatalf("%d of %d bytes are a rollup", n, len(blob))
		}
		h.Schema = rapid.Int32Range(-53, 1000).Draw(t, "schema")
		rows.Reset()
		rows.AppendBlob(1, KindHistogram, AppendHistogram(nil, &h), 0)
		if ParseRollup(rows.Blob(0), &back) || rows.RollupStep(0) != 0 {
			t.Fatalf("a histogram of schema %d is taken for a rollup", h.Schema)
		}
	})
}

package model

import (
	"math"
	"slices"
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

// TestSummary: a summary is read back bit for bit, is a histogram that is stored as it is, and is not taken
// for a rollup.
func TestSummary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := func(name string) float64 { return math.Float64frombits(rapid.Uint64().Draw(t, name)) }
		s := Summary{
			Step: rapid.Int64Range(1, 86400).Draw(t, "step"), Count: rapid.Int64Range(0, 1<<40).Draw(t, "count"),
			Sum: value("sum"), Min: value("min"), Max: value("max"), Last: value("last"), Others: rapid.Bool().Draw(t, "others"),
		}
		if s.HasFirst = rapid.Bool().Draw(t, "has first"); s.HasFirst {
			s.First = value("first")
		}
		blob := AppendSummary(nil, &s)
		var back Summary
		if !ParseSummary(blob, &back) || string(AppendSummary(nil, &back)) != string(blob) || back.Step != s.Step || back.Count != s.Count {
			t.Fatalf("%+v becomes %+v", s, back)
		}
		var h Histogram
		if err := h.Parse(blob); err != nil || string(AppendHistogram(nil, &h)) != string(blob) {
			t.Fatalf("not a histogram: %v", err)
		}
		var rows Rows
		rows.AppendBlob(1, KindHistogram, blob, 0)
		if step := rows.SummaryStep(0); step != s.Step || rows.RollupStep(0) != 0 || ParseRollup(blob, new(Rollup)) {
			t.Fatalf("step %d of %+v", step, s)
		}
		if n := rapid.IntRange(0, len(blob)-1).Draw(t, "cut"); ParseSummary(blob[:n], &back) {
			t.Fatalf("%d of %d bytes are a summary", n, len(blob))
		}
		h.Schema = rapid.Int32Range(-53, 1000).Draw(t, "schema")
		rows.Reset()
		rows.AppendBlob(1, KindHistogram, AppendHistogram(nil, &h), 0)
		if ParseSummary(rows.Blob(0), &back) || rows.SummaryStep(0) != 0 {
			t.Fatalf("a histogram of schema %d is taken for a summary", h.Schema)
		}
	})
}

// TestAppendSummaries: which points a slot has, and what is apart.
func TestAppendSummaries(t *testing.T) {
	const second = int64(1e9)
	var rows, dst Rows
	add := func(at int64, v float64) { rows.Append(at, math.Float64bits(v), 0) }
	add(600*second, 1)     // in the first millisecond of a slot
	add(600*second+999, 2) // in the same
	add(601*second, 3)
	add(602*second, 4)
	add(602*second+5, math.Float64frombits(StaleNaN)) // the last of its millisecond
	add(899*second, -5)
	add(1200*second+1e6, math.Float64frombits(StaleNaN))
	add(1500*second+1e6, math.NaN())
	add(1501*second, 7)
	rows.AppendBlob(1800*second, KindHistogram, AppendHistogram(nil, &Histogram{}), 0)
	dst.Append(1700*second, 0, 0) // a copy of another row
	AppendSummaries(300, &rows, &dst)
	want := []Summary{
		{Step: 300, HasFirst: true, First: 2, Count: 2, Sum: -2, Min: -5, Max: 3, Last: -5},
		{Step: 300},
		{Step: 300, Count: 2, Sum: math.NaN(), Min: 7, Max: 7, Last: 7, Others: true},
		{Step: 300, Others: true},
	}
	times := []int64{900, 1500, 1800, 2100}
	if dst.Len() != 1+len(want) {
		t.Fatalf("%d rows, want %d", dst.Len(), 1+len(want))
	}
	for i := range want {
		blob := AppendSummary(nil, &want[i])
		var got Summary
		if !ParseSummary(dst.Blob(1+i), &got) || !slices.Equal(blob, dst.Blob(1+i)) && want[i].Sum == want[i].Sum || dst.Times[1+i] != times[i]*second-301 {
			t.Errorf("summary %d at %d is %+v, want %+v", i, dst.Times[1+i], got, want[i])
		}
	}
}

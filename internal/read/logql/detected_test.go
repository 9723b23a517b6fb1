package logql

import (
	"context"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/readtest"
)

// TestDetectedOfAHead asks for labels and fields of buffers and local parts. Labels read no page.
func TestDetectedOfAHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{readtest.NewWorld()}
		for i := range rapid.IntRange(1, 30).Draw(t, "streams") {
			w.Streams = append(w.Streams, model.LabelsOf("s", fmt.Sprint("name", i), "id", fmt.Sprint(i+10), "app", "x"))
		}
		e, closeHead := drawHead(t, w)
		defer closeHead()
		all := model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64 - 1}
		cost := &model.Cost{}
		labels, err := e.DetectedLabels(context.Background(), &Selection{Tenants: []string{oneTenant}, Range: all, Quota: new(model.Quota), Cost: cost})
		if err != nil {
			t.Fatal(err)
		}
		var want []DetectedLabel
		if n := len(w.Lines); n > 0 {
			want = []DetectedLabel{{"app", 1}, {"s", n}}
		}
		if fmt.Sprint(labels) != fmt.Sprint(want) {
			t.Fatalf("got %v, expected %v", labels, want)
		}
		if n := cost.TextPages.Load(); n > 0 {
			t.Fatalf("%d pages of lines were looked at", n)
		}
		found, err := e.DetectedFields(context.Background(), &Query{
			Tenants: []string{oneTenant}, Prepared: prepared(`{app="x"}`), Start: math.MinInt64, End: math.MaxInt64, Quota: new(model.Quota), Cost: cost,
		}, 100)
		if err != nil {
			t.Fatal(err)
		}
		traces := make(map[string]bool)
		for _, lines := range w.Lines {
			for _, l := range lines {
				if v := l.Metadata.Get("trace"); v != nil {
					traces[string(v)] = true
				}
			}
		}
		seen := false
		for _, f := range found {
			if seen = seen || f.Name == "trace"; f.Name == "trace" && f.Cardinality < len(traces) {
				t.Fatalf("%+v: expected at least %d values", f, len(traces))
			}
		}
		if len(traces) > 0 && !seen {
			t.Fatalf("no trace in %+v", found)
		}
	})
}

package promql

import (
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

// TestProjectionAllocates: series that the engine cannot tell apart share their labels.
func TestProjectionAllocates(t *testing.T) {
	sets := make([]model.Labels, 1000)
	for i := range sets {
		sets[i] = model.LabelsOf("__name__", "m", "instance", fmt.Sprint(i), "job", fmt.Sprint(i/500), "z", "z")
	}
	p := projectionOf(&storage.SelectHints{Func: "count", By: true, Grouping: []string{"job", "none"}}, new(model.Quota))
	var b labels.ScratchBuilder
	var got labels.Labels
	alloctest.AtMost(t, 10, 3, func() {
		for _, l := range sets {
			var err error
			if got, err = p.labels(&b, l); err != nil {
				t.Fatal(err)
			}
		}
	})
	if want := labels.FromStrings("__name__", "m", "job", "1"); !labels.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, h := range []*storage.SelectHints{nil, {Func: "count"}, {Func: "topk", By: true}, {Func: "rate", By: true}, {Func: "sum", By: true, ShardCount: 2}} {
		if projectionOf(h, new(model.Quota)) != nil {
			t.Errorf("%+v", h)
		}
	}
}

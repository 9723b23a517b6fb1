package write

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

// pieces is a wire that also has the labels of a series in canonical form.
type pieces struct{ wire }

func (p pieces) CanonicalLabels(i int) model.Labels { return model.Labels(onWire(p.wire[i])) }

func drawWire(t *rapid.T) wire {
	name := rapid.SampledFrom([]string{"__name__", "a", "b", "job", strings.Repeat("n", 20), strings.Repeat("n", 200), "\xff"})
	value := rapid.SampledFrom([]string{"x", "y", strings.Repeat("v", 30), strings.Repeat("v", 300), "\xff", "ü"})
	w := make(wire, rapid.IntRange(1, 6).Draw(t, "series"))
	for i := range w {
		if i > 0 && rapid.Bool().Draw(t, "neighbour") { // the series before with a label changed
			w[i] = append(w[i], w[i-1]...)
			if at := rapid.IntRange(0, len(w[i])-1).Draw(t, "at"); at%2 == 0 {
				w[i][at] = name.Draw(t, "name")
			} else {
				w[i][at] = value.Draw(t, "value")
			}
			continue
		}
		for range rapid.IntRange(1, 4).Draw(t, "labels") {
			w[i] = append(w[i], name.Draw(t, "name"), value.Draw(t, "value"))
		}
	}
	return w
}

// TestCanonicalLabels: labels taken as they are give the same result as labels that are built.
func TestCanonicalLabels(t *testing.T) {
	limits := Limits{MaxLabels: 3, MaxNameBytes: 100, MaxValueBytes: 100}
	rapid.Check(t, func(t *rapid.T) {
		w := drawWire(t)
		ages := make([]time.Duration, len(w))
		var got [2]*store
		var results [2]Result
		for i := range got {
			got[i] = &store{}
			p := newPath(got[i], limits)
			b := send(p, w, ages...)
			if i == 1 {
				b.Source = pieces{w}
			}
			var err error
			if results[i], err = p.Push(context.Background(), b); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(got[0].batches, got[1].batches, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("batches (-built +taken):\n%s", diff)
		}
		if diff := cmp.Diff(results[0], results[1], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("results (-built +taken):\n%s", diff)
		}
	})
}

func TestOrdinaryAllocates(t *testing.T) {
	p := newPath(&store{}, Limits{MaxLabels: 5})
	a, b := model.LabelsOf("__name__", "a", "job", "j"), model.LabelsOf("__name__", "b", "job", "j")
	alloctest.AtMost(t, 0, 100, func() {
		if !p.o.Limits.usableAsIs(model.Metrics, nil, a) || !p.o.Limits.usableAsIs(model.Metrics, a, b) {
			t.Fatal("labels are taken for odd ones")
		}
	})
}

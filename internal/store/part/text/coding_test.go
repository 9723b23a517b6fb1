package text

import (
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

func TestCoders(t *testing.T) {
	for _, c := range []struct{ workers, units, want int }{{1, 4, 1}, {2, 4, 2}, {9, 4, 4}, {9, 1, 1}} {
		if got := (&Writer{Workers: c.workers}).coders(c.units); got != c.want {
			t.Errorf("%d goroutines of %d code %d units, want %d", got, c.workers, c.units, c.want)
		}
	}
}

// TestCodingPanics: a panic of any goroutine that codes is one of the caller, after all of them have ended.
func TestCodingPanics(t *testing.T) {
	for _, workers := range []int{1, 4} {
		w := newPart(true, formatSizes)
		w.text.Workers = workers
		for range unitsAtOnce {
			w.text.units = append(w.text.units, &codedUnit{counts: []int64{1}}) // without the row that it counts
		}
		w.text.waiting = unitsAtOnce
		err := model.Caught(w.text.codeUnits)
		if stack := model.StackOf(err); !strings.Contains(stack, "codeSome") {
			t.Errorf("%d goroutines: %v, with the stack %q", workers, err, stack)
		}
		for i, u := range w.text.units {
			if model.StackOf(u.err) == "" {
				t.Errorf("%d goroutines: unit %d: %v", workers, i, u.err)
			}
		}
	}
}

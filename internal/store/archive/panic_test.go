package archive

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// TestPanicsEndTheQuery, and not the process, whichever read of a block meets one. The next query has its
// answer.
func TestPanicsEndTheQuery(t *testing.T) {
	w := &world{objects: make(map[string][]byte)}
	for range 3 {
		w.addMany(t, 2000, 1, 2)
	}
	whole := model.TimeRange{Min: 0, Max: 10}
	for what, ask := range map[string]func(*Archive) error{
		"rows": func(a *Archive) error {
			_, err := read(a, request("a", whole))
			return err
		},
		"names": func(a *Archive) error {
			_, release, err := a.Names(t.Context(), request("a", whole))
			if err == nil {
				release()
			}
			return err
		},
		"labels": func(a *Archive) error {
			return a.LabelNames(t.Context(), request("a", whole), func([]byte) error { return nil })
		},
		"bill": func(a *Archive) error {
			req := request("a", whole)
			req.Cost.Bill = new(model.Bill)
			return a.Bill(t.Context(), req)
		},
	} {
		caught := 0
		for n := int64(1); ; n++ {
			a := New(Options{Catalog: w, Bucket: w, Pages: newCache(), Seed: seed})
			a.reach = reach{tail: 300, span: 64 << 10}
			var reads atomic.Int64
			w.failBy(func(string, int64) error {
				if reads.Add(1) == n {
					panic("a hostile page")
				}
				return nil
			})
			// What a query reads itself, its endpoint catches.
			err := model.Caught(func() error { return ask(a) })
			w.failBy(nil)
			if reads.Load() < n {
				break
			}
			if err != nil && !strings.Contains(err.Error(), "unexpected error: a hostile page") {
				t.Fatalf("%s, read %d: %v", what, n, err)
			}
			if err != nil {
				caught++
			}
			if err := ask(a); err != nil {
				t.Fatalf("%s, after read %d: %v", what, n, err)
			}
		}
		if caught < 3 {
			t.Errorf("%s: %d reads failed", what, caught)
		}
	}
}

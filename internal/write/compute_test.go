package write

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestRequestsCompute: the requests of an only tenant compute as they come. While others write, those of a
// tenant keep to the processors of the machine, and to all but one while another tenant's computes.
func TestRequestsCompute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath(new(store), Limits{})
		p.processors.Count = 4
		var computing atomic.Int64
		var all sync.WaitGroup
		done := make(chan struct{})
		enter := func(tenant string) {
			g, err := p.Admit(t.Context(), tenant, 1)
			if err != nil {
				t.Error(err)
				return
			}
			defer g.Release()
			_, end := g.Compute(t.Context())
			defer end()
			computing.Add(1)
			defer computing.Add(-1)
			select {
			case <-done:
			case <-time.After(time.Second):
			}
		}
		computes := func(want int64, when string) {
			t.Helper()
			if synctest.Wait(); computing.Load() != want {
				t.Errorf("%s: %d requests compute, want %d", when, computing.Load(), want)
			}
		}
		for range 8 {
			all.Go(func() { enter("a") })
		}
		computes(8, "alone")
		time.Sleep(2 * time.Second)
		all.Go(func() { enter("b") })
		time.Sleep(2 * time.Second)
		for range 8 {
			all.Go(func() { enter("a") })
		}
		computes(4, "others write at times")
		all.Go(func() { enter("b") })
		computes(5, "another one comes")
		if n := p.processors.Waiting(); n != 4 {
			t.Errorf("%d requests wait", n)
		}
		close(done)
		all.Wait()
		computes(0, "after all")
	})
}

package victorialogs

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
)

// TestLagging: a summary takes what was sent for a query at the same time, unless it may be kept until lines
// change. A query takes nothing that was asked for before.
func TestLagging(t *testing.T) {
	w := newSampleWorld(t, nil, &sampleServer{})
	look := func(end int64, mayLag bool) int {
		t.Helper()
		w.mu.Lock()
		w.asked = nil
		w.mu.Unlock()
		req := request()
		req.Range = model.TimeRange{Min: w.now.Load() - int64(time.Hour), Max: end}
		req.Cost.MayLag = mayLag
		cursors, err := w.SelectText(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cursors {
			c.Close()
		}
		if used := req.Quota.Charged(); used != (model.Charge{}) {
			t.Errorf("%v is still taken", used)
		}
		w.watch.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.asked)
	}
	now := w.now.Load()
	for i, step := range []struct {
		mayLag bool
		asked  int
	}{{true, 1}, {true, 0}, {false, 1}, {true, 0}} {
		if n := look(now, step.mayLag); n != step.asked {
			t.Errorf("step %d: %d requests, want %d", i, n, step.asked)
		}
	}
	w.mu.Lock()
	w.lines = append(w.lines, sampleLine{time: now, text: "a"})
	w.mu.Unlock()
	before := testutil.ToFloat64(w.metrics.rows)
	for range 2 {
		d := &directory{source: w.Source, req: request()}
		d.req.Range = model.TimeRange{Min: now - 1, Max: now}
		d.req.Cost.MayLag = true
		if err := d.query(context.Background(), kindLines, d.filter.in(d.req.Range), func([]field) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := testutil.ToFloat64(w.metrics.rows) - before; n != 1 {
		t.Errorf("%.0f lines are counted as fetched", n)
	}
	closed := now - int64(30*time.Minute)
	for range 3 { // it is counted until then
		look(closed, true)
		w.now.Add(int64(watch.Settling))
	}
	closed = w.now.Load() - int64(30*time.Minute)
	for range 2 {
		if n := look(closed, true); n != 1 {
			t.Errorf("%d requests for a summary of lines that have settled", n)
		}
	}
}

package head

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// walk returns how many series a request selects; with an error of Select, none is read.
func (r *rig) walk(req *model.Request) (n int64, err error) {
	r.t.Helper()
	cs, err := r.head.Source(nil).Select(context.Background(), req)
	if err != nil {
		return 0, err
	}
	for cs[0].Next(context.Background()) {
		n++
	}
	r.must(cs[0].Err())
	r.must(cs[0].Close())
	return n, nil
}

// equal returns a matcher for one value.
func equal(name, value string) model.Matcher {
	return model.Matcher{Name: name, Value: value, Match: func(v string) bool { return v == value }}
}

// TestTooManySeries: a request for more series than its query may select is refused before any is read, if a
// data part alone has so many of them.
func TestTooManySeries(t *testing.T) {
	r := newRig(t, nil)
	r.push("a", 0, 700, r.now, 1)
	r.push("b", 0, 900, r.now, 1)
	r.must(r.head.Flush(t.Context()))
	r.push("a", 700, 800, r.now+10, 1) // in buffers
	for _, c := range []struct {
		name     string
		change   func(*model.Request)
		most     int64
		selected int64
		refused  bool
	}{
		{name: "all", most: 699, refused: true},
		{name: "all, and no more than allowed in the part", most: 700, selected: 800},
		{name: "those of the part, by their time", most: 600, refused: true, change: func(q *model.Request) { q.Range.Max = r.now }},
		{name: "half of the part's time", most: 600, selected: 100, change: func(q *model.Request) { q.Range.Min = r.now + 1 }},
		{name: "one metric", most: 80, selected: 114, change: func(q *model.Request) { q.Matchers = []model.Matcher{equal("__name__", "metric_3")} }},
		{name: "one job, as all have", most: 600, refused: true, change: func(q *model.Request) { q.Matchers = []model.Matcher{equal("job", "j")} }},
		{name: "all, hidden in the part", most: 600, selected: 100, change: func(q *model.Request) {
			q.Horizon = &model.Horizon{Latest: r.now + 1, Before: func(model.Labels) int64 { return r.now + 1 }}
		}},
		{name: "labels", most: 600, selected: 800, change: func(q *model.Request) { q.LabelsOnly = true }},
		{name: "no limit", most: 0, selected: 800},
		{name: "another tenant", most: 800, refused: true, change: func(q *model.Request) { q.Tenant = "b" }},
	} {
		req := everything("a")
		req.Quota.MaxSeries = c.most
		if c.change != nil {
			c.change(req)
		}
		n, err := r.walk(req)
		if n != c.selected || errors.Is(err, model.ErrLimit) != c.refused || (err != nil) != c.refused {
			t.Errorf("%s, limit %d: %d series, %v", c.name, c.most, n, err)
		}
		if c.refused && !model.ReadsTooMuch(err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestTooManySeriesWithLostLabels: after labels were lost, nothing is certain of the number of series.
func TestTooManySeriesWithLostLabels(t *testing.T) {
	lost := false
	r := newRig(t, func(o *Options) { o.LabelsLost = func() bool { return lost } })
	r.push("a", 0, 700, r.now, 1)
	r.must(r.head.Flush(t.Context()))
	for _, lost = range []bool{false, true} {
		req := everything("a")
		req.Quota.MaxSeries = 699
		if n, err := r.walk(req); (err == nil) != lost || lost && n != 700 {
			t.Errorf("labels lost: %t; %d series, %v", lost, n, err)
		}
	}
}

// TestOnlyTooManySeries: whatever the parts, buffers and matchers are, a request that is refused before it is
// read selects more series than it may.
func TestOnlyTooManySeries(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	refused := 0
	for world := range 20 {
		r := newRig(t, nil)
		for step := range 1 + rnd.IntN(6) {
			from := rnd.IntN(150)
			r.push("a", from, from+1+rnd.IntN(150), r.now+int64(step), 1)
			switch rnd.IntN(4) {
			case 0:
			case 1:
				r.push("b", 0, 300, r.now, 1)
				r.must(r.head.Flush(t.Context()))
			case 2:
				r.must(r.head.Flush(t.Context()))
				_, err := r.head.Work(t.Context())
				r.must(err)
			default:
				r.must(r.head.Flush(t.Context()))
			}
		}
		for range 40 {
			req := everything("a")
			if rnd.IntN(2) == 0 {
				req.Range.Min = r.now + int64(rnd.IntN(6))
				req.Range.Max = req.Range.Min + int64(rnd.IntN(6))
			}
			switch rnd.IntN(4) {
			case 0:
				req.Matchers = []model.Matcher{equal("__name__", fmt.Sprint("metric_", rnd.IntN(8)))}
			case 1:
				below := rnd.IntN(320)
				req.Matchers = []model.Matcher{{Name: "i", Op: model.MatchRegexp, Match: func(v string) bool {
					n := 0
					_, err := fmt.Sscan(v, &n)
					return err == nil && n < below
				}}}
			}
			selected, err := r.walk(req)
			r.must(err)
			req.Quota, req.Cost = &model.Quota{MaxSeries: 1 + rnd.Int64N(250)}, new(model.Cost)
			switch n, err := r.walk(req); {
			case err == nil && n != selected:
				t.Fatalf("world %d: %d series, and %d with a limit of %d", world, selected, n, req.Quota.MaxSeries)
			case err == nil:
			case !model.ReadsTooMuch(err) || selected <= req.Quota.MaxSeries:
				t.Fatalf("world %d: %d series, limit %d: %v", world, selected, req.Quota.MaxSeries, err)
			default:
				refused++
			}
		}
	}
	if refused < 50 {
		t.Errorf("%d requests were refused", refused)
	}
}

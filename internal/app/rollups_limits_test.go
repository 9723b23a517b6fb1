package app

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
)

// TestPromRollupsLimits: a query about a past day that may use rollups counts towards its limits no more than
// what it reads of the range that it asks for.
func TestPromRollupsLimits(t *testing.T) {
	p := policiesOf(t, "[all]\npattern = .*\nretentions = 15s:1d,5m:30d,1h:3y\n", "")
	s := newSetup(t, func(o *EngineOptions) {
		o.Rollups, o.Summaries, o.Retention = func() *policy.Policies { return p }, true, keeping(3*day)
	})
	begin := s.now / int64(day) * int64(day)
	s.now = begin
	const series = 60
	pushDay := func() {
		from := s.now
		s.now += int64(day)
		for i := range series {
			name := "up"
			if i == 0 {
				name = "one"
			}
			l := model.LabelsOf("__name__", name, "i", fmt.Sprint(i))
			b := s.Path().Batch("a", model.Metrics)
			b.Source = oneSeries(l)
			for at := from; at < s.now; at += 15 * int64(time.Second) {
				b.Samples.Append(at, math.Float64bits(float64(at/1e9%97)), 0)
			}
			b.EndSeries(l.Key(s.Path().Seed(), model.Metrics))
			res, err := s.Path().Push(context.Background(), b)
			must(t, err)
			if len(res.Rejected) > 0 {
				t.Fatalf("rejected: %v", res.Rejected)
			}
			s.Path().Recycle(b)
		}
		must(t, s.Ship())
	}
	pushDay()
	pushDay()
	s.now += int64(2 * time.Hour)
	s.compact(t)
	e := newTestEngine()
	ask := func(rollups bool, text string, at int64, quota *model.Quota) (*shalepromql.Queryable, string, error) {
		q := &shalepromql.Queryable{Read: s.Querier(), Tenant: "a", Quota: quota, Cost: new(model.Cost)}
		if rollups {
			q.Rollups = s.promRollups()
		}
		query, err := e.NewInstantQuery(context.Background(), q, nil, text, time.Unix(0, at))
		must(t, err)
		defer query.Close()
		r := query.Exec(context.Background())
		return q, r.String(), r.Err
	}
	at := begin + int64(10*time.Minute)
	for _, text := range []string{
		"one", "sum(one)", "rate(one[5m])", "sum_over_time(one[7m])", "count_over_time(one[10m])", "up", "sum(up)",
		"max_over_time(up[5m])", "one + on() group_right() up", "quantile(0.5, up)",
	} {
		plain, want, err := ask(false, text, at, new(model.Quota))
		must(t, err)
		for what, quota := range map[string]*model.Quota{
			"samples": {MaxSamples: max(1000, 2*plain.Cost.Samples.Load())}, "range": {MaxRange: time.Hour}, "bytes": {MaxBytes: 4 << 20},
		} {
			q, got, err := ask(true, text, at, quota)
			if err != nil {
				t.Errorf("%s with a limit of its %s: %v", text, what, err)
				continue
			}
			if got != want {
				t.Errorf("%s is %s, want %s", text, got, want)
			}
			if got, most := q.Cost.Samples.Load(), plain.Cost.Samples.Load(); got > most {
				t.Errorf("%s read %d samples, and %d without rollups", text, got, most)
			}
		}
	}
	if _, _, err := ask(true, "sum_over_time(one[7m])", at, &model.Quota{MaxRange: 6 * time.Minute}); err == nil || !strings.Contains(err.Error(), "query.max-range") {
		t.Errorf("a range of 7m with a limit of 6m: %v", err)
	}

	// Where only rollups are left, the slot that crosses the end of the range refuses the query.
	s.now = begin + 6*int64(day)
	must(t, s.push("a", model.LabelsOf("__name__", "late"), s.now, 1))
	must(t, s.Ship())
	s.expire(t)
	if s.countAlone() == 0 {
		t.Fatal("no points have expired")
	}
	for _, text := range []string{"one", "rate(one[1m])", "sum(one)", "sum_over_time(one[1m])"} {
		_, got, err := ask(true, text, begin+int64(2*time.Minute), new(model.Quota))
		if err == nil || !strings.Contains(err.Error(), "only rollups") {
			t.Errorf("%s is %s, %v, of a time of which only rollups are left", text, got, err)
		}
	}
	if _, got, err := ask(true, "count_over_time(one[5m])", at, &model.Quota{MaxSamples: 100, MaxRange: time.Hour}); err != nil || !strings.Contains(got, "=> 20") {
		t.Errorf("the count of 5m is %s, %v, want 20", got, err)
	}
	must(t, s.Close())
}

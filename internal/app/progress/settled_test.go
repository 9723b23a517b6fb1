package progress

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/results"
)

// TestSettledQuestions: ingesters are asked no more than it takes, and what they said is never used for rows
// that may have come since.
func TestSettledQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ship = 10 * time.Minute
		var asked []string
		late, failed := map[string]int64{}, error(nil) // the time of a late row of a tenant
		x := &Settled{
			Holds: func(ctx context.Context, tenant string, _ model.Signal, r model.TimeRange) (bool, error) {
				asked = append(asked, tenant)
				if failed != nil {
					<-ctx.Done() // as while an ingester lags
					return false, failed
				}
				at, ok := late[tenant]
				return ok && at >= r.Min && at <= r.Max, nil
			},
			ShipEvery: ship, Now: func() int64 { return time.Now().UnixNano() }, Changes: new(results.Changes), Losses: func() int { return 0 },
		}
		ago := func(d time.Duration) int64 { return time.Now().Add(-d).UnixNano() }
		expect := func(what string, tenants []string, until time.Duration, questions ...string) {
			t.Helper()
			asked = nil
			to, ok := x.Until(t.Context(), tenants, model.Metrics, model.TimeRange{Min: ago(24 * time.Hour), Max: ago(0)})
			if ok != (until != 0) || ok && to != ago(until) || !slices.Equal(asked, questions) {
				t.Errorf("%s: %v, %v (%v before now); asked for %v", what, to, ok, time.Duration(ago(0)-to), asked)
			}
		}
		both := []string{"a", "b"}
		expect("nothing is held", both, 2*ship, "a", "b")
		expect("nothing is held, again", both, 2*ship, "a", "b")
		late["a"] = ago(time.Hour)
		expect("a row that came just now", both, 12*ship, "a", "a", "b")
		expect("again: the yes is remembered, the no is not", both, 12*ship, "a", "b")
		late["a"] = ago(23 * time.Hour)
		expect("a row in all ranges", both, 0, "a", "a")
		expect("again: all are remembered", both, 0)
		time.Sleep(time.Second)
		clear(late)
		expect("a second later", both, 2*ship, "a", "b")

		failed = errors.New("it lags")
		began := time.Now()
		expect("no answer", both, 0, "a")
		if took := time.Since(began); took != patience {
			t.Errorf("a question took %v", took)
		}
		failed = nil
		expect("the next does not wait", both, 0)
		time.Sleep(time.Second)
		expect("but asks after a second", both, 2*ship, "a", "b")
		failed = errors.New("it lags")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		x.Until(ctx, both, model.Metrics, model.TimeRange{Min: ago(24 * time.Hour), Max: ago(0)})
		failed = nil
		expect("a query that is cancelled says nothing of ingesters", both, 2*ship, "a", "b")
	})
}

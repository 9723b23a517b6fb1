package progress

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
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
			ShipEvery: ship, Now: func() int64 { return time.Now().UnixNano() }, Changed: func() {}, Losses: func() []catalog.GivenUp { return nil },
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

// TestOtherLosses: kept results end whenever something else is given up than before, also if it is as much.
// What an ingester has recorded of a topic is the same loss.
func TestOtherLosses(t *testing.T) {
	loss := func(epoch uint64, node string) catalog.GivenUp {
		return catalog.GivenUp{Skip: catalog.Skip{Node: node, Epoch: epoch, From: 1, To: 2, Why: "gone"}}
	}
	recorded := loss(1, "p0001")
	recorded.Before = 5
	var lost []catalog.GivenUp
	ended := 0
	x := &Settled{
		Holds: func(context.Context, string, model.Signal, model.TimeRange) (bool, error) { return false, nil },
		Now:   func() int64 { return 0 }, Losses: func() []catalog.GivenUp { return lost }, Changed: func() { ended++ },
	}
	for i, c := range []struct {
		lost []catalog.GivenUp
		ends int
	}{
		{nil, 0},
		{[]catalog.GivenUp{loss(1, "p0000"), loss(1, "p0001")}, 1},
		{[]catalog.GivenUp{loss(1, "p0000"), loss(1, "p0001"), recorded}, 0},
		{[]catalog.GivenUp{recorded, loss(1, "p0000")}, 0},
		{[]catalog.GivenUp{recorded, loss(2, "p0000")}, 1},
		{[]catalog.GivenUp{recorded}, 1},
	} {
		lost, ended = c.lost, 0
		x.Until(t.Context(), []string{"a"}, model.Metrics, model.TimeRange{})
		if ended != c.ends {
			t.Errorf("%d: kept results ended %d times, expected %d", i, ended, c.ends)
		}
	}
}

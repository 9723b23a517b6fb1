package gateway

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/known"
	"github.com/shaledb/shale/internal/store/topics"
)

// TestCreation: each gateway grants its part of a rate, with a burst of a minute's worth, and the limit that
// refuses is named. What is kept of tenants is bounded.
func TestCreation(t *testing.T) {
	c := &creation{rates: Rates{All: 10, Of: func(tenant string) int64 { return map[string]int64{"a": 4}[tenant] }}, gateways: 2, tenants: map[string]*spent{}}
	now := time.Unix(1000, 0)
	take := func(tenant string, n, want int, limit string) {
		t.Helper()
		allowed, err := c.take(tenant, n, now)
		var named *model.LimitError
		if allowed != want || errors.As(err, &named) != (limit != "") || named != nil && (named.Limit != limit || named.Tenant != (limit == "limits.tenant-new-series")) {
			t.Errorf("%s: %d of %d, %v", tenant, allowed, n, err)
		}
	}
	take("a", 100, 100, "")
	take("a", 100, 20, "limits.tenant-new-series") // 4 a second, for a minute, half of it
	take("b", 300, 180, "limits.new-series")
	take("b", 0, 0, "")
	now = now.Add(10 * time.Second)
	take("a", 50, 20, "limits.tenant-new-series")
	take("b", 50, 30, "limits.new-series")
	now = now.Add(time.Hour)
	take("a", 120, 120, "")
	c.rates = Rates{Of: func(string) int64 { return 1 }}
	for i := range maxSpent + 10 {
		take(fmt.Sprint(i), 1, 1, "")
	}
	if len(c.tenants) > maxSpent {
		t.Errorf("%d tenants are kept", len(c.tenants))
	}
	take("one that is new", 31, 30, "limits.tenant-new-series")
	c.rates = Rates{}
	take("a", 1_000_000, 1_000_000, "")
}

// failing is a log that fails.
type failing struct{ err error }

func (f *failing) Append(context.Context, *model.Batch) error { return f.err }

// TestFailedAppendsCostNoCreation: while Kafka is away, however often a sender repeats its new series, it may
// create them once Kafka is back. What was appended counts.
func TestFailedAppendsCostNoCreation(t *testing.T) {
	a, err := known.NewAnnouncer(known.AnnouncerOptions{Bytes: 1 << 20, Topic: known.Topic{Epoch: 1, Partitions: 1}, Refresh: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s := newSeries(&Options{
		Epoch: topics.Epoch{Number: 1, Partitions: 1}, Registerer: prometheus.NewRegistry(), Rates: Rates{All: 1, Of: func(string) int64 { return 1 }},
	}, a)
	s.take(&state.Series{Partition: state.Partition{Epoch: 1}, Active: map[string]int64{"t": 1}, Known: map[string]state.Filter{"t": state.NewFilter(1)}}, time.Now())
	b := &model.Batch{Tenant: "t", Signal: model.Metrics}
	for n := range uint64(40) {
		b.Labels.Append(uint32(n), model.LabelsOf("a", "b"))
		b.EndSeries(model.Key{Hi: n, Lo: (n + 1) << 8})
	}
	log := &failing{errors.New("Kafka is away")}
	push := func() int {
		refused := 0
		_ = s.Over(t.Context(), b, func(int) { refused++ })
		_ = (&chargedLog{log, s}).Append(t.Context(), b)
		return refused
	}
	for range 5 {
		if n := push(); n > 0 {
			t.Fatalf("%d series are refused by what was not appended", n)
		}
	}
	log.err = nil
	if n := push(); n > 0 {
		t.Errorf("%d series are refused once Kafka is back", n)
	}
	if n := push(); n == 0 { // of 60 within a minute
		t.Error("what was appended does not count")
	}
}

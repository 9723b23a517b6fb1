package graphite

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/writetest"
)

// stalled is a journal that lets batches through one by one, and a head that knows the series of one tenant.
type stalled struct {
	writetest.Unknown
	arrived chan *model.Batch
	leave   chan error
}

func (s *stalled) Resolve(b *model.Batch, dst []uint32) ([]uint32, error) {
	if b.Tenant == "known" {
		return dst, nil
	}
	return s.Unknown.Resolve(b, dst)
}

func (s *stalled) Append(_ context.Context, b *model.Batch) error {
	s.arrived <- b
	return <-s.leave
}

// TestLabelsBeyondTheBudget: where there is no memory for the labels of new series, one push at a time goes
// beyond the budget by them. Nothing is refused, and pushes of known series do not wait for those of new
// ones.
func TestLabelsBeyondTheBudget(t *testing.T) {
	s := &stalled{arrived: make(chan *model.Batch), leave: make(chan error)}
	const budget = 280 << 10 // less than a request and a step of 256 KiB for labels
	p := write.New(write.Options{
		Seed: seed, Head: s, Journal: s, Now: func() int64 { return testNow },
		Limits: write.Limits{MaxInflightBytes: budget, MaxFuture: time.Hour},
	})
	h := NewHTTP(p, nil, nil)
	const rows = 500
	var lines strings.Builder
	for i := range rows {
		fmt.Fprintf(&lines, "n%d 1 1\n", i)
	}
	var sent sync.WaitGroup
	send := func(ctx context.Context, tenant string, want int) (ended chan struct{}) {
		ended = make(chan struct{})
		sent.Go(func() {
			defer close(ended)
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, HTTPPath, strings.NewReader(lines.String()))
			r.Header.Set("X-Scope-OrgID", tenant)
			if h.ServeHTTP(w, r.WithContext(ctx)); w.Code != want {
				t.Errorf("tenant %s: %d %s", tenant, w.Code, w.Body)
			}
		})
		return ended
	}
	arrive := func(tenant string) {
		t.Helper()
		select {
		case b := <-s.arrived:
			if b.Tenant != tenant || len(b.Keys) != rows {
				t.Fatalf("%d rows of tenant %s arrive", len(b.Keys), b.Tenant)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no batch of tenant %s arrives", tenant)
		}
	}
	send(t.Context(), "new", http.StatusNoContent)
	arrive("new")
	ctx, leave := context.WithCancel(t.Context())
	left := send(ctx, "new", http.StatusServiceUnavailable)
	for range 2 {
		send(t.Context(), "new", http.StatusNoContent)
	}
	select {
	case <-s.arrived:
		t.Fatal("two pushes go beyond the budget")
	case <-time.After(100 * time.Millisecond):
	}
	send(t.Context(), "known", http.StatusNoContent)
	arrive("known")
	leave()
	<-left
	s.leave <- nil
	s.leave <- nil
	for range 2 {
		arrive("new")
		s.leave <- nil
	}
	sent.Wait()
	if g, err := p.Admit(t.Context(), "new", budget); err != nil || len(h.labels.beyond) != 0 {
		t.Errorf("after the last request %d pushes are beyond the budget: %v", len(h.labels.beyond), err)
	} else {
		g.Release()
	}
}

// TestConnectionsWithoutMemoryForLabels: connections whose chunks hold all memory do not wait for each other.
func TestConnectionsWithoutMemoryForLabels(t *testing.T) {
	s := newStore()
	small := limits()
	small.MaxInflightBytes = 300 << 10
	b := start(t, s, Options{}, small)
	const conns, each = 8, 5000
	var sent sync.WaitGroup
	for i := range conns {
		nc := b.dial(t, "tcp")
		sent.Go(func() {
			var lines strings.Builder
			for j := range each {
				fmt.Fprintf(&lines, "n%d.%d 1 1700000000\n", i, j)
			}
			say(t, nc, lines.String())
		})
	}
	sent.Wait()
	s.wait(t, conns*each)
	b.want(t, b.metrics.tcp.dropped, 0)
	eventually(t, func() bool { return len(b.labels.beyond) == 0 }, b.log.String)
}

package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

// meter adds up what a path counts.
type meter struct {
	stored, discarded map[string]Counts
	requests          map[string]int64
}

func newMeter() *meter {
	return &meter{map[string]Counts{}, map[string]Counts{}, map[string]int64{}}
}

func (m *meter) Stored(tenant string, n Counts) {
	c := m.stored[tenant]
	c.Add(n)
	m.stored[tenant] = c
}

func (m *meter) Discarded(tenant, reason string, n Counts) {
	c := m.discarded[tenant+" "+reason]
	c.Add(n)
	m.discarded[tenant+" "+reason] = c
}

func (m *meter) Received(tenant string, bytes int64) { m.requests[tenant] += bytes }

// refusal returns the refusal that an error is.
func refusal(t *testing.T, err error) *Refused {
	t.Helper()
	var r *Refused
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal", err)
	}
	return r
}

// A tenant has its own rate of samples, and a change of it counts with the next push.
func TestRateOfSamples(t *testing.T) {
	clock, rate, m := now, int64(2), newMeter()
	s := &store{}
	p := New(Options{Seed: seed, Head: s, Journal: s, Meter: m, Now: func() int64 { return clock }, LimitsOf: func(tenant string) *Limits {
		if tenant == "a" {
			return &Limits{TenantSamples: rate, TenantBurst: 5 * time.Second}
		}
		return &Limits{}
	}})
	push := func(tenant string, n int) error {
		w := make(wire, n)
		for i := range w {
			w[i] = []string{"__name__", strings.Repeat("m", i+1)}
		}
		b := send(p, w, make([]time.Duration, n)...)
		b.Tenant = tenant
		_, err := p.Push(context.Background(), b)
		return err
	}
	if err := push("a", 20); err != nil { // ten more than a burst
		t.Fatal(err)
	}
	r := refusal(t, push("a", 3))
	want := "tenant a may write 2 samples/s with a burst of 5s, and has used them up: 3 samples refused; send the request again after 6s (limit: limits.tenant-samples)"
	if r.Error() != want || r.Status != http.StatusTooManyRequests || r.RetryAfter != 6*time.Second {
		t.Errorf("%d, after %s: %s\nwant %s", r.Status, r.RetryAfter, r, want)
	}
	if err := push("b", 100); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	rate = 1000
	if err := push("a", 3); err != nil {
		t.Errorf("with a higher limit: %v", err)
	}
	rate, clock = 2, clock+int64(time.Hour)
	if err := push("a", 3); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	if m.stored["a"].Samples != 26 || m.stored["b"].Samples != 100 || m.discarded["a "+ReasonSampleRate].Samples != 3 {
		t.Errorf("stored %v, discarded %v", m.stored, m.discarded)
	}
}

// The bytes and the number of a tenant's requests are bounded before their bodies are read.
func TestRequestsOfATenant(t *testing.T) {
	clock, m := now, newMeter()
	p := New(Options{Seed: seed, Head: &store{}, Journal: &store{}, Meter: m, Now: func() int64 { return clock },
		Limits: Limits{TenantRequests: 2, TenantRequestBytes: 100, MaxInflightBytes: 1 << 20}})
	admit := func(tenant string, bytes int64) (*Grant, error) { return p.Admit(context.Background(), tenant, bytes) }
	first, err := admit("a", 1)
	second, err2 := admit("a", 1)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	_, err = admit("a", 1)
	if r := refusal(t, err); r.Status != http.StatusTooManyRequests || r.Limit != LimitTenantRequests ||
		r.Text != "tenant a has 2 write requests in progress, the most that it may have; send fewer at a time" {
		t.Errorf("%+v", r)
	}
	first.Release()
	first.Release()
	if err := second.Grow(2998); err != nil {
		t.Fatal(err)
	}
	second.Release()
	_, err = admit("a", 1)
	if r := refusal(t, err); r.Status != http.StatusTooManyRequests || r.Limit != LimitTenantRequestBytes || r.RetryAfter != 21*time.Second ||
		r.Text != "tenant a may send 100 bytes/s of requests, as sent and as decoded, with a burst of 10s, and has used them up; send the request again after 21s" {
		t.Errorf("%+v", r)
	}
	if g, err := admit("b", 1); err != nil {
		t.Errorf("another tenant: %v", err)
	} else {
		g.Release()
	}
	clock += int64(21 * time.Second)
	if g, err := admit("a", 1); err != nil {
		t.Errorf("later: %v", err)
	} else {
		g.Release()
	}
	if m.requests["a"] != 3001 || m.requests["b"] != 1 || p.budget.inUse() != 0 {
		t.Errorf("%v bytes received, %d in flight", m.requests, p.budget.inUse())
	}
}

// While several tenants write, none holds the whole byte budget.
func TestOneTenantLeavesRoom(t *testing.T) {
	p := New(Options{Seed: seed, Head: &store{}, Journal: &store{}, Now: func() int64 { return now }, Limits: Limits{MaxInflightBytes: 1000}})
	hold := func(tenant string, bytes int64) (*Grant, error) { return p.Admit(context.Background(), tenant, bytes) }
	alone, err := hold("a", 900)
	if err != nil {
		t.Fatal(err)
	}
	alone.Release()
	if g, err := hold("b", 10); err != nil {
		t.Fatal(err)
	} else {
		g.Release()
	}
	first, err := hold("a", 500)
	if err != nil {
		t.Fatal(err)
	}
	a, err := hold("a", 200)
	if err != nil {
		t.Fatal(err)
	}
	err = a.Grow(100)
	if r := refusal(t, err); r.Status != http.StatusServiceUnavailable ||
		r.Text != "requests of tenant a hold 700 bytes and this one needs 100 more; while other tenants write, one may hold 750 of 1000; retry later" {
		t.Errorf("%+v", r)
	}
	b, err := hold("b", 300)
	if err != nil {
		t.Fatalf("another tenant: %v", err)
	}
	b.Release()
	// A single request may hold all of it: it would never have room otherwise.
	first.Release()
	if err := a.Grow(700); err != nil {
		t.Errorf("the only request of a tenant: %v", err)
	}
	a.Release()
}

// A flood of names costs bounded memory, and those that hold nothing are forgotten.
func TestAccountsAreBounded(t *testing.T) {
	var a accounts
	l := &Limits{TenantLines: 1}
	for i := range 100_000 {
		t := a.of(fmt.Sprint("tenant-", i), now)
		t.mu.Lock()
		t.drainLocked(now, l)
		t.useLocked(ratedLines, 1000, l)
		t.mu.Unlock()
	}
	if len(a.tenants) != maxAccounts || a.of("one more", now) != &a.others {
		t.Errorf("%d accounts", len(a.tenants))
	}
	later := now + int64(2*time.Hour)
	if a.of("one more", later) == &a.others || len(a.tenants) != 1 {
		t.Errorf("%d accounts are left", len(a.tenants))
	}
}

// What is counted for a tenant takes no allocation.
func TestChargeAllocatesNothing(t *testing.T) {
	l := &Limits{TenantSamples: 1 << 40, TenantLines: 1 << 40, TenantLineBytes: 1 << 40}
	p := newPath(&store{}, *l)
	b := send(p, wire{{"__name__", "a"}, {"__name__", "b"}}, 0, 0)
	alloctest.AtMost(t, 0, 100, func() {
		n, err := p.charge(b, l)
		if err != nil {
			t.Fatal(err)
		}
		p.refund(b.Tenant, n, Counts{Samples: 1}, l)
	})
}

// tenantCreator lets no tenant create series, because of a limit of its own.
type tenantCreator struct{ store }

func (*tenantCreator) Create(tenant string, n int) (int, error) {
	return 0, &model.LimitError{Limit: "limits.tenant-series", Tenant: true, Text: "tenant " + tenant + " has its series"}
}

func (*tenantCreator) Await(context.Context, error) bool { return false }

// Known series are stored although the tenant may have no more of them.
func TestKnownSeriesPassTheLimitOfSeries(t *testing.T) {
	w := wire{{"__name__", "known"}, {"__name__", "new"}}
	s := &tenantCreator{store{known: map[model.Key]bool{model.LabelsOf(w[0]...).Key(seed, model.Metrics): true}}}
	m := newMeter()
	p := New(Options{Seed: seed, Head: s, Journal: s, Meter: m, Now: func() int64 { return now }})
	res, err := p.Push(context.Background(), send(p, w, 0, 0))
	if r := refusal(t, err); r.Status != http.StatusTooManyRequests || !r.NewSeries || r.RetryAfter <= 0 || r.Error() != "tenant anonymous has its series (limit: limits.tenant-series)" {
		t.Errorf("%+v", r)
	}
	if res.ByKind.Samples != 1 || m.stored["anonymous"].Samples != 1 || m.discarded["anonymous "+ReasonSeries].Samples != 1 {
		t.Errorf("%+v, %v", res, m)
	}
}

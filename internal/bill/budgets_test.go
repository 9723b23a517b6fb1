package bill

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// clock is a time that the test moves.
type clock struct{ now time.Time }

func (c *clock) time() time.Time { return c.now }

func spend(t *testing.T, a *Account, n int, bytes int64) (made int, err error) {
	t.Helper()
	for range n {
		if err := a.Spend(bytes); err != nil {
			if !errors.Is(err, model.ErrLimit) {
				t.Errorf("%v is not of class limit", err)
			}
			return made, err
		}
		made++
	}
	return made, nil
}

func TestBudgetOfAQuery(t *testing.T) {
	b := New(Options{Limits: Limits{QueryRequests: 10, QueryBytes: 1000}})
	if n, err := spend(t, b.Open([]string{"a"}), 20, 1); n != 10 || err == nil || !strings.Contains(err.Error(), "has made 10 requests") ||
		!strings.Contains(err.Error(), "query.max-bucket-requests is 10") {
		t.Errorf("%d requests, %v", n, err)
	}
	// Each query has its own.
	if n, err := spend(t, b.Open([]string{"a"}), 20, 300); n != 3 || err == nil || !strings.Contains(err.Error(), "query.max-bucket-bytes is 1000") {
		t.Errorf("%d requests, %v", n, err)
	}
}

// TestHourlyBudgets: what is spent comes back during an hour, not at its end.
func TestHourlyBudgets(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	b := New(Options{Limits: Limits{TenantRequests: 60, AllRequests: 90}, Now: c.time})
	if n, err := spend(t, b.Open([]string{"a"}), 100, 1); n != 60 || err == nil || !strings.Contains(err.Error(), "query.tenant-bucket-requests is 60 per hour, with 0 left") {
		t.Errorf("%d requests, %v", n, err)
	}
	if n, err := spend(t, b.Open([]string{"b"}), 100, 1); n != 30 || err == nil || !strings.Contains(err.Error(), "query.all-bucket-requests is 90 per hour") {
		t.Errorf("%d requests, %v", n, err)
	}
	c.now = c.now.Add(10 * time.Minute)
	if n, _ := spend(t, b.Open([]string{"a"}), 100, 1); n != 10 {
		t.Errorf("%d requests after 10 minutes", n)
	}
	c.now = c.now.Add(24 * time.Hour)
	if n, _ := spend(t, b.Open([]string{"a"}), 100, 1); n != 60 {
		t.Errorf("%d requests after a day", n)
	}
}

// TestTenantsAreBounded: neither the purses nor the series of metrics grow with the tenants.
func TestTenantsAreBounded(t *testing.T) {
	reg := prometheus.NewRegistry()
	b := New(Options{Limits: Limits{TenantRequests: 5}, Registerer: reg})
	for i := range maxTenants + 50 {
		if err := b.Open([]string{fmt.Sprint("t", i)}).Spend(1); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.tenants) > maxTenants {
		t.Errorf("%d tenants", len(b.tenants))
	}
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if n := len(f.GetMetric()); n > maxShownTenants+1 {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
	}
}

func TestStatement(t *testing.T) {
	b := New(Options{Limits: Limits{Prices: Prices{Requests: 0.4, Bytes: 0.09}}})
	f := model.BillFigures{Blocks: 1, Pages: 10, PagesCached: 4, Least: model.Reads{Requests: 1_000_000, Bytes: 2e9}}
	s := b.State(f, model.Reads{Requests: 1, Bytes: 10}, 2)
	if got := s.Least.Dollars; got < 0.5799 || got > 0.5801 {
		t.Errorf("$%v", got)
	}
	if want := 1_000_000 * 0.02 * 2 / 16; s.Least.Seconds != want || s.Index.Seconds != 0.02 || s.Most.Seconds != 0 || s.Assumed.Measured {
		t.Errorf("%+v, want %v s", s, want)
	}
	err := New(Options{Limits: Limits{QueryRequests: 5}}).Open(nil).Check(s)
	if !errors.Is(err, model.ErrLimit) || !strings.Contains(err.Error(), "at least 1000000 requests") || !strings.Contains(err.Error(), "40 % of them cached") {
		t.Error(err)
	}
	free := New(Options{Limits: Limits{Prices: Prices{Requests: 0.4}}, Free: true})
	if s := free.State(f, model.Reads{}, 1); s.Least.Dollars != 0 {
		t.Errorf("a folder costs $%v", s.Least.Dollars)
	}
}

func TestPrices(t *testing.T) {
	for text, ok := range map[string]bool{"0.4": true, "0": true, "5": true, "": false, "-1": false, "NaN": false, "Inf": false, "$1": false} {
		var d Dollars
		if err := d.UnmarshalText([]byte(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A tenant may have an hourly budget of its own, also where the others have none.
func TestBudgetOfATenant(t *testing.T) {
	c, most := &clock{time.Unix(1e9, 0)}, int64(5)
	b := New(Options{Now: c.time, LimitsOf: func(tenant string) *Limits {
		if tenant == "a" {
			return &Limits{TenantRequests: most}
		}
		return &Limits{}
	}})
	if b.Open([]string{"b"}).Limited() || !b.Open([]string{"b", "a"}).Limited() {
		t.Error("the tenant with a budget is not the one that is limited")
	}
	if n, err := spend(t, b.Open([]string{"a"}), 100, 1); n != 5 || err == nil || !strings.Contains(err.Error(), "query.tenant-bucket-requests is 5 per hour, with 0 left") {
		t.Errorf("%d requests, %v", n, err)
	}
	if n, err := spend(t, b.Open([]string{"b"}), 100, 1); n != 100 || err != nil {
		t.Errorf("%d requests, %v", n, err)
	}
	most = 7
	if n, _ := spend(t, b.Open([]string{"a"}), 100, 1); n != 2 {
		t.Errorf("%d requests with a higher limit", n)
	}
}

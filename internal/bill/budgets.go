package bill

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// Options build Budgets.
type Options struct {
	Limits Limits
	// LimitsOf returns the limits of a tenant, of which TenantRequests and TenantBytes count; nil: Limits.
	LimitsOf func(tenant string) *Limits
	// Free says that the bucket costs nothing.
	Free bool
	// Rate measures requests; nil: their time is assumed.
	Rate       *Rate
	Now        func() time.Time // nil: the clock of the machine
	Registerer prometheus.Registerer
}

// Budgets keep the queries of a process within their budgets. They are safe for concurrent use.
type Budgets struct {
	limits  Limits
	of      func(tenant string) *Limits
	prices  Prices
	rate    *Rate
	now     func() time.Time
	metrics *metrics

	mu      sync.Mutex
	all     purse
	tenants map[string]*purse
}

// maxTenants bounds the tenants whose spending is remembered. Beyond it, those that have spent least lately
// are forgotten.
const maxTenants = 10_000

// New returns Budgets of which nothing is spent.
func New(o Options) *Budgets {
	if o.LimitsOf == nil {
		o.LimitsOf = func(string) *Limits { return &o.Limits }
	}
	b := &Budgets{limits: o.Limits, of: o.LimitsOf, prices: o.Limits.Prices, rate: o.Rate, now: o.Now, tenants: make(map[string]*purse)}
	if o.Free {
		b.prices = Prices{}
	}
	if b.now == nil {
		b.now = time.Now
	}
	b.metrics = newMetrics(o.Registerer)
	return b
}

// limited reports whether there is a budget for a query of some tenants.
func (b *Budgets) limited(tenants []string) bool {
	l := &b.limits
	if max(l.QueryRequests, l.QueryBytes, l.AllRequests, l.AllBytes) > 0 {
		return true
	}
	return slices.ContainsFunc(tenants, func(t string) bool {
		own := b.of(t)
		return max(own.TenantRequests, own.TenantBytes) > 0
	})
}

// Limited reports whether there is a budget for the query.
func (a *Account) Limited() bool { return a.budgets.limited(a.tenants) }

// purse is what was spent of the budget of an hour. It empties at the rate of the budget.
type purse struct {
	requests, bytes float64
	at              time.Time
}

// drain empties the purse by what the time since its last use allows.
func (p *purse) drain(now time.Time, requests, bytes int64) {
	hours := max(0, now.Sub(p.at).Hours())
	p.requests = max(0, p.requests-hours*float64(requests))
	p.bytes = max(0, p.bytes-hours*float64(bytes))
	p.at = now
}

func (p *purse) spend(requests, bytes int64) {
	p.requests += float64(requests)
	p.bytes += float64(bytes)
}

// Account is the spending of one query. It is safe for concurrent use.
type Account struct {
	budgets *Budgets
	tenants []string

	mu    sync.Mutex
	spent model.Reads
	// refused says that a refusal was counted.
	refused bool
}

// Open returns the account of a query. What it spends counts for each of its tenants.
func (b *Budgets) Open(tenants []string) *Account { return &Account{budgets: b, tenants: tenants} }

// Spend counts a request for so many bytes, unless a budget has no room for it. Its error is of class
// [model.ErrLimit].
func (a *Account) Spend(bytes int64) error {
	b := a.budgets
	a.mu.Lock()
	defer a.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if over := a.over(model.Reads{Requests: 1, Bytes: bytes}); over != nil {
		a.count(over)
		return refusef("the query has made %d %s to the bucket and read %d bytes of it, and needs more; %s", a.spent.Requests, english.PluralWord(int(a.spent.Requests), "request", ""), a.spent.Bytes, over.text())
	}
	a.spent = a.spent.Add(model.Reads{Requests: 1, Bytes: bytes})
	for _, t := range a.tenants {
		b.purseLocked(t).spend(1, bytes)
		b.metrics.spend(t, 1, bytes, b.prices.Cost(1, bytes))
	}
	b.all.spend(1, bytes)
	return nil
}

// Check returns an error of class [model.ErrLimit] if a budget has no room for what the query reads in any
// case.
func (a *Account) Check(s *Statement) error {
	b := a.budgets
	a.mu.Lock()
	defer a.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	over := a.over(model.Reads{Requests: s.Least.Requests, Bytes: s.Least.Bytes})
	if over == nil {
		return nil
	}
	a.count(over)
	cached := 100 * float64(s.PagesCached) / float64(max(1, s.Pages))
	return refusef("the query needs at least %d requests to the bucket for %d bytes (blocks: %d; pages: %d, %.0f %% of them cached; about %.3g s; $%.3g); %s",
		s.Least.Requests, s.Least.Bytes, s.Blocks, s.Pages, cached, s.Least.Seconds, s.Least.Dollars, over.text())
}

// Fits reports whether no budget would be exceeded by a query that reads so much.
func (a *Account) Fits(r model.Reads) bool {
	b := a.budgets
	a.mu.Lock()
	defer a.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	return a.over(r) == nil
}

// RefusedError refuses a query that exceeds a budget. It is of class [model.ErrLimit], and its text needs no
// other around it: which page was read last says nothing about the query.
type RefusedError struct{ text string }

func refusef(format string, args ...any) error {
	return &RefusedError{model.ErrLimit.Error() + ": " + fmt.Sprintf(format, args...)}
}

// Error returns the bill, the budget and the setting.
func (e *RefusedError) Error() string { return e.text }

// Unwrap returns the class.
func (e *RefusedError) Unwrap() error { return model.ErrLimit }

// excess names a budget without room.
type excess struct {
	setting string
	limit   int64
	// left is what an hourly budget has left; below 0: the budget is that of a query.
	left float64
}

func (e *excess) text() string {
	if e.left < 0 {
		return fmt.Sprintf("%s is %d: shorten its range or narrow its selectors", e.setting, e.limit)
	}
	return fmt.Sprintf("%s is %d per hour, with %d left now: shorten its range, narrow its selectors, or try again later", e.setting, e.limit, int64(e.left))
}

// over returns the first budget that has no room for more, or nil. The caller holds both locks.
func (a *Account) over(more model.Reads) *excess {
	b, l := a.budgets, &a.budgets.limits
	total := a.spent.Add(more)
	switch {
	case l.QueryRequests > 0 && total.Requests > l.QueryRequests:
		return &excess{settingQueryRequests, l.QueryRequests, -1}
	case l.QueryBytes > 0 && total.Bytes > l.QueryBytes:
		return &excess{settingQueryBytes, l.QueryBytes, -1}
	}
	now := b.now()
	for _, t := range a.tenants {
		own := b.of(t)
		if own.TenantRequests <= 0 && own.TenantBytes <= 0 {
			continue
		}
		p := b.tenants[t]
		if p == nil {
			p = &purse{at: now} // nothing is remembered of a tenant that has spent nothing
		}
		p.drain(now, own.TenantRequests, own.TenantBytes)
		if e := p.over(more, settingTenantRequests, own.TenantRequests, settingTenantBytes, own.TenantBytes); e != nil {
			return e
		}
	}
	b.all.drain(now, l.AllRequests, l.AllBytes)
	return b.all.over(more, settingAllRequests, l.AllRequests, settingAllBytes, l.AllBytes)
}

// over returns which of the two hourly budgets has no room for more, or nil.
func (p *purse) over(more model.Reads, requestsSetting string, requests int64, bytesSetting string, bytes int64) *excess {
	if left := float64(requests) - p.requests; requests > 0 && float64(more.Requests) > left {
		return &excess{requestsSetting, requests, max(0, left)}
	}
	if left := float64(bytes) - p.bytes; bytes > 0 && float64(more.Bytes) > left {
		return &excess{bytesSetting, bytes, max(0, left)}
	}
	return nil
}

// count counts a query that a budget refuses, once.
func (a *Account) count(e *excess) {
	if !a.refused {
		a.refused = true
		a.budgets.metrics.refused.WithLabelValues(e.setting).Inc()
	}
}

// purseLocked returns the purse of a tenant.
func (b *Budgets) purseLocked(tenant string) *purse {
	p := b.tenants[tenant]
	if p != nil {
		return p
	}
	if len(b.tenants) >= maxTenants {
		b.forgetLocked()
	}
	p = &purse{at: b.now()}
	b.tenants[tenant] = p
	return p
}

// forgetLocked drops the tenant that has spent the least of its hour.
func (b *Budgets) forgetLocked() {
	least, name := math.Inf(1), ""
	now := b.now()
	for t, p := range b.tenants {
		own := b.of(t)
		p.drain(now, own.TenantRequests, own.TenantBytes)
		if p.requests < least {
			least, name = p.requests, t
		}
	}
	delete(b.tenants, name)
}

package write

import (
	"sync"
	"time"
)

// maxAccounts bounds the tenants that have an account of their own; all others share one. An account that
// holds nothing can be forgotten.
const maxAccounts = 1 << 14

// forgetEvery is the least time between two searches for accounts to forget: a flood of tenants' names must
// not make each request search.
const forgetEvery = int64(time.Second)

// tenantsApart is how long a tenant leaves a part of the byte budget to others after one of them has written.
const tenantsApart = int64(5 * time.Minute)

// accounts say what each tenant uses. They are safe for concurrent use: a request takes the lock of the table
// for a look-up, and the lock of its tenant, each a few times.
type accounts struct {
	mu        sync.RWMutex
	tenants   map[string]*account
	others    account
	forgotten int64 // when accounts were last forgotten
	// last is the tenant of the last request, and switched the time when it was another than before.
	last     string
	switched int64
}

// rated is what tenants may only use so much of per second.
type rated int

const (
	ratedLines rated = iota
	ratedLineBytes
	ratedSamples
	ratedRequestBytes
	ratedKinds
)

// account is what one tenant has used of its rates at a time, and what it holds now.
//
// What was used leaves at the rate of the limit. A push of any size passes while less than a burst has been
// used, so that no push is too large to ever succeed. A change of a limit counts at once.
type account struct {
	mu       sync.Mutex
	at       int64
	used     [ratedKinds]float64
	requests int64 // in flight
	bytes    int64 // that these hold
}

// of returns the account of a tenant.
func (a *accounts) of(tenant string, now int64) *account {
	a.mu.RLock()
	t, last := a.tenants[tenant], a.last
	a.mu.RUnlock()
	if t != nil && last == tenant {
		return t
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != tenant {
		if a.last != "" {
			a.switched = now
		}
		a.last = tenant
	}
	if t = a.tenants[tenant]; t != nil {
		return t
	}
	if a.tenants == nil {
		a.tenants = make(map[string]*account)
	}
	if len(a.tenants) >= maxAccounts && now-a.forgotten >= forgetEvery {
		a.forgotten = now
		for name, t := range a.tenants {
			if t.idle(now) {
				delete(a.tenants, name)
			}
		}
	}
	if len(a.tenants) >= maxAccounts {
		return &a.others
	}
	t = new(account)
	a.tenants[tenant] = t
	return t
}

// shared reports whether several tenants have written lately.
func (a *accounts) shared(now int64) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.switched != 0 && now-a.switched < tenantsApart
}

// idle reports whether the account may be forgotten. A tenant that has been silent for a minute has paid its
// debt, or nearly so, and a flood of names must not keep its accounts for longer.
func (t *account) idle(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.requests == 0 && t.bytes == 0 && (t.used == [ratedKinds]float64{} || now-t.at > int64(time.Minute))
}

// drainLocked lets what was used leave at the rates of the limits.
func (t *account) drainLocked(now int64, l *Limits) {
	if past := float64(now-t.at) / 1e9; past > 0 { // a clock that steps back changes nothing
		for k := range ratedKinds {
			t.used[k] = max(0, t.used[k]-past*float64(l.rate(k)))
		}
	}
	t.at = now
}

// wait returns how long the tenant has to wait until its use of a kind is below the burst; 0: it need not.
func (t *account) waitLocked(k rated, l *Limits) time.Duration {
	rate := float64(l.rate(k))
	if over := t.used[k] - rate*l.burst().Seconds(); rate > 0 && over >= 0 {
		return time.Second + time.Duration(over/rate*1e9)
	}
	return 0
}

// use adds to what the tenant has used of a kind that is limited.
func (t *account) useLocked(k rated, n int64, l *Limits) {
	if l.rate(k) > 0 {
		t.used[k] += float64(n)
	}
}

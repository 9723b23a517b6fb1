package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/write"
)

// Rates are the limits on how fast series are created, per second; 0: there is no limit.
type Rates struct {
	All int64
	// Of returns that of a tenant.
	Of func(tenant string) int64
}

// of returns the limit of a tenant.
func (r *Rates) of(tenant string) int64 {
	if r.Of == nil {
		return 0
	}
	return r.Of(tenant)
}

// creation bounds how fast this gateway creates series, as a head does for the role all: with a burst of a
// minute's worth. Each gateway has its part of the limits.
type creation struct {
	rates    Rates
	gateways int64

	mu      sync.Mutex
	all     spent
	tenants map[string]*spent
}

// burst is how much of a limit may be used at once.
const burst = time.Minute

// maxSpent bounds the tenants that are kept. Those that have used nothing lately go first.
const maxSpent = 10_000

// spent is what was used of a limit.
type spent struct {
	series float64
	at     time.Time
}

// left returns how many series may be created at so many a second.
func (s *spent) left(perSecond float64, now time.Time) int {
	if passed := now.Sub(s.at).Seconds(); passed > 0 {
		s.series, s.at = max(0, s.series-passed*perSecond), now
	}
	return int(max(0, perSecond*burst.Seconds()-s.series))
}

// part returns the limit of one of n gateways.
func (c *creation) part(perSecond int64) float64 { return float64(perSecond) / float64(c.gateways) }

// take returns how many of n series of a tenant may be created now, and the limit that refuses the others.
func (c *creation) take(tenant string, n int, now time.Time) (allowed int, _ error) {
	own, all := c.part(c.rates.of(tenant)), c.part(c.rates.All)
	if n == 0 || own <= 0 && all <= 0 {
		return n, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	allowed = n
	var err *model.LimitError
	var t *spent
	if own > 0 {
		t = c.ofLocked(tenant, now)
		if left := t.left(own, now); left < allowed {
			allowed = left
			err = &model.LimitError{Limit: head.LimitTenantNewSeries, Tenant: true, Text: fmt.Sprintf(
				"refused %d of %d new series: tenant %s may create %d per second, of which this gateway grants 1/%d; send the request again later", n-allowed, n, tenant, c.rates.of(tenant), c.gateways)}
		}
	}
	if all > 0 {
		if left := c.all.left(all, now); left < allowed {
			allowed = left
			err = &model.LimitError{Limit: head.LimitNewSeries, Text: fmt.Sprintf(
				"refused %d of %d new series: all tenants together may create %d per second, of which this gateway grants 1/%d; send the request again later", n-allowed, n, c.rates.All, c.gateways)}
		}
		c.all.series += float64(allowed)
	}
	if t != nil {
		t.series += float64(allowed)
	}
	if err == nil {
		return allowed, nil
	}
	return allowed, err
}

// A gateway creates so many series of a tenant, and of all tenants, per second while the brake refuses
// creation. A sender repeats a request until all of it is taken, and sends nothing else meanwhile: one new
// series would hold back the known ones of the sender for as long as ingesters lag. Usual changes, as of a
// process that starts again, pass with this, and one tenant does not use up what others need.
const (
	brakeTenantSeries = 10
	brakeSeries       = 4 * brakeTenantSeries
)

// newTrickle returns what lets few series pass the brake. The usual limits count for these as well.
func newTrickle() creation {
	return creation{rates: Rates{All: brakeSeries, Of: func(string) int64 { return brakeTenantSeries }}, gateways: 1, tenants: map[string]*spent{}}
}

// giveBack takes n series of a tenant back that were not created after all.
func (c *creation) giveBack(tenant string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.series = max(0, c.all.series-float64(n))
	if t := c.tenants[tenant]; t != nil {
		t.series = max(0, t.series-float64(n))
	}
}

// chargedLog gives back what the new series of a batch have taken of the limits on creation if it cannot be
// appended. Otherwise the repetitions of senders use the limits up while Kafka is away.
type chargedLog struct {
	write.Journal
	series *series
}

// Append is [write.Journal.Append].
func (l *chargedLog) Append(ctx context.Context, b *model.Batch) error {
	err := l.Journal.Append(ctx, b)
	if err != nil && b.Labels.Len() > 0 {
		l.series.giveBack(b)
	}
	return err
}

// giveBack gives back what the new series of a batch have taken: those that passed the brake, if it is on,
// have taken of both.
func (s *series) giveBack(b *model.Batch) {
	if s.brake.refused(refuseCreation) != nil {
		s.trickle.giveBack(b.Tenant, len(s.newToBrake(b)))
	}
	if s.creation.rates.All <= 0 && s.creation.rates.of(b.Tenant) <= 0 {
		return
	}
	s.mu.RLock()
	fresh, _ := s.freshLocked(b)
	s.mu.RUnlock()
	s.creation.giveBack(b.Tenant, len(fresh))
}

// ofLocked returns what a tenant has used.
func (c *creation) ofLocked(tenant string, now time.Time) *spent {
	t := c.tenants[tenant]
	if t != nil {
		return t
	}
	if len(c.tenants) >= maxSpent {
		for name, other := range c.tenants {
			if now.Sub(other.at) > burst { // all that it has used is given back
				delete(c.tenants, name)
			}
		}
	}
	if len(c.tenants) >= maxSpent { // any one: it may use its burst again
		for name := range c.tenants {
			delete(c.tenants, name)
			break
		}
	}
	t = &spent{at: now}
	c.tenants[tenant] = t
	return t
}

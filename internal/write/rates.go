package write

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// burstSeconds is how far, in seconds of its rate, a tenant that has been silent may run ahead.
const burstSeconds = 10

// maxRatedTenants bounds the tenants that have an allowance of their own; all others share one. Tenants
// with a full allowance can be forgotten.
const maxRatedTenants = 1 << 14

// rates limits the lines and bytes per second of each tenant with two token buckets. A bucket that is
// not in debt lets a push of any size through and goes into debt for it, so that no push is too large
// to ever succeed.
type rates struct {
	mu      sync.Mutex
	tenants map[string]*allowance
	others  allowance
}

// allowance is what one tenant had left at time at, in lines and in bytes.
type allowance struct {
	at           int64
	lines, bytes float64
}

// refill adds the tokens for the time since the last refill.
func (a *allowance) refill(now int64, l *Limits) {
	lines, bytes := float64(l.TenantLines), float64(l.TenantLineBytes)
	if a.at == 0 {
		a.lines, a.bytes = burstSeconds*lines, burstSeconds*bytes
	} else if past := float64(now-a.at) / 1e9; past > 0 {
		a.lines = min(a.lines+past*lines, burstSeconds*lines)
		a.bytes = min(a.bytes+past*bytes, burstSeconds*bytes)
	}
	a.at = now
}

func (a *allowance) whole(l *Limits) bool {
	return a.lines >= burstSeconds*float64(l.TenantLines) && a.bytes >= burstSeconds*float64(l.TenantLineBytes)
}

// allowance returns the refilled allowance of a tenant.
func (r *rates) allowance(tenant string, now int64, l *Limits) *allowance {
	a := r.tenants[tenant]
	if a == nil {
		if a = r.add(tenant, now, l); a == nil {
			a = &r.others
		}
	}
	a.refill(now, l)
	return a
}

// add gives one more tenant an allowance of its own, or returns nil if there are too many.
func (r *rates) add(tenant string, now int64, l *Limits) *allowance {
	if r.tenants == nil {
		r.tenants = make(map[string]*allowance)
	}
	if len(r.tenants) >= maxRatedTenants {
		for name, a := range r.tenants {
			if a.refill(now, l); a.whole(l) {
				delete(r.tenants, name)
			}
		}
		if len(r.tenants) >= maxRatedTenants {
			return nil
		}
	}
	a := new(allowance)
	r.tenants[tenant] = a
	return a
}

// chargeLines charges the lines of a batch to its tenant, or refuses the batch.
func (p *Path) chargeLines(b *model.Batch) (charged Counts, err error) {
	l := &p.o.Limits
	if l.TenantLines <= 0 && l.TenantLineBytes <= 0 || b.Text.Len() == 0 {
		return Counts{}, nil
	}
	n := countRows(model.Text, &b.Text.Rows, 0, b.Text.Len())
	p.rates.mu.Lock()
	defer p.rates.mu.Unlock()
	a := p.rates.allowance(b.Tenant, p.o.Now(), l)
	switch {
	case l.TenantLines > 0 && a.lines <= 0:
		return Counts{}, p.rateLimited(b.Tenant, n, "limits.tenant-lines", "lines", l.TenantLines, a.lines)
	case l.TenantLineBytes > 0 && a.bytes <= 0:
		return Counts{}, p.rateLimited(b.Tenant, n, "limits.tenant-line-bytes", "bytes", l.TenantLineBytes, a.bytes)
	}
	a.lines -= float64(n.Lines)
	a.bytes -= float64(n.LineBytes)
	return n, nil
}

// refundLines refunds the lines that were charged but did not become durable, since the sender will send
// them again.
func (p *Path) refundLines(tenant string, charged, stored Counts) {
	if charged.Lines == 0 {
		return
	}
	p.rates.mu.Lock()
	defer p.rates.mu.Unlock()
	a := p.rates.allowance(tenant, p.o.Now(), &p.o.Limits)
	a.lines += float64(charged.Lines - stored.Lines)
	a.bytes += float64(charged.LineBytes - stored.LineBytes)
}

// rateLimited refuses a push of a tenant that is in debt, with Loki's text.
func (p *Path) rateLimited(tenant string, n Counts, limit, unit string, rate int64, left float64) error {
	p.metrics.refusedRequests.WithLabelValues(limit).Inc()
	return &Refused{
		Status: http.StatusTooManyRequests, Limit: limit, RetryAfter: time.Second + time.Duration(-left/float64(rate)*1e9),
		Text: fmt.Sprintf("ingestion rate limit exceeded for user %s (limit: %d %s/sec) while attempting to ingest '%d' lines totaling '%d' bytes, reduce log volume or contact your administrator to see if the limit can be increased",
			tenant, rate, unit, n.Lines, n.LineBytes),
	}
}

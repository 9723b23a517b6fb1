package write

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// burstSeconds is how long a tenant that has been silent may be ahead of its rate.
const burstSeconds = 10

// maxRatedTenants bounds the tenants whose rates are remembered one by one. Those beyond it share one allowance; a tenant
// whose allowance is whole need not be remembered.
const maxRatedTenants = 1 << 14

// rates holds the lines and bytes that tenants may push at this moment: two token buckets each. A bucket that is not
// in debt lets a push of any size through and goes into debt by it, so that no push is too large for ever.
type rates struct {
	mu      sync.Mutex
	tenants map[string]*allowance
	others  allowance
}

// allowance is what is left at a time, in lines and in bytes.
type allowance struct {
	at           int64
	lines, bytes float64
}

// refill adds what the time since the last look has brought.
func (a *allowance) refill(now int64, l *Limits) {
	if a.at == 0 {
		a.lines, a.bytes = burstSeconds*l.TenantLines, burstSeconds*l.TenantLineBytes
	} else if past := float64(now-a.at) / 1e9; past > 0 {
		a.lines = min(a.lines+past*l.TenantLines, burstSeconds*l.TenantLines)
		a.bytes = min(a.bytes+past*l.TenantLineBytes, burstSeconds*l.TenantLineBytes)
	}
	a.at = now
}

func (a *allowance) whole(l *Limits) bool {
	return a.lines >= burstSeconds*l.TenantLines && a.bytes >= burstSeconds*l.TenantLineBytes
}

// of returns the allowance of a tenant, refilled.
func (r *rates) of(tenant string, now int64, l *Limits) *allowance {
	a := r.tenants[tenant]
	if a == nil {
		if a = r.add(tenant, now, l); a == nil {
			a = &r.others
		}
	}
	a.refill(now, l)
	return a
}

// add remembers one more tenant, or returns nil if there is no room.
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

// takeLines charges the lines of a batch to its tenant, or refuses all of them.
func (p *Path) takeLines(b *model.Batch) (taken Counts, err error) {
	l := &p.o.Limits
	if l.TenantLines <= 0 && l.TenantLineBytes <= 0 || b.Text.Len() == 0 {
		return Counts{}, nil
	}
	n := countRows(model.Text, &b.Text.Rows, 0, b.Text.Len())
	p.rates.mu.Lock()
	defer p.rates.mu.Unlock()
	a := p.rates.of(b.Tenant, p.o.Now(), l)
	switch {
	case l.TenantLines > 0 && a.lines <= 0:
		return Counts{}, p.tooFast(b.Tenant, n, "limits.tenant-lines", "lines", l.TenantLines, a.lines)
	case l.TenantLineBytes > 0 && a.bytes <= 0:
		return Counts{}, p.tooFast(b.Tenant, n, "limits.tenant-line-bytes", "bytes", l.TenantLineBytes, a.bytes)
	}
	a.lines -= float64(n.Lines)
	a.bytes -= float64(n.LineBytes)
	return n, nil
}

// giveLines gives back what was charged for lines that did not become durable: they are going to be sent again.
func (p *Path) giveLines(tenant string, taken, stored Counts) {
	if taken.Lines == 0 {
		return
	}
	p.rates.mu.Lock()
	defer p.rates.mu.Unlock()
	a := p.rates.of(tenant, p.o.Now(), &p.o.Limits)
	a.lines += float64(taken.Lines - stored.Lines)
	a.bytes += float64(taken.LineBytes - stored.LineBytes)
}

// tooFast is the answer to a tenant that is in debt.
func (p *Path) tooFast(tenant string, n Counts, limit, unit string, rate, left float64) error {
	p.metrics.refusedRequests.WithLabelValues(limit).Inc()
	return &Refused{
		Status: http.StatusTooManyRequests, Limit: limit, RetryAfter: time.Second + time.Duration(-left/rate*1e9),
		Text: fmt.Sprintf("ingestion rate limit exceeded for user %s (limit: %d %s/sec) while attempting to ingest '%d' lines totaling '%d' bytes, reduce log volume or contact your administrator to see if the limit can be increased",
			tenant, int64(rate), unit, n.Lines, n.LineBytes),
	}
}

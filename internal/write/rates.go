package write

import (
	"fmt"
	"net/http"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/model"
)

// The settings of the limits of tenants.
const (
	LimitTenantLines        = "limits.tenant-lines"
	LimitTenantLineBytes    = "limits.tenant-line-bytes"
	LimitTenantSamples      = "limits.tenant-samples"
	LimitTenantRequestBytes = "limits.tenant-request-bytes"
	LimitTenantRequests     = "limits.tenant-requests"
)

// rate returns how much of a kind a tenant may use per second; 0: there is no limit.
func (l *Limits) rate(k rated) int64 {
	return [ratedKinds]int64{ratedLines: l.TenantLines, ratedLineBytes: l.TenantLineBytes, ratedSamples: l.TenantSamples, ratedRequestBytes: l.TenantRequestBytes}[k]
}

// burst is for how long, in seconds of its rate, a tenant that has been silent may run ahead.
func (l *Limits) burst() time.Duration {
	if l.TenantBurst <= 0 {
		return 10 * time.Second
	}
	return l.TenantBurst
}

// charge charges the rows of a batch to its tenant, or refuses the batch.
func (p *Path) charge(b *model.Batch, l *Limits) (charged Counts, err error) {
	if l.TenantLines <= 0 && l.TenantLineBytes <= 0 && l.TenantSamples <= 0 {
		return Counts{}, nil
	}
	n := countBatch(b)
	now := p.o.Now()
	t := p.accounts.of(b.Tenant, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drainLocked(now, l)
	if n.Lines > 0 {
		if wait := t.waitLocked(ratedLines, l); wait > 0 {
			return Counts{}, p.lineRate(b.Tenant, n, LimitTenantLines, ReasonLineRate, "lines", l.TenantLines, wait)
		}
		if wait := t.waitLocked(ratedLineBytes, l); wait > 0 {
			return Counts{}, p.lineRate(b.Tenant, n, LimitTenantLineBytes, ReasonLineByteRate, "bytes", l.TenantLineBytes, wait)
		}
	}
	if rows := n.points(); rows > 0 {
		if wait := t.waitLocked(ratedSamples, l); wait > 0 {
			return Counts{}, p.overRate(b.Tenant, n, LimitTenantSamples, ReasonSampleRate, wait, fmt.Sprintf(
				"tenant %s may write %d samples/s with a burst of %s, and has used them up: %s refused; send the request again after %s",
				b.Tenant, l.TenantSamples, l.burst(), n, wait.Round(time.Second)))
		}
	}
	t.useRowsLocked(n, 1, l)
	return n, nil
}

// useRowsLocked adds rows to what the tenant has used, or takes them back with a sign of -1.
func (t *account) useRowsLocked(n Counts, sign int64, l *Limits) {
	t.useLocked(ratedLines, sign*int64(n.Lines), l)
	t.useLocked(ratedLineBytes, sign*n.LineBytes, l)
	t.useLocked(ratedSamples, sign*int64(n.points()), l)
}

// points returns the number of rows of metrics.
func (c Counts) points() int { return c.Samples + c.Histograms + c.Exemplars }

// refund takes back the rows that were charged but did not become durable, since the sender will send them
// again.
func (p *Path) refund(tenant string, charged, stored Counts, l *Limits) {
	if charged.Total() == 0 {
		return
	}
	now := p.o.Now()
	t := p.accounts.of(tenant, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drainLocked(now, l)
	t.useRowsLocked(charged, -1, l)
	t.useRowsLocked(stored, 1, l)
	for k := range t.used {
		t.used[k] = max(0, t.used[k])
	}
}

// lineRate refuses a push of lines, with Loki's text.
func (p *Path) lineRate(tenant string, n Counts, limit, reason, unit string, rate int64, wait time.Duration) error {
	return p.overRate(tenant, n, limit, reason, wait, fmt.Sprintf(
		"ingestion rate limit exceeded for user %s (limit: %d %s/sec) while attempting to ingest '%d' lines totaling '%d' bytes, reduce log volume or contact your administrator to see if the limit can be increased",
		tenant, rate, unit, n.Lines, n.LineBytes))
}

// overRate refuses rows of a tenant for a limit of its own.
func (p *Path) overRate(tenant string, n Counts, limit, reason string, wait time.Duration, text string) error {
	p.metrics.refusedRequests.WithLabelValues(limit).Inc()
	p.o.Meter.Discarded(tenant, reason, n)
	return &Refused{Status: http.StatusTooManyRequests, Limit: limit, RetryAfter: wait, Text: text}
}

// begin counts a request of a tenant as in flight. Its error is a *Refused.
func (p *Path) begin(tenant string) (*account, error) {
	l, now := p.limits(tenant), p.o.Now()
	t := p.accounts.of(tenant, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drainLocked(now, l)
	if l.TenantRequests > 0 && t.requests >= l.TenantRequests {
		return nil, p.overRate(tenant, Counts{}, LimitTenantRequests, "", 2*time.Second, fmt.Sprintf(
			"tenant %s has %s in progress, the most that it may have; send fewer at a time",
			tenant, english.Plural(int(t.requests), "write request", "")))
	}
	if wait := t.waitLocked(ratedRequestBytes, l); wait > 0 {
		return nil, p.overRate(tenant, Counts{}, LimitTenantRequestBytes, "", wait, fmt.Sprintf(
			"tenant %s may send %d bytes/s of requests, as sent and as decoded, with a burst of %s, and has used them up; send the request again after %s",
			tenant, l.TenantRequestBytes, l.burst(), wait.Round(time.Second)))
	}
	t.requests++
	return t, nil
}

// hold counts bytes that a request of a tenant is about to hold. While several tenants write, several
// requests of one may hold three quarters of the budget. A single request may hold all of it: one that needs
// more can never succeed, and must not be told to come again.
func (g *Grant) hold(bytes int64) error {
	p, t := g.p, g.account
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	most := p.budget.max - p.budget.max/4
	if p.budget.max > 0 && t.bytes > g.bytes && t.bytes+bytes > most && p.accounts.shared(p.o.Now()) {
		p.metrics.refusedRequests.WithLabelValues("limits.inflight-bytes").Inc()
		return &Refused{
			Status: http.StatusServiceUnavailable, Limit: "limits.inflight-bytes", RetryAfter: 2 * time.Second,
			Text: fmt.Sprintf("requests of tenant %s hold %d bytes and this one needs %d more; while other tenants write, one may hold %d of %d; retry later",
				g.tenant, t.bytes, bytes, most, p.budget.max),
		}
	}
	t.bytes += bytes
	return nil
}

// unhold takes back what hold has counted.
func (g *Grant) unhold(bytes int64) {
	if g.account != nil {
		g.account.mu.Lock()
		g.account.bytes -= bytes
		g.account.mu.Unlock()
	}
}

// end counts that the request is over, and charges its bytes to the tenant.
func (g *Grant) end() {
	t := g.account
	if t == nil {
		return
	}
	g.account = nil
	l := g.p.limits(g.tenant)
	t.mu.Lock()
	t.requests--
	t.bytes -= g.bytes
	t.useLocked(ratedRequestBytes, g.bytes, l)
	t.mu.Unlock()
	g.p.o.Meter.Received(g.tenant, g.bytes)
}

package gateway

import (
	"sync"

	"github.com/shaledb/shale/internal/write"
)

// parts are the limits of tenants for one of n gateways. Limits on rates are divided; the others bound a
// single request or series.
type parts struct {
	of func(tenant string) *write.Limits
	n  int64

	mu sync.RWMutex
	// divided has the limits that were divided, by the undivided ones, which never change.
	divided map[*write.Limits]*write.Limits
}

// maxDivided bounds the map. Limits that are no longer used stay in it until then.
const maxDivided = 4096

func (p *parts) limits(tenant string) *write.Limits {
	all := p.of(tenant)
	if p.n == 1 {
		return all
	}
	p.mu.RLock()
	own := p.divided[all]
	p.mu.RUnlock()
	if own != nil {
		return own
	}
	own = new(*all)
	for _, rate := range []*int64{&own.TenantSamples, &own.TenantLines, &own.TenantLineBytes, &own.TenantRequestBytes, &own.TenantRequests} {
		if *rate > 0 { // 0 means no limit
			*rate = max(1, *rate/p.n)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.divided == nil || len(p.divided) >= maxDivided {
		p.divided = make(map[*write.Limits]*write.Limits)
	}
	p.divided[all] = own
	return own
}

package meter

import "sync"

const (
	// maxTenants bounds the tenants that have a label value of their own, and maxOthers the further ones whose
	// requests are counted to find those that should have one.
	maxTenants, maxOthers = 50, 1000
	// otherTenants is the label value of all other tenants.
	otherTenants = "other"
)

// tenants gives label values to the tenants with the most requests. Up to maxTenants it is every tenant.
type tenants struct {
	// dropped is called when a tenant loses its label value to another one.
	dropped func(tenant string)

	mu     sync.Mutex
	named  map[string]int64 // requests by tenant
	others map[string]int64
}

func newTenants(dropped func(tenant string)) *tenants {
	return &tenants{dropped: dropped, named: make(map[string]int64), others: make(map[string]int64)}
}

// label counts a request of a tenant and returns its label value.
func (t *tenants) label(tenant string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, ok := t.named[tenant]; ok {
		t.named[tenant] = n + 1
		return tenant
	}
	if len(t.named) < maxTenants {
		t.named[tenant] = 1
		return tenant
	}
	if _, known := t.others[tenant]; !known && len(t.others) >= maxOthers {
		clear(t.others)
	}
	t.others[tenant]++
	if n := t.others[tenant]; n%64 != 0 || !t.replaceLocked(tenant, n) {
		return otherTenants
	}
	return tenant
}

// replaceLocked gives a tenant with n requests the label value of one that has fewer than half.
func (t *tenants) replaceLocked(tenant string, n int64) bool {
	least, fewest := "", n/2
	for name, requests := range t.named {
		if requests < fewest {
			least, fewest = name, requests
		}
	}
	if least == "" {
		return false
	}
	delete(t.named, least)
	delete(t.others, tenant)
	t.named[tenant] = n
	t.dropped(least)
	return true
}

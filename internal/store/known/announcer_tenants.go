package known

import (
	"sync"

	"github.com/shaledb/shale/internal/model"
)

// tenantIDs numbers the tenants of an announcer: two numbers each, one for each signal, so that a slot tells
// its signal.
type tenantIDs struct {
	mu  sync.RWMutex
	ids map[string]uint16 // of metrics; logs have the next one
}

// mostTenants is how many tenants can have numbers. The series of others are never called announced.
const mostTenants = 1 << 15

func (t *tenantIDs) id(tenant string, s model.Signal) (id uint16, ok bool) {
	t.mu.RLock()
	id, ok = t.ids[tenant]
	t.mu.RUnlock()
	if !ok {
		id, ok = t.add(tenant)
	}
	if s == model.Logs {
		id++
	}
	return id, ok
}

func (t *tenantIDs) add(tenant string) (id uint16, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, ok = t.ids[tenant]; ok {
		return id, true
	}
	if len(t.ids) == mostTenants {
		return 0, false
	}
	if t.ids == nil {
		t.ids = make(map[string]uint16)
	}
	id = uint16(2 * len(t.ids))
	t.ids[tenant] = id
	return id, true
}

// signalOf returns the signal of a number.
func signalOf(id uint16) model.Signal {
	if id%2 == 1 {
		return model.Logs
	}
	return model.Metrics
}

package head

import (
	"fmt"
	"sync"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/model"
)

// tenants gives tenants small numbers for the life of the process. Files name tenants by their names.
type tenants struct {
	mu    sync.RWMutex
	max   int
	ids   map[string]uint16
	names []string
}

func newTenants(max int) *tenants {
	if max <= 0 || max > 1<<16-1 {
		max = 1<<16 - 1
	}
	return &tenants{max: max, ids: make(map[string]uint16)}
}

// find returns the number of a tenant that has one.
func (t *tenants) find(name string) (uint16, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	id, ok := t.ids[name]
	return id, ok
}

// admit returns the number of a tenant and gives it one if it has none and the limit allows it.
func (t *tenants) admit(name string) (uint16, error) {
	if id, ok := t.find(name); ok {
		return id, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.names) >= t.max {
		return 0, &model.LimitError{Limit: "limits.tenants", Text: fmt.Sprintf("tenant %q is new and the limit of %d %s is reached", name, t.max, english.PluralWord(t.max, "tenant", ""))}
	}
	return t.addLocked(name), nil
}

// must returns the number of a tenant whose data is already durable, beyond the limit if necessary. Tenants
// beyond 65,536 share the last number. Then their series are counted together; nothing else depends on it.
func (t *tenants) must(name string) uint16 {
	if id, ok := t.find(name); ok {
		return id
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.names) == 1<<16 {
		return 1<<16 - 1
	}
	return t.addLocked(name)
}

func (t *tenants) addLocked(name string) uint16 {
	if id, ok := t.ids[name]; ok {
		return id
	}
	id := uint16(len(t.names))
	t.ids[name], t.names = id, append(t.names, name)
	return id
}

// all returns the names by their numbers. It may not be changed.
func (t *tenants) all() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.names
}

func (t *tenants) count() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.names)
}

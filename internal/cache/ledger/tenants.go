package ledger

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxTenants bounds the tenants that are counted by name. The number of a tenant fits 6 bits, so that
	// tiers can keep it with a value. 0 is the number of all others.
	maxTenants = 63
	// Other is the name of all tenants without a number of their own.
	Other = "(other)"
	// idleTenant is how long a tenant that asks for nothing keeps its number.
	idleTenant = 24 * time.Hour
)

// ages are the bounds of the histogram of ages, in seconds. The last bucket has no bound.
var ages = [...]int64{3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 5 * 86400, 7 * 86400, 14 * 86400, 30 * 86400, 90 * 86400}

// localAge is the place of what is in parts of the data folder, whose age is not known, and places their
// number.
const (
	localAge = len(ages) + 1
	places   = len(ages) + 2
)

func ageIndex(seconds int64) uint8 {
	for i, bound := range ages {
		if seconds < bound {
			return uint8(i)
		}
	}
	return uint8(len(ages))
}

// count counts touches.
type count struct{ touches, first, bytes atomic.Int64 }

func (c *count) add(bytes int, first bool) {
	c.touches.Add(1)
	c.bytes.Add(int64(bytes))
	if first {
		c.first.Add(1)
	}
}

// tenant has the counters of a tenant.
type tenant struct {
	name   string
	number uint8
	asked  atomic.Int64 // when it last asked, in Unix nanoseconds
	hits   [maxTiers][places]count
	// missed is of tiers that are off the way.
	missed [maxTiers]count
}

// tenants are the tenants with counters of their own, and all others.
type tenants struct {
	mu      sync.RWMutex
	byName  map[string]*tenant
	numbers [maxTenants + 1]*tenant
}

func (ts *tenants) init() {
	ts.byName = make(map[string]*tenant)
	ts.numbers[0] = &tenant{name: Other}
}

// of returns the counters of a tenant.
func (ts *tenants) of(name string) *tenant {
	ts.mu.RLock()
	t := ts.byName[name]
	ts.mu.RUnlock()
	if t != nil {
		return t
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.byName[name]; t != nil {
		return t
	}
	for i, taken := range ts.numbers {
		if taken == nil {
			t = &tenant{name: name, number: uint8(i)}
			ts.numbers[i], ts.byName[name] = t, t
			return t
		}
	}
	return ts.numbers[0]
}

// list returns the tenants that have asked for anything.
func (ts *tenants) list() []*tenant {
	ts.mu.RLock()
	defer ts.mu.RUnlock()
	var list []*tenant
	for _, t := range ts.numbers {
		if t != nil {
			list = append(list, t)
		}
	}
	return list
}

// retire gives the numbers of tenants free that have not asked for a day, once no number is left. What they
// have asked counts as that of all others.
func (ts *tenants) retire(now int64) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.byName) < maxTenants {
		return
	}
	for i, t := range ts.numbers {
		if i == 0 || now-t.asked.Load() < int64(idleTenant) {
			continue
		}
		ts.numbers[0].fold(t)
		delete(ts.byName, t.name)
		ts.numbers[i] = nil
	}
}

// fold adds the counts of another tenant.
func (t *tenant) fold(other *tenant) {
	add := func(to, from *count) {
		to.touches.Add(from.touches.Load())
		to.first.Add(from.first.Load())
		to.bytes.Add(from.bytes.Load())
	}
	for i := range t.hits {
		for j := range t.hits[i] {
			add(&t.hits[i][j], &other.hits[i][j])
		}
		add(&t.missed[i], &other.missed[i])
	}
}

package share

import (
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// credit is what a tenant that has been idle may send before the others have a turn: the reads of a panel.
const credit = 32 * requestBytes

// requestBytes is what a request counts besides its bytes: a store takes about as long to begin a response as
// to send that many.
const requestBytes = 256 << 10

// weights are the shares of the classes within a tenant. Those of System and Compaction, which have no
// tenant, are their shares among the tenants.
func weights() [model.Classes]int64 {
	return [model.Classes]int64{
		model.System: 8, model.Rule: 8, model.Dashboard: 4, model.Explore: 2, model.Scan: 1, model.Compaction: 1,
	}
}

// waiter is a request that waits.
type waiter struct {
	caller model.Caller
	bytes  int64
	write  bool
	name   string
	// sent is closed when the request may be sent; granted is set before.
	sent    chan struct{}
	granted bool
	since   time.Time
}

// queue hands out turns by weighted fair queueing, a form of deficit round robin without rounds: each flow
// has a clock that its turns move by their bytes, divided by the weight of the flow, and the flow whose clock
// is least has the next turn. A flow that begins to wait starts at most credit before the clock of the last
// turn, however long it was idle.
type queue struct {
	weights [model.Classes]int64
	now     int64 // clock of the last turn
	flows   map[flowKey]*flow
	waiting int
}

// flowKey is a tenant, or a class that has none.
type flowKey struct {
	tenant string
	class  model.Class
}

// flow is the waiting requests of a tenant.
type flow struct {
	clock   int64
	now     int64 // clock of the last turn among its classes
	weight  int64
	classes [model.Classes]class
	waiting int
}

// class is the waiting requests of a class within a flow.
type class struct {
	clock   int64
	waiters []*waiter
}

func newQueue() *queue { return &queue{weights: weights(), flows: make(map[flowKey]*flow)} }

func (q *queue) key(c model.Caller) flowKey {
	if c.Class == model.System || c.Class == model.Compaction {
		return flowKey{class: c.Class}
	}
	return flowKey{tenant: c.Tenant, class: model.Classes}
}

func (q *queue) add(w *waiter) {
	k := q.key(w.caller)
	f := q.flows[k]
	if f == nil {
		f = &flow{clock: q.now - credit, weight: 1}
		if k.class < model.Classes {
			f.weight = q.weights[k.class]
		}
		q.flows[k] = f
	}
	f.clock = max(f.clock, q.now-credit)
	c := &f.classes[w.caller.Class]
	if len(c.waiters) == 0 {
		c.clock = max(c.clock, f.now)
	}
	c.waiters = append(c.waiters, w)
	f.waiting++
	q.waiting++
}

// verdict says whether a waiting request may be sent.
type verdict uint8

const (
	send  verdict = iota
	later         // its rate forbids it, that of others may not
	stop          // no request may be sent
)

// next removes the request whose turn it is and that may be sent. It returns nil without one.
func (q *queue) next(try func(*waiter) verdict) *waiter {
	var tried map[flowKey]bool
	for {
		key, least := q.least(tried)
		if least == nil {
			return nil
		}
		w, v := least.next(q.weights, try)
		switch v {
		case send:
			q.now = max(q.now, least.clock)
			least.clock += (w.bytes + requestBytes) / least.weight
			q.removed(least)
			return w
		case stop:
			return nil
		}
		if tried == nil {
			tried = make(map[flowKey]bool)
		}
		tried[key] = true
	}
}

// least returns the flow whose turn it is, of those that have not been tried. It forgets flows that have
// nothing left to wait or to pay for.
func (q *queue) least(tried map[flowKey]bool) (key flowKey, least *flow) {
	for k, f := range q.flows {
		switch {
		case f.waiting == 0:
			if f.clock <= q.now-credit {
				delete(q.flows, k)
			}
		case !tried[k] && (least == nil || f.clock < least.clock || f.clock == least.clock && before(k, key)):
			least, key = f, k
		}
	}
	return key, least
}

// before orders flows of equal clocks, so that turns do not depend on the order of a map.
func before(a, b flowKey) bool {
	return a.class < b.class || a.class == b.class && a.tenant < b.tenant
}

func (q *queue) removed(f *flow) {
	f.waiting--
	if q.waiting--; q.waiting == 0 {
		clear(q.flows)
	}
}

// maxTried is how many requests of a class are tried: requests to a prefix that is throttled must not hold
// back those to others.
const maxTried = 64

// next removes the first request that may be sent, of the classes in the order of their turns.
func (f *flow) next(weights [model.Classes]int64, try func(*waiter) verdict) (*waiter, verdict) {
	var tried [model.Classes]bool
	for {
		least := -1
		for i := range f.classes {
			c := &f.classes[i]
			if len(c.waiters) > 0 && !tried[i] && (least < 0 || c.clock < f.classes[least].clock) {
				least = i
			}
		}
		if least < 0 {
			return nil, later
		}
		tried[least] = true
		c := &f.classes[least]
		for i, w := range c.waiters[:min(maxTried, len(c.waiters))] {
			switch try(w) {
			case send:
				c.waiters = slices.Delete(c.waiters, i, i+1)
				f.now = max(f.now, c.clock)
				c.clock += (w.bytes + requestBytes) / weights[least]
				return w, send
			case stop:
				return nil, stop
			}
		}
	}
}

// remove removes a request that gave up.
func (q *queue) remove(w *waiter) {
	f := q.flows[q.key(w.caller)]
	c := &f.classes[w.caller.Class]
	i := slices.Index(c.waiters, w)
	c.waiters = slices.Delete(c.waiters, i, i+1)
	q.removed(f)
}

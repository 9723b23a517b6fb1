package api

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/pressure"
)

// waitersPerSlot bounds the requests that wait for a turn, and those that wait for memory, since each holds
// its form. More would not get their turn in time anyway.
const waitersPerSlot = 16

// otherTenants is how long a tenant leaves room for others after one of them has sent a request.
const otherTenants = 5 * time.Minute

// Slots are the turns. The gates of several dialects may share them.
//
// A free turn goes to the waiting tenant that has the fewest. While several tenants send requests, each
// leaves a quarter of the turns, and of the queue, to the others. So they do not wait until one of its
// requests ends. While goroutines wait long for a processor, each has fewer: at least half as many as there
// are processors, and at least two, of which one may wait for a bucket.
type Slots struct {
	// Requests that wait for memory are counted apart: they must not keep light ones from waiting for a turn.
	forMemory waiters

	// share is how many turns a tenant may have while several send requests.
	share *pressure.Share

	mu       sync.Mutex
	most     int
	taken    int
	turns    map[string]int // by tenant
	queue    []*waiter      // in the order of arrival
	seen     bool
	last     string    // tenant of the last request
	switched time.Time // when the tenant was another than that of the request before
	// looking says that the queue is looked at again soon, since the share may grow without any request.
	looking bool
}

// lookEvery is how often the queue is looked at while there are free turns that no one may have.
const lookEvery = 100 * time.Millisecond

// waiter is a request that waits for a turn.
type waiter struct {
	tenant  string
	granted chan struct{} // closed when it has its turn
}

// NewSlots returns n turns, and at least one.
func NewSlots(n int) *Slots {
	n = max(n, 1)
	s := &Slots{most: n, turns: make(map[string]int), share: pressure.New(min(max(2, runtime.GOMAXPROCS(0)/2), n-n/4), n-n/4)}
	s.forMemory.most = waitersPerSlot * int64(n)
	return s
}

// running returns the number of turns that are taken.
func (s *Slots) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// tenantFull refuses a request of a tenant that has as many as it may have.
type tenantFull struct{ has, may int }

func (e *tenantFull) Error() string {
	return fmt.Sprintf("%d queries run or wait, and %d may (query.tenant-concurrent)", e.has, e.may)
}

// queueFull refuses a request for which the queue has no room.
type queueFull struct{ waiting int }

func (e *queueFull) Error() string { return fmt.Sprintf("%d queries wait", e.waiting) }

// enter takes a turn for a tenant, and returns nil, or a place in the queue. Its error is a tenantFull if the
// tenant has most requests that run or wait, of which 0 means no limit, or a queueFull. A request that had a
// turn before always has room.
func (s *Slots) enter(tenant string, most int, hadTurn bool) (w *waiter, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if has := s.turns[tenant] + s.waiting(tenant); !hadTurn && most > 0 && has >= most {
		return nil, &tenantFull{has, most}
	}
	if s.seen && tenant != s.last {
		s.switched = time.Now()
	}
	s.seen, s.last = true, tenant
	s.grantLocked() // the share may have grown
	if s.taken < s.most && s.mayStart(tenant) {
		s.start(tenant)
		return nil, nil
	}
	if room := waitersPerSlot * s.most; !hadTurn && (len(s.queue) >= room || !s.leavesRoom(s.waiting(tenant), room)) {
		return nil, &queueFull{len(s.queue)}
	}
	w = &waiter{tenant: tenant, granted: make(chan struct{})}
	s.queue = append(s.queue, w)
	s.lookLocked()
	return w, nil
}

// lookLocked has the queue looked at again, if turns are free.
func (s *Slots) lookLocked() {
	if s.looking || len(s.queue) == 0 || s.taken >= s.most {
		return
	}
	s.looking = true
	time.AfterFunc(lookEvery, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.looking = false
		s.grantLocked()
		s.lookLocked()
	})
}

// mayStart reports whether a tenant may have one more turn. The caller holds mu.
func (s *Slots) mayStart(tenant string) bool {
	return !s.sharedLocked() || s.share.Allows(s.turns[tenant])
}

// leavesRoom reports whether a tenant that has some of the places in the queue may have one more. The caller
// holds mu.
func (s *Slots) leavesRoom(has, most int) bool {
	return has < most-most/4 || !s.sharedLocked()
}

// Shared reports whether several tenants send requests.
func (s *Slots) Shared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sharedLocked()
}

func (s *Slots) sharedLocked() bool { return time.Since(s.switched) <= otherTenants }

// waiting returns the number of requests of a tenant in the queue. The caller holds mu.
func (s *Slots) waiting(tenant string) (n int) {
	for _, w := range s.queue {
		if w.tenant == tenant {
			n++
		}
	}
	return n
}

// start gives a turn to a tenant. The caller holds mu.
func (s *Slots) start(tenant string) {
	s.taken++
	s.turns[tenant]++
}

// leave gives back a turn of a tenant.
func (s *Slots) leave(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.turns[tenant]--; s.turns[tenant] == 0 {
		delete(s.turns, tenant)
	}
	s.grantLocked()
	s.lookLocked()
}

// grantLocked gives free turns to those that wait.
func (s *Slots) grantLocked() {
	for s.taken < s.most && len(s.queue) > 0 {
		next := -1
		for i, w := range s.queue {
			if s.mayStart(w.tenant) && (next < 0 || s.turns[w.tenant] < s.turns[s.queue[next].tenant]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := s.queue[next]
		s.queue = slices.Delete(s.queue, next, next+1)
		s.start(w.tenant)
		close(w.granted)
	}
}

// cancel removes a request from the queue. It returns false if the request has its turn already.
func (s *Slots) cancel(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, w)
	if i < 0 {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	return true
}

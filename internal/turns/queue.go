package turns

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// WaitersPerTurn bounds the requests that wait for a turn, since each holds its form. More would not get
// their turn in time anyway.
const WaitersPerTurn = 16

// OtherTenants is how long a tenant leaves room for others after one of them has sent a request.
const OtherTenants = 5 * time.Minute

// soon is how long the next request of another tenant is expected at any moment.
const soon = 10 * time.Second

// Share says whether a tenant that has some turns may have one more while several tenants send requests.
type Share interface{ Allows(has int) bool }

// Queue hands out turns. It is safe for concurrent use.
//
// A free turn goes to a request that had one before, and then to the waiting tenant that has the fewest.
// While several tenants send requests, each has no more than its share, and no more than three quarters of
// the places in the queue and of the pauses. So others do not wait until one of its requests ends.
type Queue struct {
	share Share

	mu    sync.Mutex
	most  int
	room  int // places in the queue
	taken int
	turns map[string]int // by tenant
	// paused are the requests that gave back their turn and will want another one, by tenant.
	paused     map[string]int
	allPaused  int
	mostPaused int
	queue      []*Waiter // in the order of arrival
	seen       bool
	last       string    // tenant of the last request
	switched   time.Time // when the tenant was another than that of the request before
	// looking says that the queue is looked at again soon, since the share may grow without any request.
	looking bool
}

// lookEvery is how often the queue is looked at while there are free turns that no one may have.
const lookEvery = 100 * time.Millisecond

// Waiter is a request that waits for a turn.
type Waiter struct {
	tenant  string
	hadTurn bool
	granted chan struct{}
}

// Granted returns what is closed when the request has its turn.
func (w *Waiter) Granted() <-chan struct{} { return w.granted }

// New returns n turns, and at least one.
func New(n int, share Share) *Queue {
	n = max(n, 1)
	return &Queue{most: n, room: WaitersPerTurn * n, share: share, turns: make(map[string]int), paused: make(map[string]int)}
}

// SetMost sets how many turns there are. Those that are taken beyond it stay taken.
func (q *Queue) SetMost(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.most = max(n, 1)
	q.grantLocked()
	q.lookLocked()
}

// SetMostPaused sets how many requests may pause at one time; none may before.
func (q *Queue) SetMostPaused(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mostPaused = n
}

// BoundPaused lets at most n requests pause, if that is fewer.
func (q *Queue) BoundPaused(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mostPaused = min(q.mostPaused, n)
}

// Pause gives back the turn of a request that has not ended, and counts it until Resume. It reports false,
// and the request keeps its turn, if too many pause already.
func (q *Queue) Pause(tenant string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.allPaused >= q.mostPaused || q.paused[tenant] >= q.mostPaused-q.mostPaused/4 && q.sharedLocked() {
		return false
	}
	q.allPaused++
	q.paused[tenant]++
	q.leaveLocked(tenant)
	return true
}

// Resume ends the pause of a request, which has another turn by Enter, or has ended.
func (q *Queue) Resume(tenant string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.allPaused--
	if q.paused[tenant]--; q.paused[tenant] == 0 {
		delete(q.paused, tenant)
	}
}

// Paused returns the number of requests that pause.
func (q *Queue) Paused() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.allPaused
}

// Running returns the number of turns that are taken.
func (q *Queue) Running() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken
}

// TenantFullError refuses a request of a tenant that has as many as it may have, with those that pause.
type TenantFullError struct{ Has, May int }

func (e *TenantFullError) Error() string {
	return fmt.Sprintf("requests that run or wait: %d, of at most %d", e.Has, e.May)
}

// FullError refuses a request for which the queue has no room. Waiting requests are those of all tenants, and
// Own those of its tenant.
type FullError struct{ Waiting, Own int }

func (e *FullError) Error() string { return fmt.Sprintf("the queue is full: %d waiting", e.Waiting) }

// Enter takes a turn for a tenant, and returns nil, or a place in the queue. Its error is a TenantFullError
// if the tenant has most requests that run or wait, of which 0 means no limit, or a FullError. A request that
// had a turn before always has room.
func (q *Queue) Enter(tenant string, most int, hadTurn bool) (w *Waiter, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if has := q.turns[tenant] + q.waiting(tenant) + q.paused[tenant]; !hadTurn && most > 0 && has >= most {
		return nil, &TenantFullError{has, most}
	}
	if q.seen && tenant != q.last {
		q.switched = time.Now()
	}
	q.seen, q.last = true, tenant
	q.grantLocked() // the share may have grown
	if q.taken < q.most && q.mayStart(tenant) {
		q.start(tenant)
		return nil, nil
	}
	if !hadTurn && (len(q.queue) >= q.room || !q.leavesRoom(q.waiting(tenant))) {
		return nil, &FullError{len(q.queue), q.waiting(tenant)}
	}
	w = &Waiter{tenant: tenant, hadTurn: hadTurn, granted: make(chan struct{})}
	q.queue = append(q.queue, w)
	q.lookLocked()
	return w, nil
}

// lookLocked has the queue looked at again, if turns are free.
func (q *Queue) lookLocked() {
	if q.looking || len(q.queue) == 0 || q.taken >= q.most {
		return
	}
	q.looking = true
	time.AfterFunc(lookEvery, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.looking = false
		q.grantLocked()
		q.lookLocked()
	})
}

// mayStart reports whether a tenant may have one more turn. The caller holds mu.
func (q *Queue) mayStart(tenant string) bool {
	return !q.sharedLocked() || q.share.Allows(q.turns[tenant])
}

// leavesRoom reports whether a tenant that has some of the places in the queue may have one more. The caller
// holds mu.
func (q *Queue) leavesRoom(has int) bool {
	return has < q.room-q.room/4 || !q.sharedLocked()
}

// Shared reports whether several tenants send requests.
func (q *Queue) Shared() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sharedLocked()
}

func (q *Queue) sharedLocked() bool { return time.Since(q.switched) <= OtherTenants }

// Mixed reports whether several tenants send requests all the time.
func (q *Queue) Mixed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Since(q.switched) <= soon
}

// Waiting returns the number of requests of a tenant that wait.
func (q *Queue) Waiting(tenant string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting(tenant)
}

// waiting returns the number of requests of a tenant in the queue. The caller holds mu.
func (q *Queue) waiting(tenant string) (n int) {
	for _, w := range q.queue {
		if w.tenant == tenant {
			n++
		}
	}
	return n
}

// start gives a turn to a tenant. The caller holds mu.
func (q *Queue) start(tenant string) {
	q.taken++
	q.turns[tenant]++
}

// Leave gives back a turn of a tenant.
func (q *Queue) Leave(tenant string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leaveLocked(tenant)
}

func (q *Queue) leaveLocked(tenant string) {
	q.taken--
	if q.turns[tenant]--; q.turns[tenant] == 0 {
		delete(q.turns, tenant)
	}
	q.grantLocked()
	q.lookLocked()
}

// grantLocked gives free turns to those that wait.
func (q *Queue) grantLocked() {
	for q.taken < q.most && len(q.queue) > 0 {
		next := -1
		for i, w := range q.queue {
			if q.mayStart(w.tenant) && (next < 0 || q.before(w, q.queue[next])) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := q.queue[next]
		q.queue = slices.Delete(q.queue, next, next+1)
		q.start(w.tenant)
		close(w.granted)
	}
}

// before reports whether a request is to have a turn before one that came earlier. The caller holds mu.
func (q *Queue) before(w, earlier *Waiter) bool {
	if w.hadTurn != earlier.hadTurn {
		return w.hadTurn
	}
	return q.turns[w.tenant] < q.turns[earlier.tenant]
}

// Cancel removes a request from the queue. It returns false if the request has its turn already.
func (q *Queue) Cancel(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.queue, w)
	if i < 0 {
		return false
	}
	q.queue = slices.Delete(q.queue, i, i+1)
	return true
}

package pace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/turns"
)

const (
	// LeastRequests is how many requests may run at one time, however slow the server is.
	LeastRequests = 2
	// slowAfter is how long a request takes that counts as slow, and how long one must have waited that ends
	// without a response to count as a failure of the server.
	slowAfter = 10 * time.Second
)

// Pace lets requests to VictoriaLogs run in turn. Tenants share the turns. There are fewer while the server
// is slow or refuses: half as many after such a request, and one more after as many good ones as there are.
// It is safe for concurrent use.
type Pace struct {
	queue *turns.Queue
	most  int           // that are set
	Slow  time.Duration // how long a request takes that counts as slow

	setting sync.Mutex // held while the queue is told how many may run

	mu   sync.Mutex
	may  int       // at one time, now
	good int       // requests since it was changed
	cut  time.Time // when it was cut. What began before says nothing new
}

// New returns a pace of a number of requests at one time at most.
func New(most int) *Pace {
	p := &Pace{most: max(most, 1), Slow: slowAfter}
	p.may = p.most
	p.queue = turns.New(p.most, p)
	return p
}

// Allows reports whether a tenant that has some turns may have one more while others send requests: three
// quarters of those that there are now.
func (p *Pace) Allows(has int) bool {
	may := p.Limit()
	return has < max(1, may-(may+3)/4)
}

// Limit returns how many requests may run now.
func (p *Pace) Limit() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.may
}

// crowded refuses a request for which the queue has no room.
func (p *Pace) crowded(tenant string, full *turns.FullError) error {
	return &model.LimitError{
		Limit: "victorialogs.max-requests", Tenant: true,
		Text: fmt.Sprintf("%s: %d requests to VictoriaLogs wait, %d of them of tenant %s; %d run at one time now, of %d (victorialogs.max-requests); send fewer queries at a time",
			model.ErrTransient, full.Waiting, full.Own, tenant, p.Limit(), p.most),
	}
}

// ErrNoneFree says that a request would have to wait for its turn.
var ErrNoneFree = errors.New("no turn is free")

// Enter takes a turn for the caller of a context, for which it waits if it may. The request must then call
// leave.
func (p *Pace) Enter(ctx context.Context, mayWait bool) (leave func(), err error) {
	tenant := model.CallerOf(ctx).Tenant
	w, err := p.queue.Enter(tenant, 0, false)
	var full *turns.FullError
	if errors.As(err, &full) {
		return nil, p.crowded(tenant, full)
	}
	if w == nil {
		return func() { p.queue.Leave(tenant) }, nil
	}
	if !mayWait && p.queue.Cancel(w) {
		return nil, ErrNoneFree
	}
	select {
	case <-w.Granted():
	case <-ctx.Done():
		if p.queue.Cancel(w) {
			return nil, context.Cause(ctx)
		}
	}
	return func() { p.queue.Leave(tenant) }, nil
}

// Ended says how a request ended that has begun at a time.
func (p *Pace) Ended(began, now time.Time, ok bool) {
	if !p.changed(began, now, ok) {
		return
	}
	// Several may end at one time. Whichever comes here last sets what they have come to.
	p.setting.Lock()
	defer p.setting.Unlock()
	p.queue.SetMost(p.Limit())
}

// changed takes the end of a request, and reports whether another number of requests may run since.
func (p *Pace) changed(began, now time.Time, ok bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.may
	switch {
	case !ok || now.Sub(began) >= p.Slow:
		if began.Before(p.cut) {
			break
		}
		p.may, p.good, p.cut = max(min(LeastRequests, p.most), p.may/2), 0, now
	case p.may == p.most:
	default:
		if p.good++; p.good >= p.may {
			p.may, p.good = p.may+1, 0
		}
	}
	return p.may != before
}

// Waiting returns how many requests of a tenant wait.
func (p *Pace) Waiting(tenant string) int { return p.queue.Waiting(tenant) }

// Running returns how many requests run.
func (p *Pace) Running() int { return p.queue.Running() }

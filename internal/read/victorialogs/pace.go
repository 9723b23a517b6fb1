package victorialogs

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
	// leastRequests is how many requests may run at one time, however slow the server is.
	leastRequests = 2
	// slowAfter is how long a request takes that counts as slow, and how long one must have waited that ends
	// without a response to count as a failure of the server.
	slowAfter = 10 * time.Second
)

// pace lets requests to the server run in turn. Tenants share the turns. There are fewer while the server is
// slow or refuses: half as many after such a request, and one more after as many good ones as there are. It
// is safe for concurrent use.
type pace struct {
	queue *turns.Queue
	most  int // that are set
	slow  time.Duration

	setting sync.Mutex // held while the queue is told how many may run

	mu   sync.Mutex
	may  int       // at one time, now
	good int       // requests since it was changed
	cut  time.Time // when it was cut. What began before says nothing new
}

func newPace(most int) *pace {
	p := &pace{most: max(most, 1), slow: slowAfter}
	p.may = p.most
	p.queue = turns.New(p.most, p)
	return p
}

// Allows reports whether a tenant that has some turns may have one more while others send requests: three
// quarters of those that there are now.
func (p *pace) Allows(has int) bool {
	may := p.limit()
	return has < max(1, may-(may+3)/4)
}

// limit returns how many requests may run now.
func (p *pace) limit() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.may
}

// crowded refuses a request for which the queue has no room.
func (p *pace) crowded(tenant string, full *turns.FullError) error {
	return &model.LimitError{
		Limit: "victorialogs.max-requests", Tenant: true,
		Text: fmt.Sprintf("%s: %d requests to VictoriaLogs wait, %d of them of tenant %s; %d run at one time now, of %d (victorialogs.max-requests); send fewer queries at a time",
			model.ErrTransient, full.Waiting, full.Own, tenant, p.limit(), p.most),
	}
}

// errNoneFree says that a request would have to wait for its turn.
var errNoneFree = errors.New("no turn is free")

// enter takes a turn for the caller of a context, for which it waits if it may. The request must then call
// leave.
func (p *pace) enter(ctx context.Context, mayWait bool) (leave func(), err error) {
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
		return nil, errNoneFree
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

// ended says how a request ended that has begun at a time.
func (p *pace) ended(began, now time.Time, ok bool) {
	if !p.changed(began, now, ok) {
		return
	}
	// Several may end at one time. Whichever comes here last sets what they have come to.
	p.setting.Lock()
	defer p.setting.Unlock()
	p.queue.SetMost(p.limit())
}

// changed takes the end of a request, and reports whether another number of requests may run since.
func (p *pace) changed(began, now time.Time, ok bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.may
	switch {
	case !ok || now.Sub(began) >= p.slow:
		if began.Before(p.cut) {
			break
		}
		p.may, p.good, p.cut = max(min(leastRequests, p.most), p.may/2), 0, now
	case p.may == p.most:
	default:
		if p.good++; p.good >= p.may {
			p.may, p.good = p.may+1, 0
		}
	}
	return p.may != before
}

package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"math/rand/v2"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite/route"
)

// delivery is how lots are sent.
type delivery struct {
	protocol route.Protocol
	secure   *tls.Config // nil: without TLS
}

const (
	// A lot that failed is sent again after firstRetry, then after about twice the previous wait, up to
	// lastRetry, as in carbon.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
	// outlive is how much longer than a connection the next one must live, with two round trips. The
	// connections of a process that dies end within microseconds.
	outlive = 200 * time.Millisecond
	// idle is how long after it was made a connection is still used. Some routers forget older ones.
	idle = 10 * time.Second
	// grace is how long a lot that is being sent has when the process ends.
	grace = 2 * time.Second
)

// sender sends the lots of a queue, one after the other.
type sender struct {
	q *Queue
	// next is a connection on which nothing was sent; nil: there is none.
	next *link
	// text is a lot as it is sent.
	text []byte
}

func (q *Queue) run(ctx context.Context) {
	s := &sender{q: q}
	defer s.drop()
	for wait := firstRetry; ; {
		l, ok := q.first(ctx)
		if !ok {
			return
		}
		err := s.deliver(ctx, l)
		if err == nil {
			wait = firstRetry
			continue
		}
		if ctx.Err() != nil {
			return
		}
		q.count.failures.Inc()
		if q.mayLog("send") {
			q.log.Warn("points cannot be delivered to a carbon; they wait in its queue", "destination", q.to.String(), "err", err)
		}
		timer := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		wait = min(2*wait, lastRetry)
	}
}

// drop closes the connection that was made before.
func (s *sender) drop() {
	if s.next != nil {
		s.next.close()
		s.next = nil
	}
}

// deliver sends a lot and forgets it once it is confirmed.
func (s *sender) deliver(ctx context.Context, l lot) error {
	points, err := s.q.read(l)
	if err != nil && !errors.Is(err, model.ErrCorrupt) && !errors.Is(err, fs.ErrNotExist) {
		return err // such as too many open files: the lot is whole, and is read again
	}
	if err != nil {
		s.q.setAside(l.number, err)
		s.q.drop(damaged, int(l.points))
		s.q.settle(l, false)
		return nil
	}
	how := s.q.how.Load()
	var left int
	if s.text, left, err = encode(s.text[:0], how.protocol, points); err != nil {
		s.q.setAside(l.number, err)
		s.q.drop(damaged, int(l.points))
		s.q.settle(l, false)
		return nil
	}
	readable, _ := countPoints(points)
	if len(s.text) > 0 {
		if err := s.send(ctx, how); err != nil {
			return err
		}
	}
	s.q.count.sent.Add(float64(readable - left))
	s.q.count.lots.Inc()
	if left > 0 {
		s.q.drop(unsendable, left)
	}
	if lost := int(l.points) - readable; lost > 0 {
		s.q.drop(damaged, lost)
	}
	s.q.settle(l, true)
	return nil
}

// send sends the text and returns when the destination has confirmed it.
func (s *sender) send(ctx context.Context, how *delivery) error {
	// A lot that is almost confirmed is not sent again after a restart.
	ctx, cancel := lasting(ctx, grace)
	defer cancel()
	l := s.next
	s.next = nil
	if l != nil && (l.hasEnded() || time.Since(l.at) > idle) {
		l.close()
		l = nil
	}
	var err error
	if l == nil {
		if l, err = dial(ctx, s.q.to.Address(), how.secure); err != nil {
			return err
		}
	}
	defer l.close()
	defer context.AfterFunc(ctx, func() { _ = l.nc.Close() })()
	if err := l.send(s.text); err != nil {
		return s.unconfirmed(err)
	}
	next, err := dial(ctx, s.q.to.Address(), how.secure)
	if err != nil {
		return s.unconfirmed(err)
	}
	if err := confirm(ctx, l, next); err != nil {
		next.close()
		return s.unconfirmed(err)
	}
	s.next = next
	return nil
}

var errDied = errors.New("the destination closed all connections: it may have ended without keeping what it read")

// confirm ends a connection, and returns when the destination has confirmed all that was sent over it. The
// next one was made before and must live on.
func confirm(ctx context.Context, l, next *link) error {
	// A destination that has died and is there again accepts the next connection.
	if err := closedBefore(l.socket); err != nil {
		return err
	}
	if err := l.closeWrite(); err != nil {
		return err
	}
	if err := l.awaitEnd(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(outlive + 2*max(l.dialed, next.dialed))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-next.ended:
		return errDied
	case <-ctx.Done():
		return ctx.Err()
	}
	return reset(l.socket)
}

// unconfirmed counts points that will be sent again. Some may have arrived.
func (s *sender) unconfirmed(err error) error {
	s.q.mu.Lock()
	points := s.q.ready[0].points
	s.q.mu.Unlock()
	s.q.count.repeated.Add(float64(points))
	return err
}

// lasting returns a context that ends a while after another.
func lasting(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(while, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() { stop(); cancel() }
}

package graphite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

const (
	// lastResortAfter is how long a frame that holds memory waits for more before it asks for the last resort.
	lastResortAfter = 100 * time.Millisecond
	// leaseStep is the least, in bytes, that is asked for at a time for what grows in small steps.
	leaseStep = 32 << 10
)

// lease is what one frame holds of the byte budget.
//
// It is taken in steps, while the bytes of the frame arrive and while they are read, so that a sender holds about as
// much as he has sent. Frames that hold a part and wait for the rest could wait for each other for ever. So one frame
// of a listener at a time may go on beyond the budget, the last resort, until its rows are durable.
type lease struct {
	l      *Listener
	grants []*write.Grant
	bytes  int64
	// spare bytes were asked for and are not used yet.
	spare int64
	// last: the lease has the last resort.
	last bool
	// waited is the time that was spent waiting for memory.
	waited time.Duration
}

// take takes n bytes, and waits for them.
func (m *lease) take(n int64) error {
	g, err := m.grant(n)
	if err != nil {
		return err
	}
	if g != nil {
		m.grants = append(m.grants, g)
	}
	m.bytes += n
	m.l.metrics.frames.Add(float64(n))
	return nil
}

// takeSome takes n bytes of what grows in small steps.
func (m *lease) takeSome(n int64) error {
	if more := n - m.spare; more > 0 {
		more = max(more, leaseStep)
		if err := m.take(more); err != nil {
			return err
		}
		m.spare += more
	}
	m.spare -= n
	return nil
}

// grant waits for a grant of n bytes that is not to be a part of the lease. It is nil if the lease has the last resort.
// Errors are of class [model.ErrClosed] if the listener gives up.
func (m *lease) grant(n int64) (*write.Grant, error) {
	if m.last {
		return nil, nil
	}
	sink, began := m.l.o.Sink, time.Now()
	g, ok, err := sink.TryAdmit(m.l.tenant, n)
	for !ok {
		switch {
		case m.l.ctx.Err() != nil:
			return nil, fmt.Errorf("%w: graphite: no memory was free before the listener stopped", model.ErrClosed)
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		}
		if g, err = m.waitSome(n); err == nil {
			break
		}
		if len(m.grants) > 0 {
			select {
			case m.l.lastResort <- struct{}{}:
				m.last, ok = true, true
			default:
			}
		}
	}
	m.waited += time.Since(began)
	return g, nil
}

func (m *lease) waitSome(n int64) (*write.Grant, error) {
	ctx, cancel := context.WithTimeout(m.l.ctx, lastResortAfter)
	defer cancel()
	return m.l.o.Sink.AdmitWait(ctx, m.l.tenant, n)
}

// release gives everything back.
func (m *lease) release() {
	for _, g := range m.grants {
		g.Release()
	}
	clear(m.grants)
	m.l.metrics.frames.Sub(float64(m.bytes))
	if m.last {
		<-m.l.lastResort
	}
	*m = lease{l: m.l, grants: m.grants[:0]}
}

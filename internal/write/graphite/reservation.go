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
	// lastResortAfter is how long a frame that holds memory waits for more before it tries the last
	// resort.
	lastResortAfter = 100 * time.Millisecond
	// reservationStep is the least number of bytes that is reserved at a time for memory that grows in small
	// steps.
	reservationStep = 32 << 10
)

// reservation is the part of the byte budget that one frame has reserved.
//
// It grows in steps while the bytes of the frame arrive and are decoded, so that a sender holds about
// as much as it has sent. Frames that hold a part and wait for the rest could deadlock. So one frame of
// a listener at a time may exceed the budget, the last resort, until its rows are durable.
type reservation struct {
	l      *Listener
	tenant string
	grants []*write.Grant
	bytes  int64
	// unused bytes are reserved and not used yet.
	unused int64
	// overBudget means that the frame has the last resort.
	overBudget bool
	// waited is the total time spent waiting for memory.
	waited time.Duration
}

// reserve reserves n bytes and waits until they are free.
func (m *reservation) reserve(n int64) error {
	g, err := m.grant(n)
	if err != nil {
		return err
	}
	if g != nil {
		m.grants = append(m.grants, g)
	}
	m.bytes += n
	m.l.metrics.pickleBytes.Add(float64(n))
	return nil
}

// reserveSmall reserves n bytes for memory that grows in small steps.
func (m *reservation) reserveSmall(n int64) error {
	if more := n - m.unused; more > 0 {
		more = max(more, reservationStep)
		if err := m.reserve(more); err != nil {
			return err
		}
		m.unused += more
	}
	m.unused -= n
	return nil
}

// grant waits for a grant of n bytes that does not become part of the reservation. The grant is nil if the
// frame has the last resort. If the listener stops, the error is of class [model.ErrClosed].
func (m *reservation) grant(n int64) (*write.Grant, error) {
	if m.overBudget {
		return nil, nil
	}
	sink, began := m.l.o.Sink, time.Now()
	g, ok, err := sink.TryAdmit(m.tenant, n)
	for !ok {
		switch {
		case m.l.ctx.Err() != nil:
			return nil, fmt.Errorf("%w: graphite: the listener stopped before memory was free", model.ErrClosed)
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		}
		if g, err = m.waitBriefly(n); err == nil {
			break
		}
		if len(m.grants) > 0 {
			select {
			case m.l.lastResort <- struct{}{}:
				m.overBudget, ok = true, true
			default:
			}
		}
	}
	m.waited += time.Since(began)
	return g, nil
}

func (m *reservation) waitBriefly(n int64) (*write.Grant, error) {
	ctx, cancel := context.WithTimeout(m.l.ctx, lastResortAfter)
	defer cancel()
	return m.l.o.Sink.AdmitWait(ctx, m.tenant, n)
}

// release returns all memory to the budget.
func (m *reservation) release() {
	for _, g := range m.grants {
		g.Release()
	}
	clear(m.grants)
	m.l.metrics.pickleBytes.Sub(float64(m.bytes))
	if m.overBudget {
		<-m.l.lastResort
	}
	*m = reservation{l: m.l, tenant: m.tenant, grants: m.grants[:0]}
}

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

// labelRoom reserves memory for what pushes of chunks copy of the labels of new series.
//
// A push holds the memory of its rows, and other pushes may hold all the rest: if it waited until memory is
// free, all of them could wait for each other. So where memory is short, one push at a time exceeds the byte
// budget, by the labels of a chunk. Rows of known series need none of that memory, and chunks that have no
// others do not wait.
type labelRoom struct {
	sink labelSink
	// beyond has a token while a push exceeds the budget.
	beyond chan struct{}
}

// labelSink is what a labelRoom needs of the write path.
type labelSink interface {
	Limits(tenant string) write.Limits
	TryAdmit(tenant string, bytes int64) (g *write.Grant, ok bool, err error)
}

func newLabelRoom(sink labelSink) *labelRoom {
	return &labelRoom{sink: sink, beyond: make(chan struct{}, 1)}
}

// labelReservation is the part of a labelRoom that one push has.
type labelReservation struct {
	ctx    context.Context // the zero value has none, and reserves nothing
	room   *labelRoom
	tenant string
	// unused bytes are part of the grants for the rows, and not used yet.
	unused int64
	grants []*write.Grant
	beyond bool // the push has the token
}

// begin says that a push of the chunk begins. The caller calls end after it.
func (c *chunk) begin(ctx context.Context, room *labelRoom, tenant string) {
	c.pushing = labelReservation{
		ctx: ctx, room: room, tenant: tenant, unused: int64(write.ResolveBytes * c.rows()), grants: c.pushing.grants[:0],
	}
}

// end gives back what the push has reserved. After a push that failed, the batch holds no labels anymore: the
// next one copies them again.
func (c *chunk) end(b *model.Batch, err error) {
	if err != nil {
		b.Labels = model.LabelTable{}
	}
	m := &c.pushing
	for _, g := range m.grants {
		g.Release()
	}
	clear(m.grants)
	if m.beyond {
		<-m.room.beyond
	}
	*m = labelReservation{grants: m.grants[:0]}
}

var _ write.Reserver = (*chunk)(nil)

// Reserve reserves memory for the push that has begun. It waits for other pushes, but not for memory.
func (c *chunk) Reserve(bytes int64) error {
	m := &c.pushing
	switch {
	case m.room == nil || m.beyond:
		return nil
	case bytes <= m.unused:
		m.unused -= bytes
		return nil
	}
	if most := m.room.sink.Limits(m.tenant).MaxInflightBytes; most <= 0 || bytes <= most {
		g, ok, err := m.room.sink.TryAdmit(m.tenant, bytes)
		if err != nil {
			return err
		}
		if ok {
			m.grants = append(m.grants, g)
			return nil
		}
	}
	model.ProcessorOf(m.ctx).Leave()
	select {
	case m.room.beyond <- struct{}{}:
		m.beyond = true
		return nil
	case <-m.ctx.Done():
		return fmt.Errorf("%w: graphite: the push ended before there was memory for labels: %w", model.ErrTransient, m.ctx.Err())
	}
}

package logql

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
)

const (
	// maxWorkers bounds the workers of one query. There may be more than processors, since most of them wait where pages are
	// far away.
	maxWorkers = 8
	// firstAhead pages are announced before the first is read, and twice as many each time; aheadPages at most.
	firstAhead = 4
	aheadPages = 64
	// idlePageBytes is what pages may hold between two pieces that need them, if the query's memory has no bound.
	idlePageBytes = 64 << 20
)

// crew is the workers of one selection. They take its units in order.
type crew struct {
	x     *execution
	l     *layout
	pages *pages
	stop  context.CancelFunc
	wait  sync.WaitGroup

	mu      sync.Mutex
	next    int
	workers int
	err     error
	told    int // units whose pages were announced
	ahead   int
	// flight is the bytes of the units that are worked on, and room how many there may be; a larger one goes alone.
	flight, room int64
	landed       *sync.Cond
	stages       atomic.Int64 // bytes that the stages of all workers take
}

// charge charges memory that stages take until the crew is done.
func (c *crew) charge(n int64) error {
	err := c.x.quota.TakeBytes(n)
	if err == nil {
		c.stages.Add(n)
	}
	return err
}

// scanAll scans the units of a layout.
//
// It begins with as many workers as there are processors, and with each unit that did not end the query there may be one
// more: a query for the newest lines reads little in vain, and one that must read all soon has enough of them to wait for
// pages.
func (x *execution) scanAll(ctx context.Context, l *layout) error {
	l.order(x.direction)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle, room := int64(idlePageBytes), int64(8*idlePageBytes)
	if limit := x.quota.MaxBytes; limit > 0 {
		idle, room = limit/8, limit/4
	}
	if x.idleBytes > 0 {
		idle = x.idleBytes
	}
	c := &crew{x: x, l: l, stop: cancel, ahead: firstAhead, room: room, pages: &pages{all: l.pages, max: idle}}
	c.landed = sync.NewCond(&c.mu)
	defer func() { _ = x.quota.TakeBytes(-c.stages.Load()) }() // giving back does not fail
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.landed.Broadcast()
	})()
	c.mu.Lock()
	for range min(x.workers, len(l.units)) {
		c.startLocked(ctx)
	}
	c.mu.Unlock()
	c.wait.Wait()
	c.pages.close()
	x.stats.pagesRead += c.pages.wereRead()
	return c.err
}

func (c *crew) startLocked(ctx context.Context) {
	c.workers++
	c.wait.Go(func() {
		if err := c.work(ctx); err != nil {
			c.fail(err)
		}
	})
}

func (c *crew) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// What the others say once one has failed is that they were stopped.
	if c.err == nil || errors.Is(c.err, context.Canceled) && !errors.Is(err, context.Canceled) {
		c.err = err
	}
	c.stop()
}

func (c *crew) work(ctx context.Context) error {
	s := &scanner{x: c.x, l: c.l, pages: c.pages}
	if p := c.x.program; p.filter != nil {
		s.filter = p.filter()
		s.filter.Bind(ctx)
	}
	s.stages = c.x.program.stages()
	s.stages.Bind(ctx, c.charge)
	if p := c.x.program; p.probe != nil && c.x.top.limit > 0 {
		s.probe = p.probe()
		s.probe.Bind(ctx, c.charge)
	}
	for {
		u, announce, err := c.take(ctx)
		if u == nil || err != nil {
			return err
		}
		if len(announce) > 0 {
			read.FetchText(ctx, announce, c.want())
		}
		if err := s.unit(ctx, u); err != nil {
			return err
		}
		c.land(ctx, u)
	}
}

// want says what will be read of pages.
func (c *crew) want() model.TextWant {
	switch {
	case c.x.wantsNewest():
		return model.WantLines | model.WantMetadata | model.WantNewest
	case c.x.program.keepsAll:
		return model.WantLines | model.WantMetadata
	}
	return model.WantLines
}

// take returns the next unit, and pages to announce; none, if no further one can change the answer.
func (c *crew) take(ctx context.Context) (*unit, []model.TextPage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if c.next >= len(c.l.units) {
			return nil, nil, nil
		}
		u := &c.l.units[c.next]
		if !c.x.top.wants(c.x.direction.first(u.TimeRange)) {
			c.next = len(c.l.units)
			return nil, nil, nil
		}
		if size := unitCharge(u, c.room); c.flight == 0 || c.flight+size <= c.room {
			c.flight += size
			c.next++
			return u, c.announceLocked(), nil
		}
		c.landed.Wait()
	}
}

func unitCharge(u *unit, room int64) int64 { return min(u.bytes, room) }

// land gives back what a unit took, and lets one more worker begin.
func (c *crew) land(ctx context.Context, u *unit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flight -= unitCharge(u, c.room)
	c.landed.Broadcast()
	if c.workers < maxWorkers && c.next < len(c.l.units) {
		c.startLocked(ctx)
	}
}

// announceLocked returns the pages of the next units, when half of those that were announced before are taken.
func (c *crew) announceLocked() []model.TextPage {
	if c.told-c.next >= c.ahead/2 || c.told >= len(c.l.units) {
		return nil
	}
	var out []model.TextPage
	c.told = max(c.told, c.next-1)
	seen := make(map[int32]bool)
	for ; c.told < len(c.l.units) && len(out) < c.ahead; c.told++ {
		for _, at := range c.l.units[c.told].pieces {
			p := &c.l.pieces[at]
			for i := p.from; i < p.to; i++ {
				if page := c.l.pageOf[i]; !seen[page] {
					seen[page] = true
					out = append(out, c.l.pages[page].page)
				}
			}
		}
	}
	c.ahead = min(2*c.ahead, aheadPages)
	return out
}

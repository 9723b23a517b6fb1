package selection

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
)

const (
	// maxWorkers bounds the workers of one query. There may be more than processors, since most of them wait
	// where pages are far away.
	maxWorkers = 8
	// firstPrefetch pages are prefetched before the first is read, and twice as many each time; maxPrefetch at
	// most. Of a query that reads no lines all tasks are needed, and its pages are small and next to each
	// other: countPrefetch are prefetched each time.
	firstPrefetch = 4
	maxPrefetch   = 64
	countPrefetch = 1024
	// idlePageBytes is what pages may hold between two pieces that need them, if the query's memory has no
	// bound.
	idlePageBytes = 64 << 20
)

// crew is the workers of one selection. They take its tasks in order.
type crew struct {
	x     *Execution
	l     *layout
	pages *pages
	stop  context.CancelFunc
	wait  sync.WaitGroup

	mu         sync.Mutex
	taken      int // tasks
	workers    int
	err        error
	prefetched int // tasks whose pages were prefetched
	batch      int // pages of the next prefetch
	// inFlight is the bytes of the tasks that are worked on, and room how many there may be; a larger one goes
	// alone.
	inFlight, room int64
	busy, ended    int          // workers that have a task, and tasks that were ended
	waiting        []*waiter    // those of them that have no memory to go on
	done           *sync.Cond   // a task was ended, or a worker has ceased to wait
	stages         atomic.Int64 // bytes that the stages of all workers take
}

// charge charges memory that stages take until the crew is done.
func (c *crew) charge(n int64) error {
	err := c.x.Quota.TakeBytes(n)
	if err == nil {
		c.stages.Add(n)
	}
	return err
}

// scanAll scans the tasks of a layout.
//
// It begins with as many workers as there are processors, and with each task that did not end the query there
// may be one more: a query for the newest lines reads little in vain, and one that must read all soon has
// enough of them to wait for pages.
func (x *Execution) scanAll(ctx context.Context, l *layout) error {
	if x.counter == nil {
		l.order(x.Direction)
	}
	l.forgetKeys()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	room := int64(8 * idlePageBytes)
	if limit := x.Quota.MaxBytes; limit > 0 {
		room = limit / 4
	}
	c := &crew{x: x, l: l, stop: cancel, batch: firstPrefetch, room: room, pages: &pages{all: l.pages, max: x.IdleBytes}}
	c.done = sync.NewCond(&c.mu)
	if c.counts() {
		c.batch = countPrefetch
	}
	defer func() { _ = x.Quota.TakeBytes(-c.stages.Load()) }() // giving back does not fail
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.done.Broadcast()
	})()
	c.mu.Lock()
	for range min(x.Workers, len(l.tasks)) {
		c.startLocked(ctx)
	}
	c.mu.Unlock()
	own := model.ProcessorOf(ctx)
	own.Leave()
	c.wait.Wait()
	own.Enter(ctx)
	c.pages.close()
	x.stats.pagesRead += c.pages.wereRead()
	return c.err
}

func (c *crew) startLocked(ctx context.Context) {
	c.workers++
	c.wait.Go(func() {
		ctx, done := model.Computing(ctx)
		defer done()
		if err := model.Caught(func() error { return c.work(ctx) }); err != nil {
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
	processor := model.ProcessorOf(ctx)
	s := &scanner{x: c.x, l: c.l, crew: c, pages: c.pages, processor: processor}
	if p := c.x.Program; p.Filter != nil {
		s.filter = p.Filter()
		s.filter.Bind(ctx)
	}
	if s.worker = c.x.worker(ctx, c.charge); s.worker != nil {
		defer c.x.rest(s.worker)
		s.whole = c.x.Program.Whole
	} else {
		s.stages = c.x.Program.Stages()
		s.stages.Bind(ctx, c.charge)
	}
	if p := c.x.Program; p.Probe != nil && c.x.sink.Limit() > 0 {
		s.probe = p.Probe()
		s.probe.Bind(ctx, c.charge)
	}
	for {
		processor.Leave()
		u, prefetch, err := c.next(ctx, s)
		if u == nil || err != nil {
			return err
		}
		if len(prefetch) > 0 {
			read.PrefetchText(ctx, prefetch, c.want())
		}
		processor.Enter(ctx)
		if err := s.task(ctx, u); err != nil {
			return err
		}
		c.finish(ctx, u)
	}
}

// want says what will be read of pages.
func (c *crew) want() model.TextWant {
	switch {
	case c.counts():
		return model.WantLengths
	case c.x.wantsNewest():
		return model.WantLines | model.WantMetadata | model.WantNewest
	case c.x.Program.KeepsAll:
		return model.WantLines | model.WantMetadata
	}
	return model.WantLines
}

// counts reports whether lines count without being read.
func (c *crew) counts() bool {
	return c.x.counter != nil && c.x.Program.Whole && c.x.Program.Filter == nil
}

// next returns the next task, which s is to scan, and pages to prefetch; none, if no further one can change
// the result.
func (c *crew) next(ctx context.Context, s *scanner) (*task, []model.TextPage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if c.taken >= len(c.l.tasks) {
			return nil, nil, nil
		}
		u := &c.l.tasks[c.taken]
		if !c.x.wants(c.x.Direction.First(u.TimeRange)) {
			if c.x.counter != nil { // the tasks are in no order of time
				c.taken++
				continue
			}
			c.taken = len(c.l.tasks)
			return nil, nil, nil
		}
		if size := taskCharge(u, c.room); len(c.waiting) == 0 && (c.inFlight == 0 || c.inFlight+size <= c.room) {
			s.wait.task = c.taken
			c.inFlight += size
			c.taken++
			c.busy++
			return u, c.prefetchLocked(), nil
		}
		c.done.Wait()
	}
}

func taskCharge(u *task, room int64) int64 { return min(u.bytes, room) }

// finish gives back what a task took, and lets one more worker begin.
func (c *crew) finish(ctx context.Context, u *task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight -= taskCharge(u, c.room)
	c.busy--
	c.ended++
	c.pages.freed.Add(1)
	c.done.Broadcast()
	if c.workers < maxWorkers && c.taken < len(c.l.tasks) {
		c.startLocked(ctx)
	}
}

// prefetchLocked returns the pages of the next tasks, when half of those that were prefetched before are
// taken.
func (c *crew) prefetchLocked() []model.TextPage {
	if c.prefetched-c.taken >= c.batch/2 || c.prefetched >= len(c.l.tasks) {
		return nil
	}
	var out []model.TextPage
	c.prefetched = max(c.prefetched, c.taken-1)
	seen := make(map[int32]bool)
	for ; c.prefetched < len(c.l.tasks) && len(out) < c.batch; c.prefetched++ {
		for _, at := range c.l.tasks[c.prefetched].pieces {
			p := &c.l.pieces[at]
			for i := p.from; i < p.to; i++ {
				if page := c.l.pageOf[i]; !seen[page] {
					seen[page] = true
					out = append(out, c.l.pages[page].page)
				}
			}
		}
	}
	c.batch = max(c.batch, min(2*c.batch, maxPrefetch))
	return out
}

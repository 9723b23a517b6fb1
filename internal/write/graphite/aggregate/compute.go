package aggregate

import (
	"context"
	"slices"
	"time"
)

// mostPoints is how many aggregates are computed before they are stored.
const mostPoints = 8192

// farAhead is how many seconds an interval may lie ahead of the clock and be kept for further points.
// Carbon keeps all of them until their time comes.
const farAhead = 24 * 3600

// computed is an interval that was computed.
type computed struct {
	id    uint64
	start int64
}

// batch is what is computed and stored together. The slices of points have one entry for each.
type batch struct {
	tenant string
	paths  []string
	times  []int64
	values []float64
}

func (a *Aggregator) computeEverySecond(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		a.Work(ctx)
	}
}

// Work computes and stores what is due.
func (a *Aggregator) Work(ctx context.Context) {
	now := a.o.Now() / int64(time.Second)
	ids := a.takeDue(now)
	for len(ids) > 0 && ctx.Err() == nil {
		var b []batch
		var done []computed
		n := 0
		a.mu.Lock()
		for n < len(ids) && len(done) < mostPoints {
			if buf := a.buffers[ids[n]]; buf != nil {
				b = buf.compute(b)
				for i := range buf.intervals {
					done = append(done, computed{buf.id, buf.intervals[i].start})
				}
			}
			n++
		}
		a.mu.Unlock()
		if !a.store(ctx, b) {
			a.reactivate(done)
		}
		a.settle(ids[:n], done, now)
		ids = ids[n:]
	}
}

// takeDue returns the buffers that compute now, in the order of their creation.
func (a *Aggregator) takeDue(now int64) (ids []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for second, of := range a.due {
		if second <= now {
			ids = append(ids, of...)
			delete(a.due, second)
		}
	}
	slices.Sort(ids)
	return ids
}

// compute adds the aggregates of intervals that have new points, and marks them.
func (b *buffer) compute(to []batch) []batch {
	for i := range b.intervals {
		if !b.intervals[i].active {
			continue
		}
		b.intervals[i].active = false
		at := slices.IndexFunc(to, func(o batch) bool { return o.tenant == b.tenant })
		if at < 0 {
			to, at = append(to, batch{tenant: b.tenant}), len(to)
		}
		o := &to[at]
		o.paths = append(o.paths, b.path)
		o.times = append(o.times, b.intervals[i].start)
		o.values = append(o.values, b.intervals[i].aggregate(b.method))
	}
	return to
}

func (a *Aggregator) store(ctx context.Context, all []batch) bool {
	for i := range all {
		b := &all[i]
		if err := a.o.Sink.Store(ctx, b.tenant, b.paths, b.times, b.values); err != nil {
			if ctx.Err() == nil {
				a.o.Logger.Error("aggregates are not stored; they will be computed again", "tenant", b.tenant, "points", len(b.paths), "err", err)
			}
			return false
		}
		a.metrics.stored.Add(float64(len(b.paths)))
	}
	return true
}

// reactivate makes intervals be computed again, since their aggregates were not stored.
func (a *Aggregator) reactivate(done []computed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range done {
		a.buffers[c.id].at(c.start).active = true
	}
}

// settle forgets what is too old for further points, and schedules the buffers again.
func (a *Aggregator) settle(ids []uint64, done []computed, now int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range done {
		b := a.buffers[c.id]
		if i := b.at(c.start); i.active {
			continue // a point came in the meantime, or the aggregate was not stored
		}
		oldest := now - now%b.frequency - a.o.Intervals*b.frequency
		if c.start < oldest || c.start > now+farAhead+b.frequency {
			a.forget(b, c.start)
		}
	}
	for _, id := range ids {
		b := a.buffers[id]
		switch {
		case b == nil:
		case len(b.intervals) == 0:
			a.remove(b)
		default:
			a.schedule(b, now)
		}
	}
}

// schedule makes a buffer compute after its frequency. REQUIRES: a.mu is held.
func (a *Aggregator) schedule(b *buffer, now int64) {
	every := b.frequency
	if a.o.WriteBack > 0 {
		every = min(every, a.o.WriteBack)
	}
	a.due[now+every] = append(a.due[now+every], b.id)
}

package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// mayWait reports whether the request failed only because other queries held the memory, and can run from its
// beginning.
func (c *call) mayWait(err error) bool {
	if !c.hasTurn || c.out.Status != 0 || c.client.Err() != nil {
		return false
	}
	e := c.d.Classify(err, false) // it knows the errors of engines that do not unwrap to their cause
	return e.Status == http.StatusServiceUnavailable && c.r.Quota.Refused(e)
}

// awaitMemory gives back the turn, so that light queries pass, and waits for memory and for another turn. All
// waits of a request together take at most half of Limits.Timeout. The error names the settings, or is that
// of a client that leaves.
func (c *call) awaitMemory(ended error) error {
	c.startAgain()
	c.Gate.Leave(c.client)
	c.hasTurn, c.out.turn = false, nil
	refused, began := c.r.Quota, time.Now()
	waiters, most := &c.o.Slots.forMemory, c.o.Limits.Timeout/2
	defer waiters.remove()
	if !waiters.add() {
		c.o.Waits.observe(waitRefused, 0)
		return c.noMemory("no more than %d may wait for memory (query.max-concurrent)", waiters.most)
	}
	defer c.o.Waits.begin()()
	ctx, cancel := context.WithTimeout(c.client, most-c.waited)
	defer cancel()
	next, err := c.o.Pool.Await(ctx, refused, c.d.Classify(ended, false))
	if err == nil {
		c.r.Quota = next
		err = c.Gate.EnterAgain(ctx)
		c.hasTurn = err == nil
	}
	took := time.Since(began)
	c.waited += took
	c.r.Queued += took
	switch {
	case err == nil:
		c.o.Waits.observe(waitGranted, took)
	case c.client.Err() != nil:
		c.o.Waits.observe(waitLeft, took)
	default:
		c.o.Waits.observe(waitRefused, took)
		if ctx.Err() != nil {
			return c.noMemory("the query waited %s for them (half of query.timeout)", most)
		}
	}
	return err
}

// noMemory refuses a query that other queries left no memory for.
func (c *call) noMemory(format string, args ...any) error {
	p := c.o.Pool
	return &model.LimitError{Limit: "memory", Text: fmt.Sprintf(
		"other queries hold %d of the %d bytes that all together may hold (a share of --memory), and "+format+"; try again later, narrow the query, or raise --memory",
		append([]any{p.Used(), p.MaxBytes}, args...)...)}
}

package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/api/answer"
	"github.com/shaledb/shale/internal/model"
)

// serveShared sends a kept answer, or the response of a flight, or computes one. Its error has not been sent.
func (c *call) serveShared() error {
	key := c.key()
	for {
		if kept, ok := c.o.Answers.Get(c.client, key, c.r.Tenants); ok {
			c.sendKept(&kept)
			return nil
		}
		f, p, joined := c.flights.join(c.client, key, c.o.Answers.Clock, c.lead)
		var got outcome
		select {
		case got = <-p.lands:
		case <-c.client.Done():
			f.leave(p)
			return c.client.Err()
		}
		switch {
		case got.again:
			continue // the next flight begins after this request
		case got.alone:
			return c.run()
		case got.large != nil:
			c.sendLarge(f, got.large)
			<-f.ended
			return nil
		}
		if joined {
			c.o.Answers.Joined()
		}
		c.sendRecorded(got.whole)
		return nil
	}
}

// lead returns what runs the request of a flight and keeps its answer.
func (c *call) lead(f *flight) (run func()) {
	r := &recorded{f: f, most: c.o.Answers.MaxText(), header: http.Header{}, quota: model.Quota{Pool: c.o.Pool}}
	r.quota.Settle() // it never waits for memory
	inner := c.newCall(c.d, c.e, r, c.r.Request.WithContext(f.ctx))
	inner.leads, inner.r.Tenants = true, c.r.Tenants
	inner.identify()
	// Each client gets the encoding that it accepts.
	inner.out.accepts, inner.out.isHead = false, false
	r.header.Del("Vary")
	return func() {
		defer func() {
			if p := recover(); p != nil {
				_ = inner.Recovered(inner.e.Name, p) // the clients find out for themselves
				f.scatter()
				if r.broken = true; r.to != nil {
					inner.endLarge(r)
				}
				r.quota.Release()
			}
		}()
		inner.serveRun()
		r.broken = inner.out.Broken
		if r.to != nil {
			inner.endLarge(r)
			return
		}
		changed := c.o.Answers.Changed(f.clock, inner.r.Tenants, &inner.r.Cost.Reach)
		if !changed {
			inner.keep(f, r)
		}
		f.land(r, changed)
	}
}

// endLarge tells the client of a large response whether that was all.
func (c *call) endLarge(r *recorded) {
	r.quota.Release()
	err := io.EOF
	if r.broken {
		err = io.ErrUnexpectedEOF
	}
	_ = r.to.CloseWithError(err) // never fails
}

// keep keeps a response. Errors may have passed when they are asked for again, and a response with warnings
// is a part of another one.
func (c *call) keep(f *flight, r *recorded) {
	cost := c.r.Cost
	if r.status != http.StatusOK || r.broken || len(cost.Warnings.All()) > 0 {
		return
	}
	header := r.header.Clone()
	for _, name := range []string{"Shale-Cost", "Content-Length"} {
		header.Del(name)
	}
	r.kept = answer.NewBody(r.body)
	c.o.Answers.Put(f.key, &answer.Answer{
		Header: header, Body: r.kept, Tenants: c.r.Tenants, Clock: f.clock, Reach: cost.Reach.Clone(), Computed: time.Now(),
	})
}

// serveRun runs a request that has been prepared, and sends its response or error.
func (c *call) serveRun() {
	defer c.end()
	if err := c.run(); err != nil {
		c.fail(err)
	}
}

// sendKept sends a kept answer, in the encoding that the client likes.
func (c *call) sendKept(a *answer.Reading) {
	defer a.Done()
	to := c.r.W.Header()
	for name, values := range a.Header {
		to[name] = values
	}
	age := int64(time.Since(a.Computed) / time.Second)
	to.Set("Age", strconv.FormatInt(age, 10))
	c.out.cost = nil // the answer cost nothing
	to.Set("Shale-Cost", "tier=answer, age="+strconv.FormatInt(age, 10))
	enc := answer.Identity
	if a.Body.Size >= answer.MinEncoded {
		enc = c.encoding()
	}
	if body := a.Encoded(enc); body != nil {
		c.out.sendEncoded(http.StatusOK, enc, body)
		return
	}
	to.Set("Content-Length", strconv.Itoa(a.Body.Size))
	c.out.sendText(http.StatusOK, a.Body)
}

// encoding returns the encoding that is best for the client.
func (c *call) encoding() answer.Encoding {
	accepted := c.r.Header["Accept-Encoding"]
	switch {
	case accepts(accepted, "zstd"):
		return answer.Zstd
	case accepts(accepted, "gzip"):
		return answer.Gzip
	}
	return answer.Identity
}

// sendRecorded sends the whole response of a flight.
func (c *call) sendRecorded(r *recorded) {
	defer r.done()
	if r.broken {
		c.out.Broken = true // nothing has been sent, and what is there is not the whole
		return
	}
	c.copyHeader(r)
	if r.kept != nil && r.kept.Size >= answer.MinEncoded && c.out.accepts {
		c.r.W.Header().Set("Content-Type", c.out.ContentType)
		body, _ := r.kept.Encoded(answer.Gzip)
		c.out.sendEncoded(r.status, answer.Gzip, body)
		return
	}
	c.out.send(r.status, r.body, true)
}

// copyHeader takes over the header of a flight, with its statement of cost.
func (c *call) copyHeader(r *recorded) {
	to := c.r.W.Header()
	for name, values := range r.header {
		if name != "Content-Length" {
			to[name] = slices.Clip(values) // other clients have them, too
		}
	}
	c.out.cost, c.out.ContentType = nil, r.header.Get("Content-Type")
}

// sendLarge sends what has been gathered of a response that is too large to be kept, and the rest as it
// comes.
func (c *call) sendLarge(f *flight, r *recorded) {
	stop := context.AfterFunc(c.client, func() {
		f.end()
		_ = r.from.CloseWithError(context.Canceled) // never fails
	})
	defer stop()
	c.copyHeader(r)
	c.out.send(r.status, r.body, false)
	for {
		c.out.Buf = c.out.Buf[:FlushBytes] // buffers have at least as much room
		n, err := r.from.Read(c.out.Buf)
		c.out.Buf = c.out.Buf[:n]
		switch {
		case errors.Is(err, io.EOF):
			c.out.Flush(r.status, true)
			return
		case err != nil:
			c.out.Broken = true
		default:
			c.out.Flush(r.status, false)
		}
		if c.out.Broken {
			_ = r.from.CloseWithError(context.Canceled) // never fails
			return
		}
	}
}

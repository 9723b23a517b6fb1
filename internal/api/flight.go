package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/api/answer"
	"github.com/shaledb/shale/internal/model"
)

// flights are the requests whose responses several clients wait for. No client leads: the request runs in a
// goroutine of its own, with a turn, a quota and a deadline of its own, and ends early only if all clients
// have left.
type flights struct {
	mu  sync.Mutex
	all map[answer.Key]*flight
}

// flight is one request on its way.
type flight struct {
	of    *flights
	key   answer.Key
	clock uint64 // before it began
	ctx   context.Context
	end   context.CancelFunc
	ended chan struct{} // closed when the request has ended

	// mu of flights guards the fields below.
	passengers []*passenger
	landed     bool
}

// passenger is a client that waits.
type passenger struct {
	clock uint64 // when it came
	lands chan outcome
}

// outcome is what a client gets: one of the fields.
type outcome struct {
	// whole is the response, which may be an error. The client calls its done.
	whole *recorded
	// again says that something has changed since the request began and before the client came, so the
	// response may lack what the client knows of.
	again bool
	// alone says that the response is too large to be gathered, and another client has it.
	alone bool
	// large is the response that is too large.
	large *recorded
}

// join finds the flight of a key, or begins one. start returns what runs the request.
func (fs *flights) join(ctx context.Context, key answer.Key, clock func() uint64, start func(*flight) (run func())) (*flight, *passenger, bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	p := &passenger{clock: clock(), lands: make(chan outcome, 1)}
	f := fs.all[key]
	found := f != nil
	if !found {
		// The flight needs what the context holds, and not its end.
		f = &flight{of: fs, key: key, clock: p.clock, ended: make(chan struct{})}
		f.ctx, f.end = context.WithCancel(context.WithoutCancel(ctx))
		if fs.all == nil {
			fs.all = make(map[answer.Key]*flight)
		}
		fs.all[key] = f
		run := start(f)
		go func() {
			defer close(f.ended)
			defer f.end()
			run() // it recovers from panics, see lead
		}()
	}
	f.passengers = append(f.passengers, p)
	return f, p, found
}

// leave takes a client off the flight. The last one ends the request, and waits for that, so that no request
// outlives the handlers.
func (f *flight) leave(p *passenger) {
	f.of.mu.Lock()
	f.passengers = slices.DeleteFunc(f.passengers, func(q *passenger) bool { return q == p })
	last := len(f.passengers) == 0 && !f.landed
	if last {
		f.remove()
	}
	f.of.mu.Unlock()
	select {
	case got := <-p.lands: // just before it left
		if got.whole != nil {
			got.whole.done()
		}
		if got.large != nil {
			_ = got.large.from.CloseWithError(context.Canceled) // never fails
			last = true
		}
	default:
	}
	if last {
		f.end()
		<-f.ended
	}
}

// remove ends the joining of clients. The caller holds mu.
func (f *flight) remove() {
	f.landed = true
	delete(f.of.all, f.key)
}

// land gives the whole response to all clients. changed says that what it depends on has changed since the
// request began.
func (f *flight) land(r *recorded, changed bool) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if !f.landed {
		f.remove()
	}
	r.readers.Store(1)
	for _, p := range f.passengers {
		if changed && p.clock != f.clock {
			p.lands <- outcome{again: true}
			continue
		}
		r.readers.Add(1)
		p.lands <- outcome{whole: r}
	}
	f.passengers = nil
	r.done()
}

// hand gives a response that is too large to one client, piece by piece, and sends the others to compute it
// for themselves. It reports whether there is a client that can take it.
func (f *flight) hand(r *recorded) (taken bool) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if !f.landed {
		f.remove()
	}
	for _, p := range f.passengers {
		if !taken && p.clock == f.clock {
			r.from, r.to = io.Pipe()
			p.lands <- outcome{large: r}
			taken = true
			continue
		}
		p.lands <- outcome{alone: true}
	}
	f.passengers = nil
	return taken
}

// scatter sends the clients that still wait to compute the response for themselves: the flight has failed.
func (f *flight) scatter() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if !f.landed {
		f.remove()
	}
	for _, p := range f.passengers {
		select {
		case p.lands <- outcome{alone: true}:
		default: // it has its response
		}
	}
	f.passengers = nil
}

// recorded is a response that is gathered for several clients. It is the [http.ResponseWriter] of a flight.
type recorded struct {
	f      *flight
	most   int // bytes of the body
	quota  model.Quota
	status int
	header http.Header
	body   []byte
	kept   *answer.Body // the same, compressed; nil: it is not kept
	// broken says that the response ended in the middle.
	broken bool
	// from and to lead to the one client of a large response; nil: the response is gathered. The client has
	// what was gathered before.
	from *io.PipeReader
	to   *io.PipeWriter
	// readers are the clients that are reading the whole response.
	readers atomic.Int32
}

// Header returns the header that the clients will get.
func (r *recorded) Header() http.Header { return r.header }

// WriteHeader sets the status.
func (r *recorded) WriteHeader(status int) { r.status = status }

// Write gathers the body, or sends it to the client that has the response. Its error is that of this client.
func (r *recorded) Write(b []byte) (int, error) {
	large := len(r.body)+len(b) > r.most
	if r.to == nil && (large || r.quota.TakeBytes(int64(len(b))) != nil) && !r.f.hand(r) {
		return 0, context.Canceled
	}
	if r.to != nil {
		return r.to.Write(b)
	}
	if r.body == nil {
		r.body = bytes.Clone(b) // most responses come in one piece
		return len(b), nil
	}
	r.body = append(r.body, b...)
	return len(b), nil
}

// done says that a client has got the whole response.
func (r *recorded) done() {
	if r.readers.Add(-1) == 0 {
		r.quota.Release()
	}
}

package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/model"
)

// Pipeline serves the endpoints of a dialect. It is safe for concurrent use. Its goroutines are those of
// requests that several clients wait for, and end before these clients' handlers do.
type Pipeline struct {
	// Gate hands out the turns.
	Gate    *Gate
	Origins Origins

	o       *Options
	metrics *Metrics
	memory  *memory
	flights flights
}

// NewPipeline returns a pipeline with options that have their defaults. Without metrics nothing is counted,
// and no endpoint may need a Turn.
func NewPipeline(o *Options, m *Metrics) *Pipeline {
	p := &Pipeline{o: o, metrics: m, memory: newMemory(), Origins: NewOrigins(o.CORSOrigin)}
	if m != nil {
		p.Gate = NewGate(o.Slots, o.Limits.MaxWait, m.Gate)
	}
	return p
}

// Mux takes handlers by patterns of [http.ServeMux].
type Mux interface {
	Handle(pattern string, h http.Handler)
}

// Mount adds the endpoints of a dialect to a mux.
func (p *Pipeline) Mount(mux Mux, d *Dialect, table []Endpoint) {
	for _, e := range table {
		mux.Handle(e.Pattern, http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
			p.newCall(d, &e, w, hr).serve()
		}))
	}
}

// Recovered logs a panic with its stack and turns it into an error of one request.
func (p *Pipeline) Recovered(name string, panicked any) *Error {
	p.o.Logger.Error("panic", "handler", name, "panic", panicked, "stack", string(debug.Stack()))
	return &Error{Status: http.StatusInternalServerError, Err: fmt.Errorf("unexpected error: %v", panicked)}
}

// call is one request on its way through the pipeline.
type call struct {
	*Pipeline
	d      *Dialect
	e      *Endpoint
	r      *Request
	out    *Body
	client context.Context // ends when the client leaves
	body   *model.Quota    // is charged with the body of the request
	// account is what the request spends on the bucket; nil: nothing is counted. admitted says that the
	// budgets have room for it.
	account  *bill.Account
	admitted bool
	explains bool
	// hasTurn says that the request must leave the gate, after the response has been written, and not earlier
	// than turn says.
	hasTurn  bool
	turn     unread
	waited   time.Duration // for memory
	timeout  time.Duration
	upgraded bool
	counted  bool
	// leads says that the request runs for others, which count it.
	leads bool
}

func (p *Pipeline) newCall(d *Dialect, e *Endpoint, w http.ResponseWriter, hr *http.Request) *call {
	l := &p.o.Limits
	r := &Request{
		Request: hr, W: w, Cost: &model.Cost{MayLag: e.Kept != nil && e.Kept.MayLag}, Began: time.Now(),
		Quota: &model.Quota{MaxSeries: l.MaxSeries, MaxSamples: l.MaxSamples, MaxBytes: l.MaxBytes, MaxRange: l.MaxRange, Pool: p.o.Pool},
	}
	c := &call{Pipeline: p, d: d, e: e, r: r, timeout: l.Timeout, client: hr.Context(), body: &model.Quota{MaxBytes: l.MaxBytes, Pool: p.o.Forms}}
	c.out = newBody(w, hr, p.memory, l.Timeout)
	c.out.count = c.count
	if !d.Bare {
		c.out.cost = r.Cost
		c.out.acceptEncoding(hr)
	}
	return c
}

func (c *call) serve() {
	defer c.end()
	if c.d.CrossOrigin {
		c.Origins.allow(c.r.W.Header(), c.r.Request, c.d.CORSHeaders)
	}
	body := http.MaxBytesReader(c.r.W, c.r.Body, c.o.Limits.MaxBodyBytes)
	c.r.Body = &chargedBody{ReadCloser: body, quota: c.body}
	err := c.prepare()
	switch {
	case err != nil:
	case c.mayShare():
		err = c.serveShared()
	default:
		err = c.run()
	}
	if err != nil {
		c.fail(err)
	}
}

// run waits for a turn if the endpoint needs one, and serves the request, again each time it has waited for
// memory, and once after an error that may have passed.
func (c *call) run() error {
	if err := c.enter(); err != nil {
		return err
	}
	err := c.attempt()
	for again := true; err != nil; {
		switch {
		case c.mayWait(err):
			if err = c.awaitMemory(err); err == nil {
				err = c.attempt()
			}
		case again && c.mayRepeat(err):
			again = false
			c.startAgain()
			c.r.Quota.Revert(model.Charge{})
			err = c.attempt()
		default:
			return err
		}
	}
	return nil
}

// mayRepeat reports whether the request may succeed at once, and can run from its beginning.
func (c *call) mayRepeat(err error) bool {
	return c.o.Again != nil && c.out.Status == 0 && c.client.Err() == nil && c.o.Again(err)
}

// startAgain drops what an attempt has left. The cost is that of the attempt that succeeds.
func (c *call) startAgain() {
	c.out.Buf = c.out.Buf[:0]
	c.r.Cost = &model.Cost{Spend: c.r.Cost.Spend, Fresh: c.r.Cost.Fresh, MayLag: c.r.Cost.MayLag}
	if c.out.cost != nil {
		c.out.cost = c.r.Cost
	}
}

// attempt asks the endpoint and sends its response.
func (c *call) attempt() error {
	if c.preflight() {
		return c.send(&Response{Status: http.StatusNoContent})
	}
	ctx := c.client
	if c.hasTurn {
		var end func()
		ctx, end = c.o.Processors.Run(ctx, model.CallerOf(ctx).Tenant)
		defer end()
		c.out.processor = model.ProcessorOf(ctx)
	}
	if c.e.Needs&Deadline != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	if c.hasTurn {
		c.out.turn = &c.turn
	}
	c.r.Request = c.r.WithContext(ctx)
	c.out.quota = c.r.Quota
	if !c.hasTurn {
		c.r.Quota.Settle() // it never waits for memory
	}
	if c.explains {
		return c.explain()
	}
	if err := c.admit(); err != nil {
		return err
	}
	res, err := c.e.Serve(c.r)
	if err != nil {
		return err
	}
	if res.Done != nil {
		defer res.Done()
	}
	return c.send(res)
}

// preflight reports whether the request only asks what it may send.
func (c *call) preflight() bool { return c.r.Method == http.MethodOptions && !c.d.Bare }

// prepare does what the endpoint needs.
func (c *call) prepare() (err error) {
	if c.preflight() {
		return nil
	}
	needs := c.e.Needs
	if allowed := cmp.Or(c.e.Methods, needs.methods()); allowed != "" && !slices.Contains(strings.Split(allowed, ", "), c.r.Method) {
		c.r.W.Header().Set("Allow", allowed)
		return &Error{Status: http.StatusMethodNotAllowed, Err: errors.New("method " + c.r.Method + " is not allowed")}
	}
	// Bodies are read before the turn: a slow client must not keep a place among the running requests.
	if needs&Form != 0 {
		if err := readForm(c.r.Request, c.o.Limits.MaxBodyBytes); err != nil {
			return err
		}
		c.r.Cost.Fresh = c.r.wantsFresh()
	}
	if needs&Content != 0 {
		if c.r.Content, err = readContent(c.r.Request); err != nil {
			return err
		}
	}
	if k := c.e.Kept; k != nil && k.Align != nil {
		k.Align(c.r.Form)
	}
	if needs&Turn != 0 {
		if c.r.Tenants, err = c.d.Tenants(c.r.Header); err != nil {
			return err
		}
		c.identify()
	}
	return nil
}

// enter waits for the turn of a request that needs one.
func (c *call) enter() error {
	if c.e.Needs&Turn == 0 || c.preflight() {
		return nil
	}
	waits := time.Now()
	if err := c.Gate.EnterWithin(c.client, c.mostQueries()); err != nil {
		return err
	}
	c.hasTurn, c.r.Queued = true, time.Since(waits)
	c.turn.gate, c.turn.client = c.Gate, c.client
	return c.openAccount()
}

// send writes a response. With an error the client has got nothing or, if the body is broken, a part.
func (c *call) send(res *Response) error {
	status := res.Status
	if status == 0 {
		status = http.StatusOK
	}
	switch {
	case res.Sent:
		c.out.Status, c.upgraded = status, status == http.StatusSwitchingProtocols
		return nil
	case res.Write == nil:
		c.out.sendHeader(status)
		return nil
	}
	if c.out.ContentType = res.ContentType; c.out.ContentType == "" {
		c.out.ContentType = c.d.ContentType
	}
	c.out.accepts = c.out.accepts && !res.Encoded
	if err := res.Write(c.out); err != nil {
		c.out.Broken = c.out.Status != 0
		return err
	}
	c.out.Flush(status, true)
	return nil
}

// fail sends an error, unless a part of a response has been sent.
func (c *call) fail(err error) {
	var refused *bill.RefusedError
	if errors.As(err, &refused) {
		err = refused
	}
	e := c.d.Classify(err, c.client.Err() != nil)
	if e.Status >= http.StatusInternalServerError {
		log := c.o.Logger
		if stack := model.StackOf(err); stack != "" {
			log = log.With("stack", stack)
		}
		log.Warn("request failed", "handler", c.e.Name, "status", e.Status, "err", Shorten(err.Error()))
	}
	if c.out.Broken {
		return
	}
	if e.retryable() {
		c.r.W.Header().Set("Retry-After", "5")
	}
	c.writeError(e)
}

func (c *call) writeError(e *Error) {
	c.out.Buf = c.out.Buf[:0]
	c.d.WriteError(c.out, e)
}

// end gives up all that the request held, and counts it. It is deferred, so that it sees panics.
func (c *call) end() {
	if p := recover(); p != nil {
		e := c.Recovered(c.e.Name, p)
		if c.out.Status == 0 {
			c.writeError(e)
		} else {
			c.out.Broken = true
		}
	}
	c.r.Quota.Release()
	c.body.Release()
	if c.hasTurn {
		c.turn.leave()
		if c.o.Meter != nil {
			c.o.Meter.Read(c.r.Tenants, c.r.Cost)
		}
	}
	c.out.release()
	if c.leads {
		return
	}
	c.countEnd()
	if c.out.Broken {
		// Cuts the connection, so that the client does not take a part of a response for the whole.
		panic(http.ErrAbortHandler)
	}
}

// count counts the request once. A client that has read its whole response finds it counted.
func (c *call) count(status int) {
	if !c.counted && !c.leads {
		c.counted = true
		c.metrics.count(c.e.Name, status)
	}
}

// countEnd counts what only the end can tell: the time, and the request of an endpoint that sent its own
// header. A connection that left HTTP has no time, for it lasts as long as its client likes.
func (c *call) countEnd() {
	c.count(c.out.Status)
	if c.o.Meter != nil && len(c.r.Tenants) > 0 {
		c.o.Meter.Queried(c.r.Tenants)
	}
	if !c.upgraded {
		c.metrics.observe(c.e.Name, time.Since(c.r.Began))
	}
}

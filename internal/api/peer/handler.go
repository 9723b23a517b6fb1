package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// Partition is a head of this process. It is safe for concurrent use.
type Partition interface {
	// Journal returns which stretch of which journal is held now. Whoever pins a source and then calls
	// Journal has pinned all rows from its From on that had been applied before.
	Journal() wire.Journal
	// Source returns the rows. It may leave out those up to a sequence number.
	Source(after uint64) read.Source
	// Await returns once everything up to a sequence number is visible to queries.
	Await(ctx context.Context, seq uint64) error
}

// Hiding is a Partition from which rows may have been deleted.
type Hiding interface {
	Partition
	// Without is Source without the rows that deletions hide.
	Without(after uint64, hide []wire.Hidden) (read.Source, error)
}

// source returns the rows of a partition that a request wants.
func source(p Partition, r *wire.Request, n *wire.Need) (read.Source, error) {
	hide := r.Hidden(n)
	if len(hide) == 0 {
		return p.Source(n.After), nil
	}
	of, ok := p.(Hiding)
	if !ok {
		return nil, fmt.Errorf("%w: this process does not carry out deletions", model.ErrInvalid)
	}
	return of.Without(n.After, hide)
}

// Options build a Handler. Zero values take the defaults that are named.
type Options struct {
	// Zone is where the process runs; askers prefer their own.
	Zone string
	// Partitions returns the heads of this process.
	Partitions func() []Partition
	// Quota returns a quota for one request of a tenant; nil: no bound.
	Quota func(tenant string) *model.Quota
	// Horizon is that of [read.Options].
	Horizon func(tenant string, s model.Signal, now int64) (oldest int64, h *model.Horizon)
	// MaxRequests bounds the requests at once (64). A stream of text counts until it is closed.
	MaxRequests int
	// MaxPages bounds the pages that are read at once (16). Further ones wait.
	MaxPages int
	// MaxTails bounds the requests that follow lines (256).
	MaxTails int
	// MaxTime bounds a request (10 min), whatever the asker says.
	MaxTime    time.Duration
	Registerer prometheus.Registerer
}

// Handler serves the paths of package wire. It is safe for concurrent use.
type Handler struct {
	o        Options
	requests chan struct{}
	pages    chan struct{}
	tails    chan struct{}
	sessions sessions
	metrics  *metrics
	mux      *http.ServeMux
}

// New returns a Handler.
func New(o Options) *Handler {
	if o.Quota == nil {
		o.Quota = func(string) *model.Quota { return new(model.Quota) }
	}
	if o.MaxRequests == 0 {
		o.MaxRequests = 64
	}
	if o.MaxPages == 0 {
		o.MaxPages = 16
	}
	if o.MaxTails == 0 {
		o.MaxTails = 256
	}
	if o.MaxTime == 0 {
		o.MaxTime = 10 * time.Minute
	}
	h := &Handler{o: o, requests: make(chan struct{}, o.MaxRequests), pages: make(chan struct{}, o.MaxPages), tails: make(chan struct{}, o.MaxTails), mux: http.NewServeMux()}
	h.metrics = newMetrics(o.Registerer, h)
	h.mux.HandleFunc("GET "+wire.PathState, h.state)
	for path, serve := range map[string]func(*Handler, context.Context, *call) error{
		wire.PathSelect: (*Handler).selectSeries, wire.PathLabels: (*Handler).labels,
		wire.PathNames: (*Handler).names, wire.PathText: (*Handler).text,
	} {
		h.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, serve) })
	}
	h.mux.HandleFunc("POST "+wire.PathPage, h.page)
	h.mux.HandleFunc("POST "+wire.PathTail, h.tail)
	return h
}

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// state says what the process holds.
func (h *Handler) state(w http.ResponseWriter, _ *http.Request) {
	s := wire.State{Version: wire.Version, Zone: h.o.Zone, Journals: []wire.Journal{}}
	for _, p := range h.o.Partitions() {
		s.Journals = append(s.Journals, p.Journal())
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s) // the asker sees that it is cut
}

// call is one request with its answer.
type call struct {
	h       *Handler
	w       *answer
	of      *wire.Request
	req     *model.Request
	querier *read.Querier
	asked   []Partition
	held    []wire.Journal
}

// serve reads a request and answers it with frames. An error is a frame as well, at any point of the answer.
func (h *Handler) serve(rw http.ResponseWriter, r *http.Request, do func(*Handler, context.Context, *call) error) {
	ctx, cancel := h.bounded(r)
	defer cancel()
	w := newAnswer(ctx, rw)
	defer w.done()
	err := func() error {
		select {
		case h.requests <- struct{}{}:
			defer func() { <-h.requests }()
		default:
			return fmt.Errorf("%w: %d requests are running", wire.ErrOverloaded, h.o.MaxRequests)
		}
		c := &call{h: h, w: w}
		if err := c.begin(ctx, r); err != nil {
			return err
		}
		defer c.req.Quota.Release()
		return do(h, ctx, c)
	}()
	h.end(w, err)
}

// end writes the error that ends an answer.
func (h *Handler) end(w *answer, err error) {
	if err == nil {
		return
	}
	f := wire.FailureOf(err)
	h.metrics.failures.WithLabelValues(f.Code).Inc()
	w.fail(f)
}

// bounded returns a context that ends with the request, with the time that the asker gives it, or with
// MaxTime.
func (h *Handler) bounded(r *http.Request) (context.Context, context.CancelFunc) {
	most := h.o.MaxTime
	if ms, err := strconv.ParseInt(r.Header.Get(wire.TimeoutHeader), 10, 32); err == nil && ms > 0 {
		most = min(most, time.Duration(ms)*time.Millisecond)
	}
	return context.WithTimeout(r.Context(), most)
}

// body reads the body of a request.
func body(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, wire.MaxRequest))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, fmt.Errorf("%w: a request of more than %d bytes", model.ErrLimit, wire.MaxRequest)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %v", model.ErrTransient, err)
	}
	return b, nil
}

// begin reads the request and finds the partitions that it asks for.
func (c *call) begin(ctx context.Context, r *http.Request) error {
	b, err := body(r)
	if err != nil {
		return err
	}
	if c.of, err = wire.ParseRequest(b); err != nil {
		return err
	}
	if c.req, err = c.of.ToModel(); err != nil {
		return err
	}
	have := c.h.o.Partitions()
	var sources []read.Source
	for _, need := range c.of.Journals {
		p, j := find(have, need)
		if p == nil {
			return fmt.Errorf("%w: this process does not hold %s of epoch %d, or is not ready to answer for it", wire.ErrWrongJournal, need.Node, need.Epoch)
		}
		if need.AtLeast > j.To {
			if err := await(ctx, p, need.AtLeast); err != nil {
				why := wire.ErrLag
				if errors.Is(err, model.ErrClosed) { // it has moved to another process while the query waited
					why = wire.ErrWrongJournal
				}
				return fmt.Errorf("%w: %s of epoch %d is applied up to %d, not %d: %w", why, need.Node, need.Epoch, p.Journal().To, need.AtLeast, err)
			}
			j = p.Journal()
		}
		c.asked, c.held = append(c.asked, p), append(c.held, j)
		s, err := source(p, c.of, &need)
		if err != nil {
			return err
		}
		sources = append(sources, s)
	}
	c.req.Quota, c.req.Cost = c.h.o.Quota(c.of.Tenant), new(model.Cost)
	c.req.Quota.MaxSeries = c.of.MaxSeries
	c.querier = read.New(read.Options{Sources: sources, Horizon: c.h.o.Horizon})
	return nil
}

// maxWait bounds how long a request waits for records to be applied.
const maxWait = 5 * time.Second

func await(ctx context.Context, p Partition, seq uint64) error {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	return p.Await(ctx, seq)
}

func find(have []Partition, need wire.Need) (Partition, wire.Journal) {
	for _, p := range have {
		if j := p.Journal(); j.Node == need.Node && j.Epoch == need.Epoch && j.Ready {
			return p, j
		}
	}
	return nil, wire.Journal{}
}

// head writes the first frame, after everything is pinned: what was applied before, from where it is held
// now.
func (c *call) head(session string) error {
	for i, p := range c.asked {
		j := p.Journal()
		if !j.Ready {
			return fmt.Errorf("%w: %s of epoch %d has left this process", wire.ErrWrongJournal, j.Node, j.Epoch)
		}
		c.held[i].From = j.From
	}
	if err := c.w.json(wire.Head, wire.Answer{Version: wire.Version, Journals: c.held, Session: session}); err != nil {
		return err
	}
	return c.w.flush()
}

// trailer writes the last frame.
func (c *call) trailer() error {
	if err := c.w.json(wire.Trailer, wire.End{Cost: wire.TakeCost(c.req.Cost), Warnings: c.req.Cost.Warnings.All()}); err != nil {
		return err
	}
	return c.w.flush()
}

package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// stream is the answer of a holder while it is read. It is used by one goroutine.
type stream struct {
	s      *Source
	peer   string
	req    *model.Request
	held   []wire.Journal
	name   string // of the session
	body   io.ReadCloser
	frames *wire.Reader
	ctx    context.Context
	cancel context.CancelCauseFunc
	stall  *time.Timer
	// patience is how long the holder may send nothing.
	patience time.Duration
	// charged is what was taken from the quota and not given back.
	charged int64
	// answering is set once the holder has pinned what it returns.
	answering bool
}

// LostError says that the answer of a holder ended before its end. Repeat the query: it does not ask this
// holder for what another one has. It has the class of its cause.
type LostError struct{ err error }

// Error is that of the cause.
func (e *LostError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.err }

// IsLost reports whether a query failed because a holder was lost, and may succeed at once.
func IsLost(err error) bool {
	var lost *LostError
	return errors.As(err, &lost)
}

// lost notes that a holder was lost while it answered.
func (s *Source) lost(peer string, err error) error {
	s.states.avoid(peer)
	s.metrics.lost.Inc()
	return &LostError{err}
}

// errStalled is the cause of a stream that was given up.
var errStalled = errors.New("it sent nothing for too long")

// attempts is how often a query asks holders, as long as none of it has been handed out: a holder may have
// died since it was asked for its state. It goes on up to mostAttempts while each time another holder is
// lost. If partitions move, it asks for longer: see moveTime.
const (
	attempts     = 2
	mostAttempts = 5
)

// open asks the holders of all journals, and returns their answers once all have pinned what they return.
func (s *Source) open(ctx context.Context, path string, of *wire.Request, req *model.Request) ([]*stream, error) {
	streams, err := s.openAgain(ctx, path, of, req)
	var gap *Gap
	if errors.As(err, &gap) {
		s.metrics.gaps.WithLabelValues(gap.reason).Inc()
	}
	return streams, err
}

// openAgain asks until there is an answer, or no use in asking.
func (s *Source) openAgain(ctx context.Context, path string, of *wire.Request, req *model.Request) ([]*stream, error) {
	failed := map[string]error{}
	began := time.Now()
	var deletions []Deletion
	if s.o.Deletions != nil {
		var err error
		if deletions, err = s.o.Deletions(ctx, req.Tenant, req.Signal); err != nil {
			return nil, fmt.Errorf("what is deleted: %w", err)
		}
	}
	for try := 1; ; try++ {
		p, err := s.choose(ctx, try > 1, failed)
		for ; isMove(err) && time.Since(began) < moveTime; p, err = s.choose(ctx, true, failed) {
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(moveEvery):
			}
		}
		if err != nil {
			return nil, err
		}
		before := len(failed)
		streams, err := s.openPlan(ctx, path, of, deletions, req, p, failed)
		if err == nil {
			return streams, nil
		}
		moved := errors.Is(err, wire.ErrWrongJournal)
		if ctx.Err() != nil || len(failed) == 0 && !moved && !s.hasOthers(p) {
			return nil, err
		}
		if try >= attempts && (len(failed) == before || try >= mostAttempts) {
			if !moved || time.Since(began) > moveTime {
				return nil, err
			}
			time.Sleep(moveEvery) // several partitions move one after the other
		}
	}
}

// A query waits so long for the next holder of a partition, and asks so often.
const (
	moveTime  = 2 * time.Second
	moveEvery = 100 * time.Millisecond
)

// isMove reports whether an error is that a journal has no holder, though all peers have answered: then it
// mostly moves from one to another.
func isMove(err error) bool {
	var gap *Gap
	return errors.As(err, &gap) && gap.moves
}

// without adds to the needs of a peer where deletions stand in the journals, and returns the terms of those
// that the peer must know. A holder must have applied their records. Of a deletion that is covered, it holds
// no row that counts: deletions are known for weeks, and all of them may exceed a request. But the last one
// in a journal is named anyway: lists of labels have series without any row left, unless they know of one.
func without(needs []wire.Need, deletions []Deletion) (terms []json.RawMessage) {
	fences, named := make([]uint64, len(needs)), make([]bool, len(needs))
	for _, d := range slices.Backward(deletions) {
		needed := false
		for i := range needs {
			n := &needs[i]
			fences[i] = d.Fence(n.Node, n.Epoch)
			n.AtLeast = max(n.AtLeast, fences[i])
			needed = needed || fences[i] > n.After || fences[i] > 0 && !named[i]
		}
		if !needed {
			continue
		}
		terms = append(terms, d.Terms)
		for i := range needs {
			needs[i].Fences = append(needs[i].Fences, fences[i])
			named[i] = named[i] || fences[i] > 0
		}
	}
	return terms
}

// openPlan asks all at the same time. It notes peers in failed that could not be reached.
func (s *Source) openPlan(ctx context.Context, path string, of *wire.Request, deletions []Deletion, req *model.Request, p *plan, failed map[string]error) ([]*stream, error) {
	streams, errs := make([]*stream, len(p.peers)), make([]error, len(p.peers))
	var all sync.WaitGroup
	for i, peer := range p.peers {
		all.Go(func() {
			errs[i] = model.Caught(func() (err error) {
				r := *of
				r.Journals = p.needs[peer]
				r.Deletions = without(r.Journals, deletions)
				streams[i], err = s.send(ctx, peer, path, &r, req)
				return err
			})
		})
	}
	all.Wait()
	err := errors.Join(errs...)
	for i, e := range errs {
		var lost *unreachable
		if errors.As(e, &lost) {
			failed[p.peers[i]] = e
		}
		if e != nil && ctx.Err() == nil && passes(e) {
			s.states.avoid(p.peers[i])
		}
	}
	var held []wire.Journal
	for _, st := range streams {
		if st != nil {
			held = append(held, st.held...)
		}
	}
	if err == nil {
		err = s.check(ctx, held, p)
	}
	if err != nil {
		for _, st := range streams {
			if st != nil {
				st.close()
			}
		}
		return nil, err
	}
	return streams, nil
}

// passes reports whether an error is one of a holder, and not of the query: another one may have none.
func passes(err error) bool {
	return (errors.Is(err, model.ErrTransient) || errors.Is(err, model.ErrClosed)) && !errors.Is(err, model.ErrLimit)
}

// hasOthers reports whether all that failing peers were asked for has other holders that are ready.
func (s *Source) hasOthers(p *plan) bool {
	some := false
	for peer, needs := range p.needs {
		if !s.states.avoids(peer) {
			continue
		}
		for _, n := range needs {
			if !slices.ContainsFunc(p.others[journalID{n.Node, n.Epoch}], func(h string) bool { return h != peer && !s.states.avoids(h) }) {
				return false
			}
		}
		some = true
	}
	return some
}

// unreachable is the error of a request that got no answer.
type unreachable struct{ err error }

func (e *unreachable) Error() string { return e.err.Error() }
func (e *unreachable) Unwrap() error { return model.ErrTransient }

// send sends a request and reads the head of the answer.
func (s *Source) send(ctx context.Context, peer, path string, of *wire.Request, req *model.Request) (*stream, error) {
	st, err := s.post(ctx, peer, path, of, req)
	if err != nil {
		return nil, err
	}
	var head wire.Answer
	if err := st.json(ctx, wire.Head, &head); err != nil {
		st.close()
		if errors.Is(err, wire.ErrDamaged) {
			return nil, &unreachable{err}
		}
		return nil, err
	}
	st.held, st.name, st.answering = head.Journals, head.Session, true
	if err := st.answers(of.Journals); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// answers checks that the holder answers for the journals that it was asked for.
func (s *stream) answers(needs []wire.Need) error {
	if len(s.held) != len(needs) {
		return s.damaged("asked for %d journals, it answers for %d", len(needs), len(s.held))
	}
	for i, n := range needs {
		j := s.held[i]
		if j.Node != n.Node || j.Epoch != n.Epoch || j.To < n.AtLeast {
			return s.damaged("asked for %s of epoch %d up to %d, it answers for %s of epoch %d up to %d", n.Node, n.Epoch, n.AtLeast, j.Node, j.Epoch, j.To)
		}
	}
	return nil
}

// post sends a request. The stream ends with ctx.
func (s *Source) post(ctx context.Context, peer, path string, of any, req *model.Request) (*stream, error) {
	body, err := json.Marshal(of)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", model.ErrInvalid, err)
	}
	if len(body) > wire.MaxRequest {
		return nil, fmt.Errorf("%w: the selectors of the query, and deletions that are not in the bucket yet, take %d bytes, and other processes accept %d", model.ErrLimit, len(body), wire.MaxRequest)
	}
	st := &stream{s: s, peer: peer, req: req, patience: s.o.Stall}
	st.ctx, st.cancel = context.WithCancelCause(ctx)
	st.stall = time.AfterFunc(st.patience, func() { st.cancel(errStalled) })
	r, err := http.NewRequestWithContext(st.ctx, http.MethodPost, s.url(peer, path), bytes.NewReader(body))
	if err != nil {
		st.close()
		return nil, fmt.Errorf("%w: peer %s: %v", model.ErrInvalid, peer, err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		r.Header.Set(wire.TimeoutHeader, strconv.FormatInt(max(1, time.Until(deadline).Milliseconds()), 10))
	}
	s.o.Prepare(r)
	resp, err := s.o.Client.Do(r)
	if err != nil {
		err = st.why(ctx, err)
		st.close()
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &unreachable{err}
	}
	st.body = resp.Body
	if resp.StatusCode != http.StatusOK {
		st.close()
		return nil, fmt.Errorf("%w: peer %s: %s", model.ErrTransient, peer, resp.Status)
	}
	st.frames = wire.NewReader(resp.Body, st.charge)
	s.metrics.requests.Inc()
	return st, nil
}

// charge takes memory from the quota of the query.
func (s *stream) charge(n int64) error {
	if err := s.req.Quota.TakeBytes(n); err != nil {
		return err
	}
	s.charged += n
	return nil
}

// next returns the next frame.
func (s *stream) next(ctx context.Context) (wire.Kind, []byte, error) {
	s.stall.Reset(s.patience)
	kind, body, err := s.frames.Next()
	s.stall.Stop()
	if err != nil {
		return 0, nil, s.why(ctx, err)
	}
	s.s.metrics.bytes.Add(float64(len(body)))
	return kind, body, nil
}

// why says what ended a stream.
func (s *stream) why(ctx context.Context, err error) error {
	err = s.cause(ctx, err)
	if s.answering && ctx.Err() == nil && passes(err) {
		return s.s.lost(s.peer, err)
	}
	return err
}

func (s *stream) cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if cause := context.Cause(s.ctx); cause != nil {
		if errors.Is(cause, errStalled) {
			err = fmt.Errorf("%w: %w", wire.ErrDamaged, errStalled)
		} else {
			return cause
		}
	}
	return s.named(err)
}

// named adds the name of the peer to an error.
func (s *stream) named(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, model.ErrTransient), errors.Is(err, model.ErrLimit), errors.Is(err, model.ErrInvalid),
		errors.Is(err, model.ErrCorrupt), errors.Is(err, model.ErrClosed):
		return fmt.Errorf("peer %s: %w", s.peer, err)
	}
	return fmt.Errorf("%w: peer %s: %w", model.ErrTransient, s.peer, err)
}

func (s *stream) damaged(format string, args ...any) error {
	return fmt.Errorf("peer %s: %w: %s", s.peer, wire.ErrDamaged, fmt.Sprintf(format, args...))
}

// json reads a frame of a kind.
func (s *stream) json(ctx context.Context, want wire.Kind, v any) error {
	kind, body, err := s.next(ctx)
	if err != nil {
		return err
	}
	if kind != want {
		return s.damaged("expected a frame of kind %d, got %d", want, kind)
	}
	return s.named(wire.ParseJSON(body, v))
}

// end takes the trailer.
func (s *stream) end(body []byte) error {
	var e wire.End
	if err := wire.ParseJSON(body, &e); err != nil {
		return s.named(err)
	}
	s.take(&e)
	return nil
}

func (s *stream) take(e *wire.End) {
	e.Cost.AddTo(s.req.Cost)
	for _, w := range e.Warnings {
		s.req.Cost.Warnings.Add(w)
	}
}

// close ends the stream, and with it what the holder pins.
func (s *stream) close() {
	s.stall.Stop()
	if s.body != nil {
		if s.frames != nil && s.frames.Ended() && s.name == "" {
			// Then the connection can be used again.
			s.stall.Reset(s.patience)
			_, _ = io.CopyN(io.Discard, s.body, 1)
		}
		s.body.Close()
	}
	s.stall.Stop()
	s.cancel(context.Canceled)
	_ = s.req.Quota.TakeBytes(-s.charged) // giving back never fails
	s.charged = 0
}

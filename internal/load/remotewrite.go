package load

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// RemoteWrite sends the samples of a fleet by remote write 1.0, as so many shards of a Prometheus would: each shard
// owns every so manieth batch and sends its batches one after the other, so that the order within a series is kept.
type RemoteWrite struct {
	Fleet       Fleet
	Schedule    Schedule
	URL         string
	Tenant      string // none if empty
	UserAgent   string
	Batch       int // series per request
	Concurrency int
	// RetryOn429 sends batches again that a tenant's limit refused; a Prometheus drops them by default.
	RetryOn429 bool
	// State, if set, witnesses what was acknowledged.
	State *StateWriter
	Tally *Tally
}

// Header returns the first line of the load's state file.
func (l *RemoteWrite) Header() Header {
	return Header{Version: stateVersion, Timeline: l.Schedule.Timeline, RemoteWrite: &l.Fleet, Batch: l.Batch}
}

// Check returns an error of class [model.ErrInvalid] unless the load can be sent.
func (l *RemoteWrite) Check() error {
	if _, err := l.endpoint(); err != nil {
		return err
	}
	if strings.ContainsAny(l.Tenant+l.UserAgent, "\r\n") {
		return fmt.Errorf("%w: load: tenant %q: a header has one line", model.ErrInvalid, l.Tenant)
	}
	if l.Batch < 1 || l.Concurrency < 1 {
		return fmt.Errorf("%w: load: batch and concurrency must be at least 1", model.ErrInvalid)
	}
	return l.Fleet.Check()
}

func (l *RemoteWrite) endpoint() (*url.URL, error) {
	u, err := url.Parse(l.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: load: url %q: want http://host:port/path", model.ErrInvalid, l.URL)
	}
	return u, nil
}

// Run sends the load until it is complete or its time is over, and returns what is known of it then. A server that
// refuses or is away is no error: it is asked again until the time is over.
func (l *RemoteWrite) Run(ctx context.Context) (*State, *Report, error) {
	if err := l.Check(); err != nil {
		return nil, nil, err
	}
	endpoint, err := l.endpoint()
	if err != nil {
		return nil, nil, err
	}
	began, cpu := time.Now(), usedCPU()
	state := newState(l.Header())
	open, cancel := l.Schedule.within(ctx)
	defer cancel()

	var wg sync.WaitGroup
	for i := range min(l.Concurrency, state.Acks.batches) {
		s := &shard{
			load: l, acks: state.Acks, first: i, body: newBody(&l.Fleet),
			post: newPoster(endpoint, l.Tenant, l.UserAgent),
		}
		wg.Go(func() { s.run(ctx, open) })
	}
	wg.Wait()
	state.Ended = true
	l.State.append(recordEnd, uint64(time.Now().UnixNano()), 0)
	report := l.Tally.report(kindRemoteWrite, l.Fleet.Total(), time.Since(began), usedCPU()-cpu)
	return state, report, ctx.Err()
}

// shard sends every concurrency-th batch of each round.
type shard struct {
	load  *RemoteWrite
	acks  *Acks
	first int
	body  *body
	post  *poster
}

// run sends until the load is complete or open ends. Requests that are under way then may finish within ctx.
func (s *shard) run(ctx, open context.Context) {
	defer s.post.close()
	l := s.load
	for round := 0; l.Schedule.more(round); round++ {
		for batch := s.first; batch < s.acks.batches; batch += l.Concurrency {
			lag, err := l.Schedule.wait(open, round, int64(batch), int64(s.acks.batches))
			if err != nil {
				return
			}
			l.Tally.late(lag)
			s.send(ctx, open, round, batch)
		}
	}
}

// send sends one batch, as often as it takes.
func (s *shard) send(ctx, open context.Context, round, batch int) {
	l := s.load
	first := int64(batch) * int64(l.Batch)
	n := int(min(int64(l.Batch), l.Fleet.Total()-first))
	compressed, size := s.body.fill(first, n, round, l.Schedule.At(round)/int64(time.Millisecond))
	l.Tally.sent.Add(int64(n))
	backoff := minBackoff
	for attempt := 0; ; attempt++ {
		asked := time.Now()
		got, err := s.post.post(ctx, compressed, attempt)
		l.Tally.requests.Add(1)
		l.Tally.rawBytes.Add(int64(size))
		l.Tally.wireBytes.Add(int64(len(compressed)))
		wait := backoff
		if err != nil {
			l.Tally.faults.Add(1)
			l.Tally.complain(plain(err))
		} else {
			l.Tally.latency.Observe(time.Since(asked))
			l.Tally.codes[min(max(got.code, 0), len(l.Tally.codes)-1)].Add(1)
			fate := got.fate(l.RetryOn429)
			if fate == stored {
				s.acks.Ack(round, batch)
				l.State.append(recordAck, uint64(round), uint64(batch))
				l.Tally.acked.Add(int64(n))
				return
			}
			l.Tally.complain(fmt.Sprintf("%d %s", got.code, got.text))
			if fate == refused {
				s.failed(round, batch)
				l.Tally.dropped.Add(int64(n))
				return
			}
			if got.retryAfter > 0 {
				wait = got.retryAfter
			}
		}
		s.failed(round, batch)
		if sleep(open, wait) != nil {
			l.Tally.lost.Add(int64(n))
			return
		}
		backoff = min(2*backoff, maxBackoff)
		l.Tally.retries.Add(1)
	}
}

// failed notes that a batch may lie in the store although nobody said so.
func (s *shard) failed(round, batch int) {
	if !s.acks.Tried(round, batch) {
		s.acks.Fail(round, batch)
		s.load.State.append(recordFail, uint64(round), uint64(batch))
	}
}

// plain strips the method and address that a client puts before each error.
func plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}

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

// RemoteWrite sends the samples of a fleet by remote write, as so many shards of a Prometheus or vmagent would: each
// shard owns every so manieth batch and sends its batches one after the other, so that the order within a series is
// kept.
type RemoteWrite struct {
	Fleet    Fleet
	Disorder Disorder
	Schedule Schedule
	URL      string
	// Tenant to write as; none if empty. With several tenants, a number follows.
	Tenant      string
	UserAgent   string
	Protocol    Protocol
	Compression Compression
	Batch       int // series per request
	Concurrency int
	Emulate     Emulation
	// RetryOn429 makes a Prometheus send batches again that a tenant's limit refused; by default it drops them.
	RetryOn429 bool
	// State, if set, witnesses what was acknowledged.
	State *StateWriter
	Tally *Tally
}

// Header returns the first line of the load's state file.
func (l *RemoteWrite) Header() Header {
	h := Header{Version: stateVersion, Timeline: l.Schedule.Timeline, RemoteWrite: &l.Fleet, Batch: l.Batch}
	if d := l.Disorder.until(l.Schedule.rounds); d.Late.Share > 0 || d.Twice > 0 {
		h.Disorder = &d
	}
	return h
}

// Check returns an error of class [model.ErrInvalid] unless the load can be sent.
func (l *RemoteWrite) Check() error {
	if _, err := l.endpoint(); err != nil {
		return err
	}
	switch f := &l.Fleet; {
	case strings.ContainsAny(l.Tenant+l.UserAgent, "\r\n"):
		return fmt.Errorf("%w: load: tenant %q: a header has one line", model.ErrInvalid, l.Tenant)
	case l.Batch < 1 || l.Concurrency < 1:
		return fmt.Errorf("%w: load: batch and concurrency must be at least 1", model.ErrInvalid)
	case f.Churn.Jitter > 0 && f.Churn.Jitter >= time.Duration(l.Schedule.Step):
		return fmt.Errorf("%w: load: jitter %v: want less than the %v between samples", model.ErrInvalid, f.Churn.Jitter, time.Duration(l.Schedule.Step))
	case l.Protocol == V1 && f.StartTimes:
		return fmt.Errorf("%w: load: remote write 1.0 has no start timestamps; take v2", model.ErrInvalid)
	}
	if err := l.Disorder.check(); err != nil {
		return err
	}
	if err := l.Fleet.Check(); err != nil {
		return err
	}
	if l.Fleet.batches(l.Batch) > maxBatches {
		return fmt.Errorf("%w: load: more than %d requests in a round; take larger batches", model.ErrInvalid, maxBatches)
	}
	return nil
}

// maxBatches bounds the memory that acknowledgements take: two bits for each request.
const maxBatches = 1 << 28

func (l *RemoteWrite) endpoint() (*url.URL, error) { return endpointOf(l.URL) }

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
	l.Schedule.ahead = l.Fleet.Churn.Jitter
	state := newState(l.Header())
	open, cancel := l.Schedule.within(ctx)
	defer cancel()

	var wg sync.WaitGroup
	for i := range min(l.Concurrency, state.Acks.batches) {
		s := newShard(l, i, state.Acks, endpoint)
		wg.Go(func() { s.run(ctx, open) })
	}
	wg.Wait()
	state.Ended = true
	l.State.append(recordEnd, uint64(time.Now().UnixNano()), 0)
	report := l.Tally.report(kindRemoteWrite, l.Fleet.Total(), time.Since(began), usedCPU()-cpu)
	return state, report, ctx.Err()
}

// plain strips the method and address that a client puts before each error.
func plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}

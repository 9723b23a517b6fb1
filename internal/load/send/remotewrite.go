package send

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/tally"
	"github.com/shaledb/shale/internal/load/wire"
	"github.com/shaledb/shale/internal/model"
)

// RemoteWrite sends the samples of a fleet by remote write, like the shards of a Prometheus or vmagent: each
// shard owns a part of the batches and sends them one after the other, which keeps the order within a series.
type RemoteWrite struct {
	Fleet    fleet.Fleet
	Disorder fleet.Disorder
	Schedule pace.Schedule
	URL      string
	// Tenant to write as; none if empty. With several tenants, a number follows.
	Tenant string
	// Token that the server requires; none if empty.
	Token       string
	UserAgent   string
	Protocol    wire.Protocol
	Compression wire.Compression
	Batch       int // series per request
	Concurrency int
	Emulate     Emulation
	// RetryOn429 makes a Prometheus retry batches that a tenant's limit refused; by default it drops them.
	RetryOn429 bool
	// State, if set, records acknowledgements.
	State *statefile.Writer
	Tally *RemoteWriteTally
}

// Header returns the first line of the load's state file.
func (l *RemoteWrite) Header() statefile.Header {
	h := statefile.Header{Version: statefile.StateVersion, Timeline: l.Schedule.Timeline, RemoteWrite: &l.Fleet, Batch: l.Batch}
	if d := l.Disorder.Until(l.Schedule.Rounds); d.Late.Share > 0 || d.Twice > 0 {
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
	case strings.ContainsAny(l.Tenant+l.Token+l.UserAgent, "\r\n"):
		return fmt.Errorf("%w: load: tenant %q: a header cannot have line breaks", model.ErrInvalid, l.Tenant)
	case l.Batch < 1 || l.Concurrency < 1:
		return fmt.Errorf("%w: load: batch and concurrency must be at least 1", model.ErrInvalid)
	case f.Churn.Jitter > 0 && f.Churn.Jitter >= time.Duration(l.Schedule.Step):
		return fmt.Errorf("%w: load: jitter %v: want less than the %v between samples", model.ErrInvalid, f.Churn.Jitter, time.Duration(l.Schedule.Step))
	case l.Protocol == wire.V1 && f.StartTimes:
		return fmt.Errorf("%w: load: remote write 1.0 has no start timestamps; use v2", model.ErrInvalid)
	}
	if err := l.Disorder.Check(); err != nil {
		return err
	}
	if err := l.Fleet.Check(); err != nil {
		return err
	}
	if l.Fleet.Batches(l.Batch) > statefile.MaxBatches {
		return fmt.Errorf("%w: load: more than %d requests in a round; use larger batches", model.ErrInvalid, statefile.MaxBatches)
	}
	return nil
}

// Encoding returns the encoding of the load's requests.
func (l *RemoteWrite) Encoding() wire.Encoding {
	return wire.Encoding{
		Fleet: &l.Fleet, Disorder: l.Disorder.Until(l.Schedule.Rounds), Timeline: l.Schedule.Timeline,
		Protocol: l.Protocol, Compression: l.Compression, Batch: l.Batch,
	}
}

func (l *RemoteWrite) endpoint() (*url.URL, error) { return endpointOf(l.URL) }

// Run sends the load until it is complete or its time is over, and returns its state and report. A server
// that refuses or is away does not fail the load: requests are retried until the time is over.
func (l *RemoteWrite) Run(ctx context.Context) (*statefile.State, *RemoteWriteReport, error) {
	if err := l.Check(); err != nil {
		return nil, nil, err
	}
	endpoint, err := l.endpoint()
	if err != nil {
		return nil, nil, err
	}
	began, cpu := time.Now(), tally.UsedCPU()
	l.Schedule.Ahead = l.Fleet.Churn.Jitter
	state := statefile.New(l.Header())
	open, cancel := l.Schedule.Within(ctx)
	defer cancel()

	var wg sync.WaitGroup
	for i := range min(l.Concurrency, state.Acks.Batches) {
		s := newShard(l, i, state.Acks, endpoint)
		wg.Go(func() { s.run(ctx, open) })
	}
	wg.Wait()
	state.Ended = true
	l.State.Append(statefile.RecordEnd, uint64(time.Now().UnixNano()), 0)
	report := l.Tally.report(l.Fleet.Total(), time.Since(began), tally.UsedCPU()-cpu)
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

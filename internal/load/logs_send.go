package load

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// LogPush sends the lines of [Logs] to Loki's push endpoint, with so many senders. Each owns every so manieth node and sends
// its pushes one after the other, so that the lines of a stream arrive in order.
type LogPush struct {
	Logs        Logs
	Schedule    Schedule
	FS          vfs.FS // of the files
	URL         string
	Tenant      string // to write as; none if empty
	UserAgent   string
	Format      LogFormat
	Concurrency int
	// State, if set, witnesses what was acknowledged.
	State *StateWriter
	Tally *Tally
}

// Header returns the first line of the load's state file.
func (l *LogPush) Header() Header {
	return Header{Version: stateVersion, Timeline: l.Schedule.Timeline, Logs: &l.Logs}
}

// Check returns an error of class [model.ErrInvalid] unless the load can be sent.
func (l *LogPush) Check() error {
	if _, err := endpointOf(l.URL); err != nil {
		return err
	}
	switch {
	case strings.ContainsAny(l.Tenant+l.UserAgent, "\r\n"):
		return fmt.Errorf("%w: load: tenant %q: a header has one line", model.ErrInvalid, l.Tenant)
	case l.Concurrency < 1:
		return fmt.Errorf("%w: load: concurrency must be at least 1", model.ErrInvalid)
	case l.Logs.Windows != l.Schedule.rounds:
		return fmt.Errorf("%w: load: %d windows, and the schedule has %d", model.ErrInvalid, l.Logs.Windows, l.Schedule.rounds)
	}
	return l.Logs.Check()
}

// Run sends the load until it is complete or its time is over, and returns what is known of it then. A server that refuses
// or is away is no error: it is asked again until the time is over.
func (l *LogPush) Run(ctx context.Context) (*State, *Report, error) {
	if err := l.Check(); err != nil {
		return nil, nil, err
	}
	endpoint, err := endpointOf(l.URL)
	if err != nil {
		return nil, nil, err
	}
	files, err := l.Logs.open(l.FS)
	if err != nil {
		return nil, nil, err
	}
	began, cpu := time.Now(), usedCPU()
	l.Schedule.ahead = time.Duration(l.Schedule.Step) // lines bear times up to the end of their window
	state := newState(l.Header())
	open, cancel := l.Schedule.within(ctx)
	defer cancel()

	var wg sync.WaitGroup
	for i := range min(l.Concurrency, state.Acks.batches) {
		w := l.Logs.writer(l.Schedule.Timeline)
		w.files = files
		s := &logSender{
			load: l, acks: state.Acks, first: i, body: newLogBody(w, l.Format),
			post: newPoster(endpoint, l.UserAgent, l.Format.header()), backoff: backoff{Emulation: Prometheus, seed: l.Logs.Seed + uint64(i)},
		}
		wg.Go(func() { s.run(ctx, open) })
	}
	wg.Wait()
	state.Ended = true
	l.State.append(recordEnd, uint64(time.Now().UnixNano()), 0)
	report := l.Tally.report(kindLogs, l.Logs.Total(), time.Since(began), usedCPU()-cpu)
	report.Needles = l.Logs.Needles()
	return state, report, ctx.Err()
}

// Pushes returns how many pushes the load has, 0 if nobody knows.
func (l *LogPush) Pushes() int64 { return int64(l.Logs.Windows) * int64(l.Logs.nodes()) }

func endpointOf(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: load: url %q: want http://host:port/path", model.ErrInvalid, text)
	}
	return u, nil
}

// logSender sends the pushes of every concurrency-th node.
type logSender struct {
	load    *LogPush
	acks    *Acks
	first   int
	body    *logBody
	post    *poster
	backoff backoff
}

// run sends until the load is complete or open ends. A push that is under way then may finish within ctx.
func (s *logSender) run(ctx, open context.Context) {
	defer s.post.close()
	l := s.load
	for window := 0; l.Schedule.more(window); window++ {
		for node := s.first; node < s.acks.batches; node += l.Concurrency {
			lag, err := l.Schedule.wait(open, window, int64(node), int64(s.acks.batches))
			if err != nil {
				return
			}
			l.Tally.late(lag)
			s.send(ctx, open, window, node)
			l.Tally.pushes.Add(1)
		}
	}
}

// send sends one push, as often as it takes.
func (s *logSender) send(ctx, open context.Context, window, node int) {
	l, t := s.load, s.load.Tally
	body, size := s.body.fill(window, node)
	n, bytes := s.body.lines, s.body.bytes
	t.sent.Add(n)
	if n == 0 { // a file that has ended; it counts as acknowledged
		s.acked(window, node)
		return
	}
	s.backoff.begin()
	for attempt := 0; ; attempt++ {
		asked := time.Now()
		got, err := s.post.post(ctx, body, l.Tenant, attempt)
		t.requests.Add(1)
		t.rawBytes.Add(int64(size))
		t.wireBytes.Add(int64(len(body)))
		if err != nil {
			t.faults.Add(1)
			t.complain(plain(err))
		} else {
			t.latency.Observe(time.Since(asked))
			t.codes[min(max(got.code, 0), len(t.codes)-1)].Add(1)
			if got.code/100 == 2 {
				s.acked(window, node)
				t.acked.Add(n)
				t.lineBytes.Add(bytes)
				return
			}
			t.complain(fmt.Sprintf("%d %s", got.code, got.text))
		}
		// A refusal may concern some of the lines only: the others are stored.
		if !s.acks.Tried(window, node) {
			s.acks.Fail(window, node)
			l.State.append(recordFail, uint64(window), uint64(node))
		}
		if err == nil && got.code/100 != 5 && got.code != http.StatusTooManyRequests {
			t.dropped.Add(n)
			return
		}
		if sleep(open, s.backoff.wait(got.retryAfter)) != nil {
			t.lost.Add(n)
			return
		}
		t.retries.Add(1)
	}
}

func (s *logSender) acked(window, node int) {
	s.acks.Ack(window, node)
	s.load.State.append(recordAck, uint64(window), uint64(node))
}

// LogDetail says in a few words how a load of lines is doing.
func (t *Tally) LogDetail() func() string {
	began := time.Now()
	return func() string {
		mb := float64(t.lineBytes.Load()) / 1e6
		text := fmt.Sprintf("%d lines, %.0f MB acknowledged, %.1f MB/s, %d retries", t.acked.Load(), mb, mb/max(1e-3, time.Since(began).Seconds()), t.retries.Load())
		if c := t.complaint.Load(); c != nil && t.acked.Load() == 0 {
			text += ": " + *c
		}
		return text
	}
}

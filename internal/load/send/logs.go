package send

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/load/lines"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/tally"
	"github.com/shaledb/shale/internal/load/wire"
	"github.com/shaledb/shale/internal/model"
)

// Logs sends log lines to Loki's push endpoint. Its senders share the nodes; each sends the pushes of its
// nodes one after the other, so that the lines of a stream arrive in order.
type Logs struct {
	Logs        lines.Shape
	Schedule    pace.Schedule
	FS          vfs.FS // of the files
	URL         string
	Tenant      string // to write as; none if empty
	Token       string // that the server requires; none if empty
	UserAgent   string
	Format      wire.PushFormat
	Concurrency int
	// State, if set, records acknowledgements.
	State *statefile.Writer
	Tally *LogsTally
}

// Header returns the first line of the load's state file.
func (l *Logs) Header() statefile.Header {
	return statefile.Header{Version: statefile.StateVersion, Timeline: l.Schedule.Timeline, Logs: &l.Logs}
}

// Check returns an error of class [model.ErrInvalid] unless the load can be sent.
func (l *Logs) Check() error {
	if _, err := endpointOf(l.URL); err != nil {
		return err
	}
	switch {
	case strings.ContainsAny(l.Tenant+l.Token+l.UserAgent, "\r\n"):
		return fmt.Errorf("%w: load: tenant %q: a header cannot have line breaks", model.ErrInvalid, l.Tenant)
	case l.Concurrency < 1:
		return fmt.Errorf("%w: load: concurrency must be at least 1", model.ErrInvalid)
	case l.Logs.Windows != l.Schedule.Rounds:
		return fmt.Errorf("%w: load: %d windows, but the schedule has %d", model.ErrInvalid, l.Logs.Windows, l.Schedule.Rounds)
	}
	return l.Logs.Check()
}

// Run sends the load until it is complete or its time is over, and returns its state and report. A server
// that refuses or is away does not fail the load: requests are retried until the time is over.
func (l *Logs) Run(ctx context.Context) (*statefile.State, *LogsReport, error) {
	if err := l.Check(); err != nil {
		return nil, nil, err
	}
	endpoint, err := endpointOf(l.URL)
	if err != nil {
		return nil, nil, err
	}
	files, err := l.Logs.Open(l.FS)
	if err != nil {
		return nil, nil, err
	}
	began, cpu := time.Now(), tally.UsedCPU()
	l.Schedule.Ahead = time.Duration(l.Schedule.Step) // lines have times up to the end of their window
	state := statefile.New(l.Header())
	open, cancel := l.Schedule.Within(ctx)
	defer cancel()

	var wg sync.WaitGroup
	for i := range min(l.Concurrency, state.Acks.Batches) {
		w := l.Logs.NewWriter(l.Schedule.Timeline)
		w.Files = files
		s := &logSender{
			load: l, acks: state.Acks, first: i, body: wire.NewPushes(w, l.Format),
			post: newPoster(endpoint, l.UserAgent, l.Token, l.Format.Header()), backoff: backoff{Emulation: Prometheus, seed: l.Logs.Seed + uint64(i)},
		}
		wg.Go(func() { s.run(ctx, open) })
	}
	wg.Wait()
	state.Ended = true
	l.State.Append(statefile.RecordEnd, uint64(time.Now().UnixNano()), 0)
	report := l.Tally.report(l.Logs.Total(), time.Since(began), tally.UsedCPU()-cpu)
	report.Needles = l.Logs.Needles()
	return state, report, ctx.Err()
}

// Pushes returns how many pushes the load has; 0: unknown.
func (l *Logs) Pushes() int64 { return int64(l.Logs.Windows) * int64(l.Logs.Nodes()) }

func endpointOf(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: load: url %q: want http://host:port/path", model.ErrInvalid, text)
	}
	return u, nil
}

// logSender sends the pushes of one in Concurrency nodes.
type logSender struct {
	load    *Logs
	acks    *statefile.Acks
	first   int
	body    *wire.Pushes
	post    *poster
	backoff backoff
}

// run sends until the load is complete or open ends. A push in flight may then finish within ctx.
func (s *logSender) run(ctx, open context.Context) {
	defer s.post.close()
	l := s.load
	for window := 0; l.Schedule.More(window); window++ {
		for node := s.first; node < s.acks.Batches; node += l.Concurrency {
			lag, err := l.Schedule.Wait(open, window, int64(node), int64(s.acks.Batches))
			if err != nil {
				return
			}
			l.Tally.SetLag(lag)
			s.send(ctx, open, window, node)
			l.Tally.Pushes.Add(1)
		}
	}
}

// send sends one push, with retries.
func (s *logSender) send(ctx, open context.Context, window, node int) {
	l, t := s.load, s.load.Tally
	body, size := s.body.Fill(window, node)
	n, bytes := s.body.Lines, s.body.Bytes
	t.Sent.Add(n)
	if n == 0 { // the file has ended; an empty push counts as acknowledged
		s.acked(window, node)
		return
	}
	s.backoff.begin()
	for attempt := 0; ; attempt++ {
		asked := time.Now()
		got, err := s.post.post(ctx, body, l.Tenant, attempt)
		t.Attempt(int64(size), int64(len(body)))
		if err != nil {
			t.Fault(plain(err))
		} else {
			t.Respond(got.code, time.Since(asked))
			if got.code/100 == 2 {
				s.acked(window, node)
				t.Acked.Add(n)
				t.lineBytes.Add(bytes)
				return
			}
			t.Complain(fmt.Sprintf("%d %s", got.code, got.text))
		}
		// The server may refuse only some of the lines and store the others.
		if !s.acks.Tried(window, node) {
			s.acks.Fail(window, node)
			l.State.Append(statefile.RecordFail, uint64(window), uint64(node))
		}
		if err == nil && got.code/100 != 5 && got.code != http.StatusTooManyRequests {
			t.Dropped.Add(n)
			return
		}
		if pace.Sleep(open, s.backoff.wait(got.retryAfter)) != nil {
			t.Lost.Add(n)
			return
		}
		t.Retries.Add(1)
	}
}

func (s *logSender) acked(window, node int) {
	s.acks.Ack(window, node)
	s.load.State.Append(statefile.RecordAck, uint64(window), uint64(node))
}

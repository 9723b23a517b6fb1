package victorialogs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/breaker"
	"github.com/shaledb/shale/internal/read/victorialogs/pace"
	"github.com/shaledb/shale/internal/read/victorialogs/permit"
)

const (
	queryPath = "/select/logsql/query"
	// maxAttempts is how often a request is sent, and firstPause what the first repetition waits.
	maxAttempts = 3
	firstPause  = 100 * time.Millisecond
	// maxErrorBytes is how much of the text of an error is shown.
	maxErrorBytes = 300
	// countConnections is how many counts run at one time. They have connections of their own.
	countConnections = 4
)

// client asks one server. It is safe for concurrent use.
type client struct {
	url string
	// authorization is the file with the credentials; "": none.
	authorization string
	http          *http.Client
	counts        *http.Client // for counts, which are not to take the turn of a query
	proofs        *http.Client // for searches for copies, which are not to take that of a count
	metrics       *metrics
	breaker       breaker.Breaker
	pace          *pace.Pace
	budget        breaker.Budget
	pause         time.Duration // before the first repetition
}

func newClient(s *Settings, m *metrics) *client {
	return &client{
		url: s.Source.URL(), authorization: s.Authorization, metrics: m, pause: firstPause, pace: pace.New(s.Requests),
		http: connect(s.Source.URL(), s.Requests), counts: connect(s.Source.URL(), countConnections), proofs: connect(s.Source.URL(), 1),
	}
}

// connect returns a client with a number of connections at most.
func connect(address string, most int) *http.Client {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, MaxConnsPerHost: most, MaxIdleConnsPerHost: most, IdleConnTimeout: time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
		// On one machine, compression costs more than it saves.
		DisableCompression: isLoopback(address),
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func (c *client) close() {
	c.http.CloseIdleConnections()
	c.counts.CloseIdleConnections()
	c.proofs.CloseIdleConnections()
}

// query runs a LogsQL query and calls each with its rows. A row is valid during the call. If it fails for a
// reason that may pass, and no row was handed over, it is sent again. An error of each ends it.
func (c *client) query(ctx context.Context, a access, kind, text string, each func(row []field) error) error {
	authorization, err := permit.Credentials(c.authorization)
	if err != nil {
		c.metrics.requests.WithLabelValues(kind, "error").Inc()
		return err // it says nothing about the server
	}
	pause := c.pause
	for attempt := 1; ; attempt++ {
		leave, pass, err := c.turn(ctx, kind)
		if err != nil {
			return err
		}
		defer pass.Unknown() // if each panics
		began := time.Now()
		handed, err := func() (bool, error) {
			defer leave() // even if each panics
			return c.once(ctx, c.http, a, authorization, text, pass.Answers, each)
		}()
		c.metrics.seconds.WithLabelValues(kind).Observe(time.Since(began).Seconds())
		var failed *failure
		switch {
		case err == nil:
			pass.Succeeded()
			c.pace.Ended(began, time.Now(), true)
			c.budget.Earn()
			c.metrics.requests.WithLabelValues(kind, "ok").Inc()
			return nil
		case errors.As(err, &failed) && c.hung(ctx, began, handed):
			c.failed(&pass, kind, began, true)
			return err
		case !errors.As(err, &failed) || ctx.Err() != nil:
			// The reader did not want more, or the query has ended: that says nothing about the server.
			pass.Unknown()
			c.metrics.requests.WithLabelValues(kind, "ended").Inc()
			return err
		case !failed.mayPass:
			pass.Succeeded() // it has answered
			c.metrics.requests.WithLabelValues(kind, "error").Inc()
			return err
		}
		c.failed(&pass, kind, began, !failed.crowded)
		if handed || attempt == maxAttempts || !c.budget.Spend() {
			return err
		}
		c.metrics.retries.Inc()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause *= 3
	}
}

// turn waits until a request may be sent. It does not wait while the breaker is open: those that have the
// turns may wait for a server that does not answer.
func (c *client) turn(ctx context.Context, kind string) (leave func(), pass breaker.Pass, err error) {
	c.metrics.waiting.Inc()
	defer c.metrics.waiting.Dec()
	leave, err = c.pace.Enter(ctx, !c.breaker.Open())
	// It is asked after the turn: a request that waits is not the one that is let through.
	if err == nil {
		var ok bool
		if pass, ok = c.breaker.Allow(time.Now()); !ok {
			leave()
			err = pace.ErrNoneFree
		}
	}
	switch {
	case err == pace.ErrNoneFree:
		c.metrics.requests.WithLabelValues(kind, "refused").Inc()
		return nil, pass, c.tooMany()
	case errors.Is(err, model.ErrTransient):
		c.metrics.requests.WithLabelValues(kind, "crowded").Inc()
	case err != nil:
		c.metrics.requests.WithLabelValues(kind, "ended").Inc()
	}
	return leave, pass, err
}

// hung reports whether a request has waited long for a response, and its query has run out of time. A query
// that its client has given up says nothing.
func (c *client) hung(ctx context.Context, began time.Time, handed bool) bool {
	return !handed && time.Since(began) >= c.pace.Slow && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// failed notes a failure of which the server may be the cause. One that has too much to do is not out of
// order. Yet something in front of it may say so, and then that tells nothing of the server.
func (c *client) failed(pass *breaker.Pass, kind string, began time.Time, outOfOrder bool) {
	now := time.Now()
	if outOfOrder {
		pass.Failed(now)
	} else {
		pass.Unknown()
	}
	c.pace.Ended(began, now, false)
	c.metrics.requests.WithLabelValues(kind, "error").Inc()
}

func (c *client) tooMany() error {
	return fmt.Errorf("%w: VictoriaLogs at %s has failed %d times in a row; it is asked again in %s at most", model.ErrTransient, c.url, breaker.Failures, breaker.Pause)
}

// try runs a query on which no response depends: once, by connections of its kind, and not while queries are
// refused. Its failures keep no query from being sent, or sent again.
func (c *client) try(ctx context.Context, h *http.Client, a access, kind, text string, each func(row []field) error) error {
	if c.breaker.Open() {
		c.metrics.requests.WithLabelValues(kind, "refused").Inc()
		return c.tooMany()
	}
	authorization, err := permit.Credentials(c.authorization)
	if err == nil {
		began := time.Now()
		_, err = c.once(ctx, h, a, authorization, text, func() {}, each)
		c.metrics.seconds.WithLabelValues(kind).Observe(time.Since(began).Seconds())
	}
	outcome := "ok"
	switch {
	case err != nil && ctx.Err() != nil:
		outcome = "ended"
	case err != nil:
		outcome = "error"
	}
	c.metrics.requests.WithLabelValues(kind, outcome).Inc()
	return err
}

// failure is an error of the server or of the way to it.
type failure struct {
	text    string
	mayPass bool
	crowded bool // it has too much to do
	class   error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.class }

func (c *client) failure(format string, of ...any) *failure {
	return &failure{text: "VictoriaLogs at " + c.url + " " + fmt.Sprintf(format, of...), mayPass: true, class: model.ErrTransient}
}

// once sends a request, and reports whether a row was handed over. It calls answers with the first row, or at
// the end of a response without any.
func (c *client) once(ctx context.Context, h *http.Client, a access, authorization, text string, answers func(), each func(row []field) error) (handed bool, err error) {
	// A cluster may be told to answer with the lines of the nodes that are there. The rest would be missing
	// without a word.
	form := url.Values{"query": {text}, "allow_partial_response": {"0"}}
	if a.filter != "" {
		form.Set("extra_filters", a.filter)
	}
	if at, ok := ctx.Deadline(); ok {
		// The server gives up with the client. Its own limit is the lower of the two.
		form.Set("timeout", strconv.FormatFloat(max(time.Until(at).Seconds(), 0.001), 'f', 3, 64)+"s")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+queryPath, strings.NewReader(form.Encode()))
	if err != nil {
		return false, fmt.Errorf("%w: request to VictoriaLogs: %v", model.ErrInvalid, err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	req.Header.Set("AccountID", strconv.FormatUint(uint64(a.ID), 10))
	req.Header.Set("ProjectID", strconv.FormatUint(uint64(a.Project), 10))
	resp, err := h.Do(req)
	if err != nil {
		f := c.failure("cannot be asked: %v", err)
		if ended := context.Cause(ctx); ended != nil {
			f.class = ended
		}
		return false, f
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, c.refused(resp)
	}
	counted := &countingReader{r: resp.Body}
	defer func() { c.metrics.bytes.Add(float64(counted.n)) }()
	rows := newRowReader(counted)
	defer rows.release()
	for {
		row, err := rows.next()
		switch {
		case err == io.EOF:
			answers()
			return handed, nil
		case err != nil:
			f := c.failure("ended its response after %d rows: %v", rows.count, err)
			if ended := context.Cause(ctx); ended != nil {
				f.class = ended
			}
			return handed, f
		}
		if !handed {
			handed = true
			answers()
		}
		if err := each(row); err != nil {
			return true, err
		}
	}
}

// refused returns the error of a response that has one.
func (c *client) refused(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes)) // what could be read is shown
	f := c.failure("answers with status %d: %s", resp.StatusCode, strings.ToValidUTF8(string(bytes.TrimSpace(text)), "?"))
	// A query that is refused as it stands is refused again: it is a fault of the translation, or too large.
	f.mayPass = resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
	f.crowded = resp.StatusCode == http.StatusTooManyRequests
	if resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnprocessableEntity {
		f.class = model.ErrInvalid
	}
	return f
}

// countingReader counts the bytes that are read.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

package loki

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
)

// tail sends lines over a websocket as they arrive.
func (h *Handler) tail(r *api.Request) (*api.Response, error) {
	q, err := h.tailQuery(r)
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		r.W.Header().Set("Sec-Websocket-Version", "13")
		return nil, badText("tail needs a websocket: expected the header Upgrade: websocket")
	}
	if origin := r.Header.Get("Origin"); origin != "" && !h.pipeline.Origins.Match(origin) {
		return nil, failed(http.StatusForbidden, fmt.Errorf("pages of the origin %.200q may not tail lines", origin))
	}
	place, err := h.tails.enter(q.Tenant)
	if err != nil {
		return nil, err
	}
	defer h.tails.leave(place)
	// The origin is checked above.
	conn, err := websocket.Accept(r.W, r.Request, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		// Accept has sent the error.
		return &api.Response{Status: http.StatusBadRequest, Sent: true}, nil
	}
	t := &tail{
		h: h, conn: conn, query: q, flags: encodingFlags(r.Header), legacy: isLegacy(r), frames: make(chan []byte, maxFrames),
	}
	t.form = entryFormOf(t.flags)
	q.Categorize = t.form.categorize
	t.run(model.WithCaller(place.ctx, model.Caller{Tenant: q.Tenant, Class: model.Explore}), h.o.MaxTailTime)
	return &api.Response{Status: http.StatusSwitchingProtocols, Sent: true}, nil
}

// tailQuery reads the parameters, in Loki's order.
func (h *Handler) tailQuery(r *api.Request) (*logql.TailQuery, error) {
	p, err := prepare(r, r.Form.Get("regexp"))
	if err != nil {
		return nil, err
	}
	limit, err := limitParam(r.Form)
	if err != nil {
		return nil, bad(err)
	}
	start, _, err := bounds(r.Form, h.o.Now().UnixNano())
	if err != nil {
		return nil, bad(err)
	}
	delay, err := integer(r.Form, "delay_for", 0)
	switch {
	case err != nil:
		return nil, bad(err)
	case delay < 0:
		return nil, bad(fmt.Errorf("delay_for value %d is out of range [0, %d]", delay, maxDelayFor))
	case delay > maxDelayFor:
		return nil, bad(fmt.Errorf("delay_for can't be greater than %d", maxDelayFor))
	case !p.WantsLines():
		return nil, badText(textOnlyLines)
	}
	all, err := api.ManyTenants(r.Header)
	if err != nil {
		return nil, err
	}
	if len(all) > 1 {
		return nil, bad(errManyTenants)
	}
	if h.o.Budgets != nil {
		r.Cost.Spend = h.o.Budgets.Open(all).Spend
	}
	return &logql.TailQuery{
		Tenant: all[0], Prepared: p, Start: start, Limit: limit, Delay: int64(delay) * int64(time.Second), Quota: r.Quota, Cost: r.Cost,
		Past: h.past,
	}, nil
}

// past takes a turn and a deadline for reading the lines of the past. Following new lines needs neither.
func (h *Handler) past(ctx context.Context) (context.Context, func(), error) {
	if err := h.pipeline.Gate.Enter(ctx); err != nil {
		return nil, nil, err
	}
	timed, cancel := context.WithTimeout(ctx, h.o.Limits.Timeout)
	return timed, func() {
		cancel()
		h.pipeline.Gate.Leave(ctx)
	}, nil
}

// The times of a tail connection.
const (
	pingEvery = time.Second
	// patience is the time that a client has to read a frame or to answer a ping before it counts as gone.
	patience = time.Minute
)

// The ends of a connection besides errors of the engine and of the context.
var (
	errGone  = errors.New("the client is gone")
	errTime  = errors.New("reached tail max duration limit")
	errEnded = errors.New("the lines ended")
)

// tail is a tail connection. Its goroutines end before run returns.
type tail struct {
	h      *Handler
	conn   *websocket.Conn
	query  *logql.TailQuery
	flags  []string
	form   entryForm
	legacy bool
	frames chan []byte // charged to the quota of the query
}

// run sends lines until the client leaves, the maximum time is over, the engine fails, or the context ends.
func (t *tail) run(ctx context.Context, longest time.Duration) {
	// onConn outlives ctx: the library cuts a connection whose context ends, and a close frame may have to go
	// out before.
	onConn, cut := context.WithCancel(context.WithoutCancel(ctx))
	lines, stop := context.WithTimeoutCause(ctx, longest, errTime)
	ended := make(chan error, 3)
	running := 0
	start := func(work func() error) {
		running++
		go func() {
			defer func() {
				if p := recover(); p != nil {
					ended <- t.h.pipeline.Recovered("tail", p)
				}
			}()
			ended <- work()
		}()
	}
	start(func() error { return t.read(onConn) })
	start(func() error { return t.ping(onConn) })
	start(func() error { return t.follow(lines) })
	cause := t.write(lines, onConn, ended)
	if !errors.Is(cause, errGone) && !errors.Is(cause, logql.ErrInterrupted) && ctx.Err() == nil {
		_ = t.conn.Close(websocket.StatusInternalError, reason(cause)) // fails only if the client is gone
	} else {
		// At a shutdown, too: clients reconnect after a cut, which brings them to the next server. They begin with
		// the time of the last line that they have.
		_ = t.conn.CloseNow()
	}
	stop()
	cut()
	for range running {
		<-ended
	}
}

// reason fits an error into a close frame.
func reason(err error) string {
	const most = 123
	s := errorText(classify(err, false))
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// write sends frames until one of the goroutines or the time ends, and returns the cause. It leaves ended as
// it was.
func (t *tail) write(lines, onConn context.Context, ended chan error) error {
	for {
		select {
		case f := <-t.frames:
			ctx, cancel := context.WithTimeout(onConn, patience)
			err := t.conn.Write(ctx, websocket.MessageText, f)
			cancel()
			_ = t.query.Quota.TakeBytes(-int64(len(f))) // giving back does not fail
			if err != nil {
				return errGone
			}
			t.h.metrics.tailed.Add(float64(len(f)))
		case err := <-ended:
			ended <- err
			if lines.Err() != nil {
				return context.Cause(lines)
			}
			if err == nil {
				return errEnded
			}
			return err
		case <-lines.Done():
			return context.Cause(lines)
		}
	}
}

// read waits for the client to leave. It ignores the messages of the client.
func (t *tail) read(ctx context.Context) error {
	t.conn.SetReadLimit(4 << 10)
	for {
		if _, _, err := t.conn.Read(ctx); err != nil {
			return errGone
		}
	}
}

// ping detects a client that is gone while there are no lines to send.
func (t *tail) ping(ctx context.Context) error {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return errGone
		case <-ticker.C:
		}
		wait, cancel := context.WithTimeout(ctx, patience)
		err := t.conn.Ping(wait)
		cancel()
		if err != nil {
			return errGone
		}
	}
}

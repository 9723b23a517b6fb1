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
	"github.com/shaledb/shale/internal/read/logql"
)

// tail follows lines over a websocket.
func (h *Handler) tail(r *api.Request) (*api.Response, error) {
	q, err := h.tailQuery(r)
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		r.W.Header().Set("Sec-Websocket-Version", "13")
		return nil, badText("lines are followed by a websocket, and the request does not ask for one (Upgrade: websocket)")
	}
	if origin := r.Header.Get("Origin"); origin != "" && !h.pipeline.Origins.Match(origin) {
		return nil, failed(http.StatusForbidden, fmt.Errorf("pages of the origin %.200q may not follow lines", origin))
	}
	place, err := h.tails.enter(q.Tenant)
	if err != nil {
		return nil, err
	}
	defer h.tails.leave(place)
	// Whether the origin may is decided above.
	conn, err := websocket.Accept(r.W, r.Request, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		// Accept has told the client.
		return &api.Response{Status: http.StatusBadRequest, Sent: true}, nil
	}
	t := &tail{
		h: h, conn: conn, query: q, flags: encodingFlags(r.Header), legacy: isLegacy(r), frames: make(chan []byte, maxFrames),
	}
	q.Categorize = categorizes(t.flags)
	t.run(place.ctx, h.o.MaxTailTime)
	return &api.Response{Status: http.StatusSwitchingProtocols, Sent: true}, nil
}

// tailQuery reads the parameters, in Loki's order.
func (h *Handler) tailQuery(r *api.Request) (*logql.TailQuery, error) {
	text := r.Form.Get("query")
	lines, err := h.isLines(r, text)
	if err != nil {
		return nil, err
	}
	if text, err = h.withRegexp(r, text); err != nil {
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
	case !lines:
		return nil, badText(textOnlyLines)
	case limit > h.o.MaxEntries:
		return nil, maxEntries(limit, h.o.MaxEntries)
	}
	all, err := api.ManyTenants(r.Header)
	if err != nil {
		return nil, err
	}
	if len(all) > 1 {
		return nil, bad(errManyTenants)
	}
	return &logql.TailQuery{
		Tenant: all[0], Text: text, Start: start, Limit: limit, Delay: int64(delay) * int64(time.Second), Quota: r.Quota, Cost: r.Cost,
		Past: h.past,
	}, nil
}

// past gives the lines that were there before a turn and the time of a query. Those that come take neither.
func (h *Handler) past(ctx context.Context) (context.Context, func(), error) {
	if err := h.pipeline.Gate.Enter(ctx); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.o.Limits.Timeout)
	return ctx, func() {
		cancel()
		h.pipeline.Gate.Leave()
	}, nil
}

// The times of a connection that follows lines.
const (
	pingEvery = time.Second
	// patience is how long a client may take to read a frame or to answer a ping, before it is taken for gone.
	patience = time.Minute
)

// What ends a connection, beside errors of the engine and the context.
var (
	errGone  = errors.New("the client is gone")
	errTime  = errors.New("reached tail max duration limit")
	errEnded = errors.New("the lines ended")
)

// tail is a connection that follows lines. Its goroutines end before run returns.
type tail struct {
	h      *Handler
	conn   *websocket.Conn
	query  *logql.TailQuery
	flags  []string
	legacy bool
	frames chan []byte // charged to the quota of the query
}

// run follows lines until the client leaves, the time is over, the engine fails, or the context ends.
func (t *tail) run(ctx context.Context, longest time.Duration) {
	// The context of what runs on the connection: the library cuts a connection whose context ends, and there may be
	// something to be said before.
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
	if !errors.Is(cause, errGone) && ctx.Err() == nil {
		_ = t.conn.Close(websocket.StatusInternalError, reason(cause)) // whoever is gone need not know why
	} else {
		// Of a shutdown, too: clients take this for the end of a server, and come again, to the next one.
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

// write sends frames until something ends, and returns what. It puts back into ended what it takes.
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

// read waits for the client to leave. What it says until then is of no interest.
func (t *tail) read(ctx context.Context) error {
	t.conn.SetReadLimit(4 << 10)
	for {
		if _, _, err := t.conn.Read(ctx); err != nil {
			return errGone
		}
	}
}

// ping asks the client whether it is there, and so finds out that it is not where there is nothing to be sent.
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

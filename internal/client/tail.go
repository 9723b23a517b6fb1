package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coder/websocket"
	"github.com/dustin/go-humanize/english"
	"github.com/valyala/fastjson"
)

// Tail follows lines as they arrive. If a connection breaks, it reconnects and replays the lines that it
// missed, see gap.go. It runs once.
type Tail struct {
	Server *Server
	Expr   string
	Start  time.Time     // lines from here on are shown first
	Limit  int           // most lines that are shown first
	Delay  time.Duration // how long the server holds lines back, so that late ones appear in order
	// Show gets lines that have not been shown yet, oldest first. They are valid until it returns. Its error
	// ends the tail.
	Show func([]Line) error
	// Note gets a remark for the user: the server dropped lines, or a connection broke or is back.
	Note func(format string, args ...any)

	reached bool // there has been a connection

	// The state from which a replay starts.
	start  int64 // the earliest time of interest, in Unix nanoseconds
	lines  int   // that were shown
	newest int64 // the latest time of them; a line ahead of the clock counts with the time when it was shown
	first  int64 // the earliest time of the first ones of them, up to the limit
	shown  *shown
	page   int // lines that the server gives at once
}

const (
	// The waits between attempts to reach a server that has gone away.
	minTailBackoff = 200 * time.Millisecond
	maxTailBackoff = 5 * time.Second

	// maxFrameBytes bounds the memory that a server can make this process use: lines are at most 256 KB by
	// default, 100 in a frame.
	maxFrameBytes = 128 << 20

	// maxNamed is how many dropped lines a frame lists at most, of Shale as of Loki.
	maxNamed = 1000
)

// showError is an error of Show.
type showError struct{ error }

func (e showError) Unwrap() error { return e.error }

// Run follows lines until the context ends; then it returns nil. It returns an error if the server cannot be
// reached at first; later it waits for the server.
func (t *Tail) Run(ctx context.Context) error {
	t.start, t.newest, t.first = t.Start.UnixNano(), math.MinInt64, math.MaxInt64
	t.shown, t.page = newShown(maxShown), linesPerPage
	for wait := minTailBackoff; ; wait = min(2*wait, maxTailBackoff) {
		begun, err := t.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case !t.reached, errors.As(err, new(showError)):
			return err
		}
		if begun {
			wait = minTailBackoff
		}
		t.Note("%v; reconnecting", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// follow shows the lines of one connection, after those of the gap since the previous one. It reports whether
// it came so far.
func (t *Tail) follow(ctx context.Context) (begun bool, err error) {
	var g gap
	start, limit := t.start, t.Limit
	if t.reached {
		// Most of the gap is filled before there is a connection, so that lines that come need not wait for it.
		if err := g.fill(ctx, t); err != nil {
			return false, err
		}
		// The server sends the lines between the end of this filling and its own start.
		start, limit = t.resumeFrom(), t.page
	}
	conn, err := t.dial(ctx, start, limit)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.CloseNow() }()
	if t.reached {
		if err := g.fill(ctx, t); err != nil {
			return false, err
		}
		g.filled(t)
	}
	t.reached = true
	conn.SetReadLimit(maxFrameBytes)
	var parser fastjson.Parser
	for {
		_, frame, err := conn.Read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				_ = conn.Close(websocket.StatusNormalClosure, "")
			}
			return true, fmt.Errorf("%s: %w", t.Server.URL, err)
		}
		if err := t.frame(&parser, frame); err != nil {
			return true, err
		}
	}
}

// dial connects to the server.
func (t *Tail) dial(ctx context.Context, start int64, limit int) (*websocket.Conn, error) {
	query := url.Values{"query": {t.Expr}, "start": {strconv.FormatInt(start, 10)}, "limit": {strconv.Itoa(limit)}}
	if t.Delay > 0 {
		query.Set("delay_for", strconv.Itoa(int((t.Delay+time.Second-1)/time.Second)))
	}
	s := t.Server
	target, err := s.endpoint("loki/api/v1/tail", query)
	if err != nil {
		return nil, err
	}
	conn, resp, err := websocket.Dial(ctx, target, &websocket.DialOptions{HTTPClient: s.HTTP, HTTPHeader: s.header(http.Header{encodingFlags: {base64Lines}})})
	switch {
	case err == nil:
		return conn, nil
	case resp == nil || resp.Body == nil:
		return nil, s.unreachable(ctx, "connecting to", err)
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
	return nil, newStatusError(target, resp.StatusCode, text)
}

// frame shows the lines of a frame.
func (t *Tail) frame(parser *fastjson.Parser, frame []byte) error {
	v, err := parser.ParseBytes(frame)
	if err != nil {
		return fmt.Errorf("%s: the frame is not of the Loki API: %w", t.Server.URL, err)
	}
	lines, err := readStreams(v.GetArray("streams"))
	if err != nil {
		return fmt.Errorf("%s: %w", t.Server.URL, err)
	}
	sortLines(lines, true)
	if _, err := t.show(lines); err != nil {
		return err
	}
	// A query could replay dropped lines as it does after a reconnect. It is not made: lines are dropped when
	// the server or this process is busy, and replays would add to that load.
	if n := len(v.GetArray("dropped_entries")); n >= maxNamed {
		t.Note("the server dropped at least %d lines because its queue for this tail was full", n)
	} else if n > 0 {
		t.Note("the server dropped %s because its queue for this tail was full", english.Plural(n, "line", ""))
	}
	return nil
}

// show hands out those lines that were not shown yet, and returns their number.
func (t *Tail) show(lines []Line) (int, error) {
	now := time.Now().UnixNano()
	fresh := lines[:0]
	for _, l := range lines {
		if !t.shown.add(&l, t.resumeFrom()) {
			continue
		}
		fresh = append(fresh, l)
		t.lines++
		t.newest = max(t.newest, min(l.At, now))
		if t.lines <= t.Limit {
			t.first = min(t.first, l.At)
		}
	}
	if err := t.Show(fresh); err != nil {
		return 0, showError{err}
	}
	return len(fresh), nil
}

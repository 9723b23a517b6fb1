package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/valyala/fastjson"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/config"
)

// tailCmd is shale tail.
type tailCmd struct {
	Expr string `arg:"" name:"logql" help:"The lines to follow: a selector with filters and parsers."`

	URL    string          `name:"url" default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to follow; any with the Loki API."`
	Since  config.Duration `placeholder:"TIME" help:"First show the lines of this long before now. Default: show only new lines."`
	Limit  int             `default:"100" placeholder:"N" help:"With --since: maximum number of older lines."`
	Delay  config.Duration `placeholder:"TIME" help:"Hold lines back for this long (at most 5s), so that late lines appear in order."`
	Format string          `short:"o" enum:"table,raw,jsonl" default:"table" placeholder:"FORMAT" help:"Output: table (time, labels, line), raw (lines only) or jsonl."`
	Tenant string          `placeholder:"NAME" help:"Tenant to follow (X-Scope-OrgID)."`
}

// Help teaches the command by examples.
func (*tailCmd) Help() string {
	return `Follow the errors of one app until Ctrl-C:

    shale tail '{app="checkout"} |~ "(?i)error"'

Start with the last ten minutes, and print lines only, for another program to read:

    shale tail '{app="checkout"} |~ "(?i)error"' --since 10m -o raw | grep -c declined

If the output is read too slowly, the server drops lines. Standard error then counts the dropped lines of the followed
streams, before filters; it counts at most 1000 at a time.

If the connection breaks, tail reconnects and replays the lines that it missed. It cannot replay lines with times more
than 5s (plus --delay) before the last line shown, or more than an hour in the future. Standard error names the time
range that was replayed.`
}

// Waits between attempts to reach a server that has gone away.
const (
	tailBackoff    = 200 * time.Millisecond
	maxTailBackoff = 5 * time.Second
)

// Run shows lines until the process is told to end.
func (t *tailCmd) Run(ctx context.Context, p *process) error {
	base, err := serverURL(t.URL)
	switch {
	case err != nil:
		return usageError{err}
	case t.Delay.Std() < 0 || t.Delay.Std() > 5*time.Second:
		return usageError{fmt.Errorf("--delay: %s: want at most 5s", t.Delay)}
	case t.Limit < 1:
		return usageError{errors.New("--limit: want at least 1 line; without --since, tail shows only new lines")}
	}
	f := newFollower(t, base, p, time.Now())
	for wait := tailBackoff; ; wait = min(2*wait, maxTailBackoff) {
		begun, err := f.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // Ctrl-C is how one ends it
		case !f.reached:
			return err
		case errors.As(err, new(writeError)):
			return err
		}
		if begun {
			wait = tailBackoff
		}
		fmt.Fprintf(p.stderr, "shale: note: %v; reconnecting\n", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// writeError is an error of writing to standard output.
type writeError struct{ error }

// follower follows over several connections.
type follower struct {
	*tailCmd
	base    *url.URL
	p       *process
	out     *bufio.Writer
	reached bool // there has been a connection

	// What is needed to go on after a connection was lost, see tail_gap.go.
	start  int64 // the earliest time of interest, in Unix nanoseconds
	lines  int   // that were shown
	newest int64 // the latest time of them, none of which counts as later than when it was shown
	first  int64 // the earliest time of the first ones of them, as many as --limit
	shown  *client.Shown
	page   int // lines that the server gives at once
}

func newFollower(t *tailCmd, base *url.URL, p *process, now time.Time) *follower {
	return &follower{
		tailCmd: t, base: base, p: p, out: bufio.NewWriter(p.stdout), start: now.Add(-t.Since.Std()).UnixNano(),
		newest: math.MinInt64, first: math.MaxInt64, shown: client.NewShown(client.MaxShown), page: client.LinesPerPage,
	}
}

// maxFrameBytes bounds what a server can make this process keep: lines are at most 256 KB by default, 100 in
// a frame.
const maxFrameBytes = 128 << 20

// follow shows the lines of one connection, and before them those of the gap since the one before. It reports
// whether it came so far.
func (f *follower) follow(ctx context.Context) (begun bool, err error) {
	var g gap
	start, limit := f.start, f.Limit
	if f.reached {
		// Most of the gap is filled before there is a connection, so that lines that come need not wait for it.
		if err := g.fill(ctx, f); err != nil {
			return false, err
		}
		// Of the time between the last filling and the moment from which the server follows.
		start, limit = f.resumeFrom(), f.page
	}
	conn, err := f.dial(ctx, start, limit)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.CloseNow() }()
	if f.reached {
		if err := g.fill(ctx, f); err != nil {
			return false, err
		}
		g.filled(f)
	}
	f.reached = true
	conn.SetReadLimit(maxFrameBytes)
	var parser fastjson.Parser
	for {
		_, frame, err := conn.Read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				_ = conn.Close(websocket.StatusNormalClosure, "")
			}
			return true, fmt.Errorf("%s: %w", f.URL, err)
		}
		if err := f.frame(&parser, frame); err != nil {
			return true, err
		}
	}
}

// dial connects to the server.
func (f *follower) dial(ctx context.Context, start int64, limit int) (*websocket.Conn, error) {
	form := url.Values{"query": {f.Expr}, "start": {strconv.FormatInt(start, 10)}, "limit": {strconv.Itoa(limit)}}
	if d := f.Delay.Std(); d > 0 {
		form.Set("delay_for", strconv.Itoa(int((d+time.Second-1)/time.Second)))
	}
	header := http.Header{"User-Agent": {"shale/" + version}}
	if f.Tenant != "" {
		header.Set("X-Scope-OrgID", f.Tenant)
	}
	conn, resp, err := websocket.Dial(ctx, f.base.JoinPath("loki/api/v1/tail").String()+"?"+form.Encode(), &websocket.DialOptions{HTTPHeader: header})
	if err == nil {
		return conn, nil
	}
	if resp != nil && resp.Body != nil {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		if said := strings.TrimSpace(string(text)); said != "" {
			return nil, fmt.Errorf("%s: HTTP %d: %s", f.URL, resp.StatusCode, said)
		}
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err // without the URL, which is said, and the query
	}
	return nil, fmt.Errorf("connecting to %s: %w", f.URL, err)
}

// maxNamed is how many lines that were left out a frame names at most, of Shale as of Loki.
const maxNamed = 1000

// frame prints the lines of a frame.
func (f *follower) frame(parser *fastjson.Parser, frame []byte) error {
	v, err := parser.ParseBytes(frame)
	if err != nil {
		return fmt.Errorf("%s: the frame is not of the Loki API: %w", f.URL, err)
	}
	lines, err := client.ReadStreams(v.GetArray("streams"))
	if err != nil {
		return fmt.Errorf("%s: %w", f.URL, err)
	}
	client.SortLines(lines, true)
	if _, err := f.show(lines); err != nil {
		return err
	}
	if n := len(v.GetArray("dropped_entries")); n >= maxNamed {
		fmt.Fprintf(f.p.stderr, "shale: note: at least %d lines were dropped because the output is read too slowly\n", n)
	} else if n > 0 {
		fmt.Fprintf(f.p.stderr, "shale: note: %d lines were dropped because the output is read too slowly\n", n)
	}
	return nil
}

// show prints those lines that were not shown yet, and returns their number.
func (f *follower) show(lines []client.Line) (n int, err error) {
	now := time.Now().UnixNano()
	for i := range lines {
		l := &lines[i]
		if !f.shown.Add(l, f.resumeFrom()) {
			continue
		}
		if err := writeLine(f.out, l, f.Format); err != nil {
			return n, writeError{err}
		}
		n++
		f.lines++
		f.newest = max(f.newest, min(l.At, now))
		if f.lines <= f.Limit {
			f.first = min(f.first, l.At)
		}
	}
	if err := f.out.Flush(); err != nil {
		return n, writeError{err}
	}
	return n, nil
}

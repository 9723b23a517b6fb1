package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/valyala/fastjson"

	"github.com/shaledb/shale/internal/config"
)

// tailCmd is shale tail.
type tailCmd struct {
	Expr string `arg:"" name:"logql" help:"Which lines: a selector, filters, parsers."`

	URL    string          `name:"url" default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to ask; any that speaks Loki's API."`
	Since  config.Duration `placeholder:"TIME" help:"Show first what has come since so long ago. Without it: only what comes from now on."`
	Limit  int             `default:"100" placeholder:"N" help:"Lines of the time before at most."`
	Delay  config.Duration `placeholder:"TIME" help:"Let lines wait for others that come late, for up to 5s, so that they are in order."`
	Format string          `short:"o" enum:"table,raw,jsonl" default:"table" placeholder:"FORMAT" help:"table (time, labels, line), raw (lines as they are) or jsonl."`
	Tenant string          `placeholder:"NAME" help:"Tenant to ask as (X-Scope-OrgID)."`
}

// Help teaches the command by examples.
func (*tailCmd) Help() string {
	return `What one app says that is an error, from now on, until Ctrl-C:

    shale tail '{app="checkout"} |~ "(?i)error"'

The same with the last ten minutes before it, as lines only, for another program to read:

    shale tail '{app="checkout"} |~ "(?i)error"' --since 10m -o raw | grep -c declined

Whoever reads too slowly misses lines; how many is said on standard error. If the server goes away, tail asks it again until it is
back, and goes on from the last line that it has shown.`
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
	case t.Limit < 0:
		return usageError{errors.New("--limit: want a number of lines")}
	}
	from := time.Now().Add(-t.Since.Std()).UnixNano()
	f := &follower{tailCmd: t, base: base, p: p, out: bufio.NewWriter(p.stdout), next: from}
	for wait := tailBackoff; ; wait = min(2*wait, maxTailBackoff) {
		begun, err := f.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // Ctrl-C is how one ends it
		case !begun && f.lines == 0 && !f.reached:
			return err
		case errors.As(err, new(writeError)):
			return err
		}
		if begun {
			wait = tailBackoff
		}
		fmt.Fprintf(p.stderr, "shale: note: %v; asking again\n", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// writeError says that nobody reads any more what is written.
type writeError struct{ error }

// follower follows over several connections.
type follower struct {
	*tailCmd
	base    *url.URL
	p       *process
	out     *bufio.Writer
	next    int64 // the earliest time that has not been shown whole
	lines   int
	reached bool
}

// maxFrameBytes bounds what a server can make this process keep: lines are at most 256 KB by default, 100 in a frame.
const maxFrameBytes = 128 << 20

// follow shows the lines of one connection. It reports whether there was one.
func (f *follower) follow(ctx context.Context) (begun bool, err error) {
	form := url.Values{"query": {f.Expr}, "start": {strconv.FormatInt(f.next, 10)}, "limit": {strconv.Itoa(f.Limit)}}
	if d := f.Delay.Std(); d > 0 {
		form.Set("delay_for", strconv.Itoa(int((d+time.Second-1)/time.Second)))
	}
	header := http.Header{"User-Agent": {"shale/" + version}}
	if f.Tenant != "" {
		header.Set("X-Scope-OrgID", f.Tenant)
	}
	conn, resp, err := websocket.Dial(ctx, f.base.JoinPath("loki/api/v1/tail").String()+"?"+form.Encode(), &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		if resp != nil && resp.Body != nil {
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
			if said := strings.TrimSpace(string(text)); said != "" {
				return false, fmt.Errorf("%s answers HTTP %d: %s", f.URL, resp.StatusCode, said)
			}
		}
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err // without the URL, which is said, and the query
		}
		return false, fmt.Errorf("asking %s: %w", f.URL, err)
	}
	f.reached = true
	defer func() { _ = conn.CloseNow() }()
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
		if err := f.show(&parser, frame); err != nil {
			return true, err
		}
	}
}

// show prints the lines of a frame.
func (f *follower) show(parser *fastjson.Parser, frame []byte) error {
	v, err := parser.ParseBytes(frame)
	if err != nil {
		return fmt.Errorf("%s: a frame that is not of Loki's API: %w", f.URL, err)
	}
	lines, err := linesOf(v.GetArray("streams"))
	if err != nil {
		return fmt.Errorf("%s: %w", f.URL, err)
	}
	sortLines(lines, true)
	for i := range lines {
		if err := lines[i].write(f.out, f.Format); err != nil {
			return writeError{err}
		}
		f.lines++
		f.next = max(f.next, lines[i].at+1)
	}
	if err := f.out.Flush(); err != nil {
		return writeError{err}
	}
	if dropped := v.GetArray("dropped_entries"); len(dropped) > 0 {
		fmt.Fprintf(f.p.stderr, "shale: note: %d lines were left out: the reader is too slow\n", len(dropped))
	}
	return nil
}

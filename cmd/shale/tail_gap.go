package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/config"
)

// When a connection is lost, lines are shown again from a little before the last one that was shown: lines
// come late, and are not quite in order. Those that were shown already are known by their sums. The last one
// that was shown may itself be ahead of the clock, which says nothing of those that come after it, so it
// counts as being of the time when it was shown.

const (
	// gapSlack is how late lines may come to be found.
	gapSlack = 5 * time.Second
	// gapAhead is how far lines may be ahead of the clock to be found, as with those before a tail begins.
	gapAhead = time.Hour
	// gapPatience bounds the wait for one page.
	gapPatience = 2 * time.Minute
)

// resumeFrom returns the time from which lines are to be shown again if the connection is lost. It never goes
// back, so nothing that is before it need be remembered.
func (f *follower) resumeFrom() int64 {
	if f.lines == 0 {
		return f.start
	}
	from := f.newest
	if slack := int64(gapSlack + f.Delay.Std()); from > math.MinInt64+slack {
		from -= slack
	}
	earliest := f.start
	if f.lines >= f.Limit {
		earliest = max(earliest, f.first) // --limit has left out what was before
	}
	return max(from, earliest)
}

// gap is the time between two connections.
type gap struct {
	begun, failed bool
	from, to      int64 // the times of the lines that can be found
	lines         int   // that were shown of it
}

// fill shows what has come since the last line that was shown. It returns errors that pass; others it tells
// the user, and what they mean.
func (g *gap) fill(ctx context.Context, f *follower) error {
	from := f.resumeFrom()
	if !g.begun {
		g.begun, g.from = true, from
	}
	if g.failed {
		return nil
	}
	if f.shown.Forgot >= from {
		fmt.Fprintf(f.p.stderr, "shale: note: too many lines to remember: some from %s to %s may be shown twice\n", stamp(from), stamp(f.shown.Forgot))
	}
	f.shown.Expect()
	g.to = time.Now().Add(gapAhead).UnixNano()
	pages := &client.Pages{
		Server: &client.Server{URL: f.URL, Tenant: f.Tenant}, Base: f.base, Expr: f.Expr, Forward: true, From: from, To: g.to,
	}
	for !pages.Done {
		at := pages.From
		err := g.fillPage(ctx, f, pages)
		switch {
		case err == nil:
		case ctx.Err() != nil, errors.As(err, new(writeError)), passes(err):
			return err
		default:
			g.failed = true
			fmt.Fprintf(f.p.stderr, "shale: note: missed lines with times from %s on could not be replayed: %v\n", stamp(at), err)
			return nil
		}
	}
	if pages.Most > 0 {
		f.page = min(f.page, pages.Most)
	}
	return nil
}

// fillPage shows a page of the gap.
func (g *gap) fillPage(ctx context.Context, f *follower, pages *client.Pages) error {
	ctx, cancel := context.WithTimeoutCause(ctx, gapPatience, fmt.Errorf("no response within %s", config.Duration(gapPatience)))
	defer cancel()
	lines, err := pages.Next(ctx)
	if err != nil {
		return err
	}
	n, err := f.show(lines)
	g.lines += n
	return err
}

// filled ends the gap: what is known comes once more at most, from now on.
func (g *gap) filled(f *follower) {
	f.shown.Expect()
	if !g.failed {
		fmt.Fprintf(f.p.stderr, "shale: note: reconnected to %s: replayed %d missed lines with times from %s to %s\n",
			f.URL, g.lines, stamp(g.from), stamp(g.to))
	}
}

// passes reports whether an error may be gone the next time.
func passes(err error) bool {
	var refused *client.StatusError
	if errors.As(err, &refused) {
		return refused.Status == http.StatusTooManyRequests || refused.Status == http.StatusBadGateway || refused.Status == http.StatusServiceUnavailable
	}
	return !errors.As(err, new(client.UnusableError))
}

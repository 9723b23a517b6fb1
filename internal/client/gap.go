package client

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/model"
)

// After a connection breaks, lines are read again from a little before the last one that was shown, because
// lines come late and not quite in order. The sums of the lines shown tell which of them to leave out. A line
// ahead of the clock says nothing about later lines, so it counts with the time when it was shown.

const (
	// gapSlack is how late lines may come to be found.
	gapSlack = 5 * time.Second
	// gapAhead is how far lines may be ahead of the clock to be found, as with those before a tail begins.
	gapAhead = time.Hour
)

// resumeFrom returns the time from which lines are to be shown if the connection breaks. It never goes back,
// so the lines before it need not be remembered.
func (t *Tail) resumeFrom() int64 {
	if t.lines == 0 {
		return t.start
	}
	from := t.newest
	if slack := int64(gapSlack + t.Delay); from > math.MinInt64+slack {
		from -= slack
	}
	earliest := t.start
	if t.lines >= t.Limit {
		earliest = max(earliest, t.first) // the limit has left out all earlier lines
	}
	return max(from, earliest)
}

// gap is the time between two connections.
type gap struct {
	begun, failed bool
	from, to      int64 // the times of the lines that can be found
	lines         int   // that were shown of it
}

// fill shows the lines that have come since the last one that was shown. It returns errors that may pass, and
// tells the user about all others.
func (g *gap) fill(ctx context.Context, t *Tail) error {
	from := t.resumeFrom()
	if !g.begun {
		g.begun, g.from = true, from
	}
	if g.failed {
		return nil
	}
	if t.shown.forgot >= from {
		t.Note("too many lines to remember: some from %s to %s may be shown twice", stamp(from), stamp(t.shown.forgot))
	}
	t.shown.expect()
	g.to = time.Now().Add(gapAhead).UnixNano()
	pages := &Pages{Server: t.Server, Expr: t.Expr, Forward: true, From: from, To: g.to}
	for !pages.Done {
		at := pages.From
		lines, err := pages.Next(ctx)
		if err == nil {
			n, err := t.show(lines)
			g.lines += n
			if err != nil {
				return err
			}
			continue
		}
		if ctx.Err() != nil || errors.Is(err, model.ErrTransient) {
			return err
		}
		g.failed = true
		t.Note("missed lines with times from %s on could not be replayed: %v", stamp(at), err)
		return nil
	}
	if pages.Most > 0 {
		t.page = min(t.page, pages.Most)
	}
	return nil
}

// filled ends the gap: from now on, every line that was shown comes once more at most.
func (g *gap) filled(t *Tail) {
	t.shown.expect()
	if !g.failed {
		t.Note("reconnected to %s: replayed %d missed %s with times from %s to %s", t.Server.URL, g.lines, english.PluralWord(int(g.lines), "line", ""), stamp(g.from), stamp(g.to))
	}
}

func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z") }

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/config"
)

// tailCmd is shale tail.
type tailCmd struct {
	Expr string `arg:"" name:"logql" help:"The lines to follow: a selector with filters and parsers."`

	URL           string          `name:"url" default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to follow; any with the Loki API."`
	Since         config.Duration `placeholder:"TIME" help:"First show the lines of this long before now. Default: show only new lines."`
	Limit         int             `default:"100" placeholder:"N" help:"With --since: maximum number of older lines."`
	Delay         config.Duration `placeholder:"TIME" help:"Hold lines back for this long (at most 5s), so that late lines appear in order."`
	Format        string          `short:"o" enum:"table,raw,jsonl" default:"table" placeholder:"FORMAT" help:"Output: table (time, labels, line), raw (lines only) or jsonl."`
	Tenant        string          `placeholder:"NAME" help:"Tenant to follow (X-Scope-OrgID)."`
	client.Access `embed:""`
}

// Help teaches the command by examples.
func (*tailCmd) Help() string {
	return `Follow the errors of one app until Ctrl-C:

    shale tail '{app="checkout"} |~ "(?i)error"'

Start with the last ten minutes, and print lines only, for another program to read:

    shale tail '{app="checkout"} |~ "(?i)error"' --since 10m -o raw | grep -c declined

The server queues up to 10,000 lines for a tail and drops the lines that do not fit: after a large burst, or if the output
is read too slowly. Standard error then counts the dropped lines of the followed streams, before filters; it counts at
most 1000 at a time. The dropped lines are stored, so shale query --logs shows them.

If the connection breaks, tail reconnects and replays the lines that it missed. It cannot replay lines with times more
than 5s (plus --delay) before the last line shown, or more than an hour in the future. Standard error names the time
range that was replayed.`
}

// Run shows lines until the process is told to end.
func (t *tailCmd) Run(ctx context.Context, p *process) error {
	server, err := newServer(t.URL, t.Tenant, &t.Access)
	switch {
	case err != nil:
		return usageError{err}
	case t.Delay.Std() < 0 || t.Delay.Std() > 5*time.Second:
		return usageError{fmt.Errorf("--delay: %s: want at most 5s", t.Delay)}
	case t.Limit < 1:
		return usageError{errors.New("--limit: want at least 1 line; without --since, tail shows only new lines")}
	}
	server.Timeout = 2 * time.Minute // of the requests that replay missed lines
	now := time.Now()
	out := bufio.NewWriter(p.stdout)
	printer := linePrinter{out: out, format: t.Format}
	spoken := make(chan struct{}) // closed when a line comes
	var first int64               // the time of that line
	tail := client.Tail{
		Server: server, Expr: t.Expr, Start: now.Add(-t.Since.Std()), Limit: t.Limit, Delay: t.Delay.Std(),
		Show: func(lines []client.Line) error {
			before := printer.lines
			if before == 0 && len(lines) > 0 {
				close(spoken)
				first = lines[0].At
			}
			if err := printer.print(lines); err != nil {
				return err
			}
			// As long as all lines are of the past, --limit may have left out others.
			if before < t.Limit && printer.lines >= t.Limit && printer.last < now.UnixNano() {
				p.note("--limit %d is reached: there may be older lines, from %s to %s", t.Limit, localTime(now.Add(-t.Since.Std())), localTime(time.Unix(0, first)))
			}
			return out.Flush()
		},
		Note: p.note,
	}
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		select {
		case <-ctx.Done():
		case <-spoken:
		case <-time.After(patience):
			e := emptiness{index: client.Index{Server: server, Logs: true, From: now.Add(-time.Hour), To: now}, now: now, shifted: true, say: p.note}
			e.explainSilence(ctx, t.Expr)
		}
	})
	return tail.Run(ctx)
}

// patience is how long a tail may show nothing before it looks for a mistake in the selector.
const patience = 3 * time.Second

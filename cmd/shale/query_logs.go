package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/client"
)

// onlyWithLogs refuses flags that need --logs.
func (q *queryCmd) onlyWithLogs(p *process) error {
	for _, name := range []string{"limit", "forward"} {
		if slices.Contains(p.flagsSet, name) {
			return fmt.Errorf("--%s needs --logs", name)
		}
	}
	if q.Format == formatRaw || q.Format == formatJSONL {
		return fmt.Errorf("--format %s is for log lines; add --logs", q.Format)
	}
	return nil
}

// runLogs requests lines page by page and prints them.
func (q *queryCmd) runLogs(ctx context.Context, p *process) error {
	server, err := q.server()
	if err != nil {
		return usageError{err}
	}
	from, to, err := q.lookBack(time.Now())
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := q.deadline(ctx)
	defer cancel()
	pages := &client.Pages{Server: server, Expr: q.Expr, Forward: q.Forward, From: from, To: to, Left: q.Limit}
	if q.Format == "json" {
		body, _, err := pages.Request(ctx, q.Limit)
		if most := client.AllowedLines(err); most > 0 {
			return fmt.Errorf("--limit %d: -o json prints one response, and the server limits it to %d lines; use -o jsonl", q.Limit, most)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "%s\n", strings.TrimSpace(string(body)))
		return err
	}
	out := bufio.NewWriter(p.stdout)
	err = printPages(ctx, pages, &linePrinter{out: out, format: q.Format})
	// The lines before an error are shown, and the last one is whole.
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	return err
}

// printPages prints the lines of all pages.
func printPages(ctx context.Context, pages *client.Pages, printer *linePrinter) error {
	for !pages.Done {
		lines, err := pages.Next(ctx)
		if err != nil {
			return err
		}
		if err := printer.print(lines); err != nil {
			return err
		}
	}
	return nil
}

// lookBack returns the times to ask for, in Unix nanoseconds: from is included, to is not.
func (q *queryCmd) lookBack(now time.Time) (from, to int64, err error) {
	switch {
	case q.Time != "":
		return 0, 0, errors.New("--time is for PromQL; with --logs use --since, or --start and --end")
	case q.Step != 0:
		return 0, 0, errors.New("--step is for PromQL")
	case q.Stats:
		return 0, 0, errors.New("--stats is for PromQL; with --logs, -o json shows the statistics")
	case q.Format == "csv":
		return 0, 0, errors.New("--format csv is for samples; with --logs use table, raw, jsonl or json")
	case q.Limit < 0:
		return 0, 0, errors.New("--limit: want a number of lines, or 0 for all")
	case q.Limit == 0 && q.Format == "json":
		return 0, 0, errors.New("--limit 0: -o json prints one response, which the server limits; give a number or use -o jsonl")
	}
	return q.nanoseconds(now)
}

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/terminal"
)

// onlyForLines refuses flags that need a query for numbers.
func (q *queryCmd) onlyForLines() error {
	switch {
	case q.Time != "":
		return errors.New("--time is for numbers, and the query gives lines; use --since, or --start and --end")
	case q.Step != 0:
		return errors.New("--step is for numbers, and the query gives lines")
	case q.Format == formatCSV:
		return errors.New("--format csv is for numbers, and the query gives lines; use table, raw, jsonl or json")
	case q.Format == formatPlot:
		return errors.New("--format plot draws numbers, and the query gives lines; count them, such as count_over_time({app=\"web\"}[1m])")
	case q.Limit < 0:
		return errors.New("--limit: want a number of lines, or 0 for all")
	case q.Limit == 0 && q.Format == formatJSON:
		return errors.New("--limit 0: -o json prints one response, which the server limits; give a number or use -o jsonl")
	}
	return nil
}

// runLines requests lines page by page and prints them.
func (q *queryCmd) runLines(ctx context.Context, p *process) error {
	if err := q.onlyForLines(); err != nil {
		return usageError{err}
	}
	server, err := q.server()
	if err != nil {
		return usageError{err}
	}
	now := time.Now()
	start, end, err := q.bounds(now)
	if err == nil && start.Equal(end) {
		err = fmt.Errorf("--start and --end are both %s: the range is empty", localTime(start))
	}
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := q.deadline(ctx)
	defer cancel()
	pages := &client.Pages{
		Server: server, Expr: q.Expr, Forward: q.Forward, From: start.UnixNano(), To: end.UnixNano(), Left: q.Limit,
		Warn: func(text string) { p.note("%s", text) },
	}
	if q.Stats {
		pages.Cost = make(map[string]float64)
	}
	printer := &linePrinter{out: bufio.NewWriter(p.stdout), format: q.Format}
	if err := q.printLines(ctx, pages, printer); err != nil {
		return err
	}
	if q.Stats {
		if err := printCost(p, pages.Cost); err != nil {
			return err
		}
	}
	switch {
	case printer.lines == 0:
		q.emptiness(p, server, now, start, end).explainLines(ctx, q.Expr)
	case printer.lines == q.Limit:
		p.note("%s", q.cut(start, end, printer.last))
	}
	return nil
}

// printLines prints what a query gives: the response, or the lines of all pages.
func (q *queryCmd) printLines(ctx context.Context, pages *client.Pages, printer *linePrinter) error {
	if q.Format == formatJSON {
		body, lines, err := pages.Request(ctx, q.Limit)
		if most := client.AllowedLines(err); most > 0 {
			return fmt.Errorf("--limit %d: -o json prints one response, and the server limits it to %d lines; use -o jsonl", q.Limit, most)
		}
		if err != nil {
			return err
		}
		slices.SortFunc(lines, func(a, b client.Line) int { return cmp.Compare(a.At, b.At) })
		if !q.Forward {
			slices.Reverse(lines)
		}
		printer.count(lines)
		_, _ = fmt.Fprintf(printer.out, "%s\n", strings.TrimSpace(string(body)))
		return printer.out.Flush()
	}
	err := printPages(ctx, pages, printer)
	// The lines before an error are shown, and the last one is whole.
	if flushErr := printer.out.Flush(); err == nil {
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

// cut says that --limit ended the output at a line of the given time.
func (q *queryCmd) cut(start, end time.Time, last int64) string {
	kind := "older"
	if q.Forward {
		kind, start = "newer", time.Unix(0, last)
	} else {
		end = time.Unix(0, last)
	}
	return fmt.Sprintf("--limit %d is reached: there may be %s lines, from %s to %s; --limit 0 shows all", q.Limit, kind, localTime(start), localTime(end))
}

// printCost writes the figures of a query that are not 0, one a line, on standard error.
func printCost(p *process, cost map[string]float64) error {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(cost)) {
		if cost[name] != 0 {
			text = append(text, name+": "+strconv.FormatFloat(cost[name], 'f', -1, 64))
		}
	}
	if len(text) == 0 {
		text = []string{"the server sent no statistics"}
	}
	_, err := fmt.Fprintln(p.stderr, terminal.EscapeLines(strings.Join(text, "\n")))
	return err
}

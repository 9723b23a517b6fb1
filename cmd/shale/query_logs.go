package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fastjson"
)

// linesPerQuery is how many lines one query may ask of any server: Loki allows 5000 by default.
const linesPerQuery = 1000

// onlyWithLogs refuses flags that a query of samples does not know.
func (q *queryCmd) onlyWithLogs(p *process) error {
	for _, name := range []string{"since", "limit", "forward"} {
		if slices.Contains(p.flagsSet, name) {
			return fmt.Errorf("--%s is for --logs", name)
		}
	}
	if q.Format == formatRaw || q.Format == formatJSONL {
		return fmt.Errorf("--format: %s is a format of lines, which --logs asks for", q.Format)
	}
	return nil
}

// runLogs asks for lines page by page and prints them.
func (q *queryCmd) runLogs(ctx context.Context, p *process) error {
	base, from, to, err := q.lookBack(time.Now())
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, q.Timeout.Std())
	defer cancel()
	out := bufio.NewWriter(p.stdout)
	form := url.Values{"query": {q.Expr}, "direction": {"backward"}}
	if q.Forward {
		form.Set("direction", "forward")
	}
	var parser fastjson.Parser
	for left := q.Limit; from < to && (left > 0 || q.Limit == 0); {
		ask := linesPerQuery
		if q.Limit > 0 {
			ask = min(left, linesPerQuery)
		}
		form.Set("start", strconv.FormatInt(from, 10))
		form.Set("end", strconv.FormatInt(to, 10))
		form.Set("limit", strconv.Itoa(ask))
		body, err := q.ask(ctx, base.JoinPath("loki/api/v1/query_range").String(), form)
		if err != nil {
			return err
		}
		if q.Format == "json" {
			fmt.Fprintf(out, "%s\n", strings.TrimSpace(string(body)))
		}
		lines, err := parseLogLines(&parser, body)
		if err != nil {
			return fmt.Errorf("%s: %w", q.URL, err)
		}
		sortLines(lines, q.Forward)
		// A full page ends the answer, or goes on within the time of its last line: those of that time are asked for again.
		full := len(lines) == ask && (q.Limit == 0 || left > ask)
		if full {
			last := lines[len(lines)-1].at
			keep := slices.IndexFunc(lines, func(l logLine) bool { return l.at == last })
			if keep == 0 {
				return fmt.Errorf("more than %d lines have the time %d: narrow the query", ask, last)
			}
			lines = lines[:keep]
			if q.Forward {
				from = last
			} else {
				to = last + 1
			}
		}
		for i := range lines {
			if err := lines[i].write(out, q.Format); err != nil {
				return err
			}
		}
		if left -= len(lines); !full {
			break
		}
	}
	return out.Flush()
}

// lookBack returns the server and the times to ask for, in Unix nanoseconds: the first included, the second not.
func (q *queryCmd) lookBack(now time.Time) (base *url.URL, from, to int64, err error) {
	switch {
	case q.Time != "":
		return nil, 0, 0, errors.New("--time is for PromQL; lines have --since, or --start and --end")
	case q.Step != 0:
		return nil, 0, 0, errors.New("--step is for PromQL")
	case q.Stats:
		return nil, 0, 0, errors.New("--stats is for PromQL; -o json shows the statistics of lines")
	case q.Format == "csv":
		return nil, 0, 0, errors.New("--format: csv is a format of samples; lines have table, raw, jsonl and json")
	case q.Limit < 0:
		return nil, 0, 0, errors.New("--limit: want a number of lines, or 0 for all")
	}
	if base, err = serverURL(q.URL); err != nil {
		return nil, 0, 0, err
	}
	end := now
	if q.End != "" {
		if end, err = parseTime(q.End, now); err != nil {
			return nil, 0, 0, fmt.Errorf("--end: %w", err)
		}
	}
	start := end.Add(-q.Since.Std())
	if q.Start != "" {
		if start, err = parseTime(q.Start, now); err != nil {
			return nil, 0, 0, fmt.Errorf("--start: %w", err)
		}
	}
	if !start.Before(end) {
		return nil, 0, 0, fmt.Errorf("--start (%s) is not before --end (%s)", start.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	return base, start.UnixNano(), end.UnixNano(), nil
}

// serverURL reads the flag --url.
func serverURL(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("--url: %q is not a URL such as http://127.0.0.1:9480", text)
	}
	return base, nil
}

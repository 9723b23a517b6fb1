package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/terminal"
)

// listFlags are the flags of labels, series and volume, which show what there is.
type listFlags struct {
	serverFlags
	period
	Logs   bool   `help:"Look at streams of log lines instead of metrics."`
	Limit  int    `default:"100" placeholder:"N" help:"Maximum number of rows; 0: all."`
	Format string `short:"o" enum:"table,json,raw" default:"table" placeholder:"FORMAT" help:"Output: table, json (one array) or raw (one row a line, without a header)."`
}

// listing is a list that is being made.
type listing struct {
	listFlags
	p     *process
	index client.Index
	empty emptiness
}

// begin checks the flags. The context that it returns ends with --timeout.
func (f *listFlags) begin(ctx context.Context, p *process) (context.Context, context.CancelFunc, *listing, error) {
	server, err := f.server()
	now := time.Now()
	start, end, rangeErr := f.bounds(now)
	switch {
	case f.Limit < 0:
		err = errors.New("--limit: want a number of rows, or 0 for all")
	case err == nil:
		err = rangeErr
	}
	if err != nil {
		return nil, nil, nil, usageError{err}
	}
	l := &listing{listFlags: *f, p: p, index: client.Index{Server: server, Logs: f.Logs, From: start, To: end}}
	l.empty = emptiness{index: l.index, now: now, untilNow: f.End == "", say: p.note}
	ctx, cancel := f.deadline(ctx)
	return ctx, cancel, l, nil
}

// matchers parses a selector of the signal.
func (f *listFlags) matchers(selector string) ([]*labels.Matcher, error) {
	if !f.Logs {
		return parser.NewParser(parser.Options{}).ParseMetricSelector(selector)
	}
	ms, err := syntax.ParseMatchers(selector, false)
	if err != nil {
		return nil, err
	}
	return logMatchers(ms), nil
}

// most is the limit to ask for: one row more than --limit tells that there are others.
func (f *listFlags) most() int {
	if f.Limit == 0 {
		return 0
	}
	return f.Limit + 1
}

// shown is the number of rows of so many that --limit lets through.
func (f *listFlags) shown(rows int) int {
	if f.Limit == 0 {
		return rows
	}
	return min(rows, f.Limit)
}

// noteCut says that --limit left out rows of so many. Of most rows there may be still more.
func (l *listing) noteCut(rows int, what string) {
	switch {
	case l.shown(rows) == rows:
	case rows == l.most():
		l.p.note("--limit %d is reached: there are more %s; --limit 0 shows all", l.Limit, what)
	default:
		l.p.note("--limit %d is reached: there are %d %s; --limit 0 shows all", l.Limit, rows, what)
	}
}

// anyValue matches all series that have a label.
func anyValue(label string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchRegexp, label, ".+")
}

// printJSON prints a document on one line.
func printJSON(w io.Writer, document any) error {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		return err
	}
	_, err := w.Write(terminal.EscapeJSON(nil, []byte(text.String())))
	return err
}

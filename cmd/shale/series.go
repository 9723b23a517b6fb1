package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/shaledb/shale/internal/terminal"
)

// seriesCmd is shale series.
type seriesCmd struct {
	Selector string `arg:"" help:"Series to list, such as up{job=\"a\"}; with --logs streams, such as {app=\"web\"}."`
	listFlags
}

// Help teaches the command by examples.
func (*seriesCmd) Help() string {
	return `List the series of a metric that had samples in the last hour. Labels that all of them have are shown once:

    shale series up

List the streams of one app today, one selector a line:

    shale series --logs '{app="checkout"}' --start 2026-11-23 --limit 0 -o raw

Count the series of each job with jq:

    shale series '{job=~".+"}' --limit 0 -o json | jq 'group_by(.job)[] | {job: .[0].job, series: length}'`
}

// Run lists series.
func (c *seriesCmd) Run(ctx context.Context, p *process) error {
	ctx, cancel, l, err := c.begin(ctx, p)
	if err != nil {
		return err
	}
	defer cancel()
	series, err := l.index.Series(ctx, c.Selector, l.most())
	if err != nil {
		return err
	}
	type row struct {
		text   string
		labels map[string]string
	}
	rows := make([]row, 0, len(series))
	for _, labels := range series {
		rows = append(rows, row{terminal.Selector(labels, nil), labels})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.text, b.text) })
	texts, sets := make([]string, 0, len(rows)), make([]map[string]string, 0, len(rows))
	for _, r := range rows[:l.shown(len(rows))] {
		texts, sets = append(texts, r.text), append(sets, r.labels)
	}
	switch l.Format {
	case formatJSON:
		err = printJSON(p.stdout, sets)
	case formatTable:
		err = printSets(p.stdout, sets)
	default:
		err = l.printTexts("", texts)
	}
	if err != nil {
		return err
	}
	l.noteCut(len(rows), l.empty.rows())
	if len(rows) == 0 {
		selector, err := c.matchers(c.Selector)
		l.empty.explainList(ctx, l.empty.rows(), selector, err == nil)
	}
	return nil
}

// printSets prints label sets, after the labels that all of them have.
func printSets(w io.Writer, sets []map[string]string) error {
	common := commonOf(sets)
	out := bufio.NewWriter(w)
	if len(common.Labels) > 0 {
		fmt.Fprintln(out, commonLabels(common))
	}
	for _, labels := range sets {
		fmt.Fprintln(out, terminal.Selector(labels, common.Labels))
	}
	return out.Flush()
}

// commonOf returns the labels that several sets share; of one set, it returns none.
func commonOf(sets []map[string]string) *terminal.Common {
	var common terminal.Common
	if len(sets) > 1 {
		for _, labels := range sets {
			common.Narrow(labels)
		}
	}
	return &common
}

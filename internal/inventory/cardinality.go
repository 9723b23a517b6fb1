package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/terminal"
)

// Cardinality has the flags of `shale cardinality`.
type Cardinality struct {
	List    string `arg:"" optional:"" enum:"metrics,labels,values,active,unused" default:"metrics" help:"What to list: metrics by series, labels by values, values by series, active: the active series, and what creates series, or unused: what no query has asked for."`
	Match   string `placeholder:"SELECTOR" help:"Count only the series or streams that this selector selects."`
	Label   string `placeholder:"NAME" help:"With values: the label. Default: all labels."`
	Day     string `placeholder:"DAY" help:"Day, in UTC, on which the series had samples, such as 2026-11-26. Default: the series of now."`
	Against string `placeholder:"DAY" help:"Day to compare --day with. The rows have the greatest changes."`
	Days    int    `default:"1" placeholder:"N" help:"With active: days of created series, with today; at most 90."`
	Logs    bool   `help:"Look at streams of log lines instead of metrics."`
	Limit   int    `default:"20" placeholder:"N" help:"Maximum number of rows, at most 10000."`
	JSON    bool   `name:"json" help:"Print the data of the server as JSON."`
	Server
}

// Help teaches the command by examples.
func (*Cardinality) Help() string {
	return `Which metrics have most series?

    shale cardinality

Which labels have most values, and which values of one make most series of a job?

    shale cardinality labels
    shale cardinality values --label path --match '{job="web"}'

What has changed since yesterday?

    shale cardinality --day 2026-11-26 --against 2026-11-25

What creates series right now, and what did on each day of a week?

    shale cardinality active --days 7

What has no query asked for in 30 days, and what would dropping it save?

    shale cardinality unused`
}

// Run asks the server and prints a table.
func (c *Cardinality) Run(ctx context.Context, out io.Writer) error {
	server, ctx, cancel, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	form := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	for name, value := range map[string]string{"match[]": c.Match, "label": c.Label, "day": c.Day, "against": c.Against} {
		if value != "" {
			form.Set(name, value)
		}
	}
	if c.Logs {
		form.Set("signal", "logs")
	}
	var counts client.Counts
	var active client.Active
	var unused client.Unused
	var data json.RawMessage
	switch c.List {
	case "active":
		form.Set("days", strconv.Itoa(c.Days))
		data, err = server.Cardinality(ctx, c.List, form, &active)
	case "unused":
		data, err = server.Cardinality(ctx, c.List, form, &unused)
	default:
		data, err = server.Cardinality(ctx, c.List, form, &counts)
	}
	switch {
	case err != nil:
		return err
	case c.JSON:
		_, err := out.Write(append(terminal.EscapeJSON(nil, data), '\n'))
		return err
	case c.List == "unused":
		return printUnused(out, &unused)
	case c.List == "active":
		return c.printActive(out, &active)
	}
	return c.printCounts(out, &counts)
}

func (c *Cardinality) printCounts(out io.Writer, n *client.Counts) error {
	header := map[string][]string{
		"metrics": {"METRIC", "SERIES", "SHARE"}, "labels": {"LABEL", "VALUES", "SERIES", "BYTES"}, "values": {"VALUE", "SERIES", "SHARE"},
	}[c.List]
	if n.Before != nil {
		header = []string{header[0], "NOW", "BEFORE", "CHANGE"}
	}
	rows := [][]string{header}
	for i := range n.List {
		x := &n.List[i]
		name := string(terminal.Escape(nil, []byte(x.Name)))
		switch {
		case n.Before != nil:
			now := x.Series
			if x.Values != nil {
				now = *x.Values
			}
			rows = append(rows, []string{name, text(now), text(*x.Before), fmt.Sprintf("%+d", int64(now)-int64(*x.Before))})
		case x.Values != nil:
			rows = append(rows, []string{name, text(*x.Values), text(x.Series), text(*x.ValueBytes)})
		default:
			rows = append(rows, []string{name, text(x.Series), share(x.Series, n.Series)})
		}
	}
	if len(rows) > 1 {
		if err := terminal.Table(out, rows); err != nil {
			return err
		}
	}
	before := ""
	if n.Before != nil {
		before = ", " + text(*n.Before) + " before"
	}
	last := fmt.Sprintf("%d series%s; %d of %d %s\n", n.Series, before, len(n.List), n.Distinct, english.PluralWord(int(n.Distinct), strings.TrimSuffix(c.List, "s"), ""))
	if n.Undercount > 0 {
		last += fmt.Sprintf("the number of series of a row may be too low by %d\n", n.Undercount)
	}
	if n.DistinctError > 0 {
		last += fmt.Sprintf("numbers of values above 1024 have a standard error of %.1f %%\n", 100*n.DistinctError)
	}
	_, err := io.WriteString(out, last)
	return err
}

func (c *Cardinality) printActive(out io.Writer, a *client.Active) error {
	_, err := fmt.Fprintf(out, "%d active series\n%d created in the last %.0f s\n", a.Active, a.New.Series, a.New.Seconds)
	if err == nil {
		err = printCreations(out, &a.New)
	}
	for i := range a.Days {
		d := &a.Days[i]
		if err == nil {
			_, err = fmt.Fprintf(out, "\n%d created on %s\n", d.Series, d.Day)
		}
		if err == nil {
			err = printCreations(out, d)
		}
	}
	return err
}

func printCreations(out io.Writer, n *client.Creations) error {
	if len(n.List) == 0 {
		return nil
	}
	rows := [][]string{{"  NAME", "SERIES", "SHARE"}}
	for _, x := range n.List {
		rows = append(rows, []string{"  " + string(terminal.Escape(nil, []byte(x.Name))), text(x.Series), share(x.Series, n.Series)})
	}
	return terminal.Table(out, rows)
}

func text(n uint64) string { return strconv.FormatUint(n, 10) }

func share(n, of uint64) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(1, of))) }

package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	prommodel "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/progress"
	"github.com/shaledb/shale/internal/terminal"
)

// volumeCmd is shale volume.
type volumeCmd struct {
	Selector string `arg:"" optional:"" help:"Series to count, such as {job=\"a\"}; with --logs streams. Default: all that have the label of --by."`
	By       string `placeholder:"LABEL" help:"Label whose values to count by. Default: __name__, and with --logs service_name."`
	Sort     string `enum:"size,series,name" default:"size" placeholder:"ORDER" help:"Order of the rows: size (samples or bytes, largest first), series (or streams, most first) or name."`
	listFlags
}

// Help teaches the command by examples.
func (*volumeCmd) Help() string {
	return `Show which metrics had the most samples in the last hour, and how many series:

    shale volume

Show which apps log most since midnight of a day, in bytes, lines and streams:

    shale volume --logs --by app --start 2026-11-23

Show the hosts of one app with the most streams:

    shale volume --logs '{app="checkout"}' --by host --sort series --limit 10

Counting takes one query for each metric, or one index request for each value, so a long range or many values take
a while. Lines that are stored twice and not merged yet count twice.`
}

// volume is what one value of a label has.
type volume struct {
	value  string
	series int64
	rows   int64 // samples or lines
	bytes  int64 // of lines
}

const (
	// maxGroups bounds the requests of one shale volume.
	maxGroups = 10_000
	// volumeConcurrency hides the time that responses take, without taking all turns of the server.
	volumeConcurrency = 4
	// longVolume is the number of requests from which progress is shown.
	longVolume = 200
)

// Run counts and prints.
func (c *volumeCmd) Run(ctx context.Context, p *process) error {
	by := cmp.Or(c.By, prommodel.MetricNameLabel)
	if c.Logs {
		by = cmp.Or(c.By, "service_name")
	}
	selector := []*labels.Matcher{anyValue(by)}
	if c.Selector != "" {
		var err error
		if selector, err = c.matchers(c.Selector); err != nil {
			return usageError{fmt.Errorf("the selector: %w", err)}
		}
	}
	ctx, cancel, l, err := c.begin(ctx, p)
	if err != nil {
		return err
	}
	defer cancel()
	count := l.countSamples
	if c.Logs {
		count = l.countLines
	}
	volumes, err := count(ctx, selector, by)
	if err != nil {
		return err
	}
	c.order(volumes)
	if err := c.print(l, by, volumes[:l.shown(len(volumes))], total(volumes)); err != nil {
		return err
	}
	l.noteCut(len(volumes), "values of "+by)
	if len(volumes) == 0 {
		l.empty.explainList(ctx, l.empty.rows(), append(selector, anyValue(by)), true)
	}
	return nil
}

// countLines asks the index for the volume of each value of the label, and of the streams without it.
func (l *listing) countLines(ctx context.Context, selector []*labels.Matcher, by string) ([]volume, error) {
	values, err := l.index.Values(ctx, by, selectorText(selector), 0)
	if err != nil {
		return nil, err
	}
	volumes := make([]volume, len(values))
	err = l.each(ctx, "values of "+by, len(values), func(ctx context.Context, i int) error {
		one := append(slices.Clone(selector), labels.MustNewMatcher(labels.MatchEqual, by, values[i]))
		v, err := l.index.LineVolume(ctx, selectorText(one))
		volumes[i] = volume{values[i], v.Streams, v.Lines, v.Bytes}
		return err
	})
	if err != nil {
		return nil, err
	}
	v, err := l.index.LineVolume(ctx, selectorText(append(slices.Clone(selector), labels.MustNewMatcher(labels.MatchEqual, by, ""))))
	if v.Streams > 0 {
		volumes = append(volumes, volume{"", v.Streams, v.Lines, v.Bytes})
	}
	return volumes, err
}

// countSamples counts the samples of one metric after the other: a selector of several has series that are
// equal without the metric's name, which PromQL refuses to count.
func (l *listing) countSamples(ctx context.Context, selector []*labels.Matcher, by string) ([]volume, error) {
	names, err := l.index.Values(ctx, prommodel.MetricNameLabel, selectorText(selector), maxGroups+1)
	if err != nil {
		return nil, err
	}
	named := func(m *labels.Matcher) bool { return m.Name == prommodel.MetricNameLabel }
	selector = slices.DeleteFunc(slices.Clone(selector), named)
	byName := by == prommodel.MetricNameLabel
	grouped := strconv.Quote(by)
	if prommodel.LegacyValidation.IsValidLabelName(by) {
		grouped = by
	}
	counts := make([][2]map[string]int64, len(names))
	err = l.each(ctx, "metrics", len(names), func(ctx context.Context, i int) error {
		one := append([]*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, prommodel.MetricNameLabel, names[i])}, selector...)
		for j, operator := range []string{"count", "sum"} {
			expr := fmt.Sprintf("%s by (%s) (count_over_time(%s[%dms]))", operator, grouped, selectorText(one), max(1, l.index.To.Sub(l.index.From).Milliseconds()))
			found, err := l.index.Server.Query(ctx, expr, l.index.To.UnixMilli())
			if err != nil {
				return err
			}
			counts[i][j] = make(map[string]int64, len(found))
			for _, s := range found {
				value := s.Metric[by]
				if byName {
					value = names[i]
				}
				counts[i][j][value] = int64(math.Float64frombits(s.Value.Bits))
			}
		}
		return nil
	})
	sums := make(map[string]volume)
	for _, c := range counts {
		for value, series := range c[0] {
			v := sums[value]
			sums[value] = volume{value, v.series + series, v.rows + c[1][value], 0}
		}
	}
	return slices.Collect(maps.Values(sums)), err
}

// each runs ask for every index below n, several at a time, and shows the progress of many.
func (l *listing) each(ctx context.Context, what string, n int, ask func(ctx context.Context, i int) error) (err error) {
	if n > maxGroups {
		return fmt.Errorf("there are more than %d %s, and volume asks for each: narrow the selector", maxGroups, what)
	}
	// A busy server refuses some of many requests.
	l.index.Server.Retry = &client.Retry{Patience: 30 * time.Second}
	var done atomic.Int64
	run := func() {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(volumeConcurrency)
		for i := range n {
			g.Go(func() error {
				defer done.Add(1)
				return ask(ctx, i)
			})
		}
		err = g.Wait()
	}
	shown := progress.Progress{}
	if n >= longVolume {
		shown = l.p.progress()
	}
	detail := func() string { return fmt.Sprintf("%d of %d %s", done.Load(), n, what) }
	shown.During(progress.Meter{Name: "volume", Total: int64(n), Read: done.Load, Detail: detail}, run)
	return err
}

// order sorts by --sort, and by name what is equal.
func (c *volumeCmd) order(volumes []volume) {
	slices.SortFunc(volumes, func(a, b volume) int {
		switch c.Sort {
		case "size":
			return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(b.rows, a.rows), strings.Compare(a.value, b.value))
		case "series":
			return cmp.Or(cmp.Compare(b.series, a.series), strings.Compare(a.value, b.value))
		}
		return strings.Compare(a.value, b.value)
	})
}

func total(volumes []volume) (sum volume) {
	for _, v := range volumes {
		sum.series, sum.rows, sum.bytes = sum.series+v.series, sum.rows+v.rows, sum.bytes+v.bytes
	}
	return sum
}

// print prints volumes. The table shows their shares of the sum, which it has in its last row.
func (c *volumeCmd) print(l *listing, by string, volumes []volume, sum volume) error {
	switch l.Format {
	case formatJSON:
		return printVolumes(l.p.stdout, c.Logs, by, volumes)
	case formatRaw:
		out := bufio.NewWriter(l.p.stdout)
		for i := range volumes {
			fmt.Fprintln(out, volumes[i].value+"\t"+strings.Join(volumes[i].figures(c.Logs), "\t"))
		}
		return out.Flush()
	}
	if len(volumes) == 0 {
		return nil
	}
	share := func(v *volume) string {
		part, whole := v.rows, sum.rows
		if c.Logs {
			part, whole = v.bytes, sum.bytes
		}
		return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(1, whole)))
	}
	table := [][]string{{string(terminal.Escape(nil, []byte(by))), "SERIES", "SAMPLES", "SHARE"}}
	if c.Logs {
		table[0] = []string{table[0][0], "STREAMS", "LINES", "BYTES", "SHARE"}
	}
	for i := range volumes {
		value := string(terminal.Escape(nil, []byte(cmp.Or(volumes[i].value, "(none)"))))
		table = append(table, slices.Concat([]string{value}, volumes[i].figures(c.Logs), []string{share(&volumes[i])}))
	}
	table = append(table, slices.Concat([]string{"total"}, sum.figures(c.Logs), []string{share(&sum)}))
	return terminal.Table(l.p.stdout, table)
}

// figures returns the numbers of a row.
func (v *volume) figures(logs bool) []string {
	out := []string{strconv.FormatInt(v.series, 10), strconv.FormatInt(v.rows, 10)}
	if logs {
		out = append(out, strconv.FormatInt(v.bytes, 10))
	}
	return out
}

// printVolumes prints volumes as JSON.
func printVolumes(w io.Writer, logs bool, by string, volumes []volume) error {
	type lines struct {
		Label   string `json:"label"`
		Value   string `json:"value"`
		Streams int64  `json:"streams"`
		Lines   int64  `json:"lines"`
		Bytes   int64  `json:"bytes"`
	}
	type samples struct {
		Label   string `json:"label"`
		Value   string `json:"value"`
		Series  int64  `json:"series"`
		Samples int64  `json:"samples"`
	}
	all := make([]any, 0, len(volumes))
	for _, v := range volumes {
		if logs {
			all = append(all, lines{by, v.value, v.series, v.rows, v.bytes})
		} else {
			all = append(all, samples{by, v.value, v.series, v.rows})
		}
	}
	return printJSON(w, all)
}

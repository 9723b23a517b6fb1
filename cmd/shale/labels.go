package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/terminal"
)

// labelsCmd is shale labels.
type labelsCmd struct {
	Name  string `arg:"" optional:"" help:"Label whose values to list. Default: list the names of all labels."`
	Match string `placeholder:"SELECTOR" help:"List only labels of the series or streams that this selector selects."`
	listFlags
}

// Help teaches the command by examples.
func (*labelsCmd) Help() string {
	return `List the names of the labels that metrics had in the last hour, and the names of the metrics:

    shale labels
    shale labels __name__ --limit 0

List the apps that logged today, for a script:

    shale labels app --logs --start 2026-11-23 -o raw

List the hosts of one app:

    shale labels host --logs --match '{app="checkout"}' --since 6h`
}

// Run lists names or values.
func (c *labelsCmd) Run(ctx context.Context, p *process) error {
	ctx, cancel, l, err := c.begin(ctx, p)
	if err != nil {
		return err
	}
	defer cancel()
	what, texts := "labels", []string(nil)
	if c.Name == "" {
		texts, err = l.index.Names(ctx, c.Match, l.most())
	} else {
		what = "values"
		texts, err = l.index.Values(ctx, c.Name, c.Match, l.most())
	}
	if err != nil {
		return err
	}
	if err := l.printTexts(strings.ToUpper(strings.TrimSuffix(what, "s")), texts[:l.shown(len(texts))]); err != nil {
		return err
	}
	l.noteCut(len(texts), what)
	if len(texts) == 0 {
		selector, err := c.selector()
		l.empty.explainList(ctx, what, selector, err == nil)
	}
	return nil
}

// selector returns the matchers of all series of interest.
func (c *labelsCmd) selector() (selector []*labels.Matcher, err error) {
	if c.Match != "" {
		if selector, err = c.matchers(c.Match); err != nil {
			return nil, err
		}
	}
	if c.Name != "" {
		selector = append(selector, anyValue(c.Name))
	}
	return selector, nil
}

// printTexts prints a list of texts.
func (l *listing) printTexts(header string, texts []string) error {
	if l.Format == formatJSON {
		return printJSON(l.p.stdout, append([]string{}, texts...))
	}
	out := bufio.NewWriter(l.p.stdout)
	if l.Format == formatTable && len(texts) > 0 {
		fmt.Fprintln(out, header)
	}
	for _, text := range texts {
		if l.Format == formatTable {
			text = string(terminal.Escape(nil, []byte(text)))
		}
		fmt.Fprintln(out, text)
	}
	return out.Flush()
}

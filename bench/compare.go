package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/shaledb/shale/bench/result"
)

// compareCmd is bench compare.
type compareCmd struct {
	Base    string   `default:"shale-base" help:"System to compare with."`
	Head    string   `default:"shale" help:"System to compare."`
	Out     string   `type:"path" placeholder:"DIR" help:"Folder for the input of benchstat, as <system>.txt. Default: it is not kept."`
	Results []string `arg:"" type:"existingfile" help:"Result files of bench run."`
}

// Help returns examples.
func (*compareCmd) Help() string {
	return `What has changed since the commit that was given as --base?

    go run ./bench compare bench-results/*.jsonl

How does Shale stand to VictoriaMetrics, with the spread of the runs?

    go run ./bench compare --base victoriametrics bench-results/*.jsonl`
}

// Run writes both systems as Go benchmarks and calls benchstat.
func (c *compareCmd) Run(ctx context.Context, out *streams) (err error) {
	records, err := result.Load(c.Results...)
	if err != nil {
		return err
	}
	dir := c.Out
	if dir == "" {
		if dir, err = os.MkdirTemp("", "shale-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	var files []string
	for _, name := range []string{c.Base, c.Head} {
		var text bytes.Buffer
		if err := result.WriteGo(&text, records, name, inTables); err != nil {
			return err
		}
		if text.Len() == 0 {
			return fmt.Errorf("the results have no run of %s", name)
		}
		file := filepath.Join(dir, name+".txt")
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			return err
		}
		files = append(files, name+"="+file) // benchstat shows the name
	}
	return stat(ctx, out, files...)
}

// inTables reports whether the table of a load has the figure.
func inTables(name, figure string) bool {
	for _, l := range loads() {
		if l.name == name {
			return slices.Contains(l.columns, figure)
		}
	}
	return slices.Contains([]string{"first-s", "p50-s", "cpu-s"}, figure) // of a query
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/bench/proc"
	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
)

// runCmd is bench run.
type runCmd struct {
	Loads      []string      `help:"Loads to run, in this order; bench list shows them. Default: all except the long ones."`
	Runs       int           `default:"6" help:"Runs of each load against each system; the systems take turns."`
	Duration   time.Duration `default:"60s" help:"Duration of loads that have no natural end."`
	Soak       time.Duration `default:"2h" help:"Duration of the load soak."`
	Scale      float64       `default:"1" help:"Share of the series of a load to use, for trials."`
	Quiet      time.Duration `default:"12s" help:"How long a server must be idle to count as settled; Shale flushes what is older than 10s."`
	Settle     time.Duration `default:"3m" help:"Longest wait for a server to settle."`
	Queries    int           `default:"20" help:"Number of times that each query is sent."`
	Memory     string        `default:"1GiB" help:"Memory budget of Shale (its --memory). Loads that measure memory set their own."`
	Shale      string        `type:"path" placeholder:"PATH" help:"Binary of Shale. Default: a new build of this tree."`
	ShaleFlags []string      `sep:"none" placeholder:"FLAG" help:"Further flag for shale serve, such as --shale-flags=--log.level=debug; may be repeated."`
	Base       string        `placeholder:"REF" help:"Commit to compare with; built in a temporary work tree."`
	Victoria   string        `type:"path" placeholder:"PATH" help:"Binary of VictoriaMetrics, single node."`
	Prometheus string        `type:"path" placeholder:"PATH" help:"Binary of Prometheus."`
	Loki       string        `type:"path" placeholder:"PATH" help:"Binary of Loki, run as one process (-target=all)."`
	VLogs      string        `name:"victorialogs" type:"path" placeholder:"PATH" help:"Binary of VictoriaLogs, single node."`
	S3         string        `name:"s3" type:"existingfile" placeholder:"PATH" help:"Binary of versitygw, an S3 server, for the load requests-s3."`
	LogsGB     float64       `name:"logs-gb" default:"1" help:"Gigabytes (10^9 bytes) of lines for the loads of logs."`
	Only       []string      `help:"Systems to run: shale, shale-base, victoriametrics, prometheus, loki, victorialogs. Default: all that are given."`
	Out        string        `default:"bench-results" type:"path" help:"Folder for results, a file for each call."`
	Work       string        `type:"path" placeholder:"DIR" help:"Folder for data, on the disk to measure; bench removes its data. Default: the system's folder for temporary files."`
}

// Help returns examples.
func (*runCmd) Help() string {
	return `Compare this tree with VictoriaMetrics: all usual loads, 6 runs of 60 s each in turn:

    go run ./bench run --victoria /path/to/victoria-metrics

Measure the effect of a change on remote write:

    go run ./bench run --base main --loads rw1-new,rw1-known
    go run ./bench compare bench-results/*.jsonl

Compare with Loki and VictoriaLogs, 10 GB of log lines:

    go run ./bench run --loads logs-ingest,logs-queries --logs-gb 10 --runs 1 --loki /path/to/loki --victorialogs /path/to/victoria-logs

Compare metric queries over a gigabyte of lines; their results must agree:

    go run ./bench run --loads logs-metrics,logs-metrics-exploded --runs 1 --loki /path/to/loki --victorialogs /path/to/victoria-logs

Try it with a hundredth of the series, for a few seconds:

    go run ./bench run --runs 1 --scale 0.01 --duration 2s --quiet 1s --settle 5s --queries 3

Servers listen on free loopback ports, and their data is removed. Ctrl-C ends all of them. Stop other
programs on the machine: CPU time per sample tolerates them, rates do not.`
}

// Run runs the loads.
func (c *runCmd) Run(ctx context.Context, out *streams) (err error) {
	chosen, err := choose(c.Loads)
	if err != nil {
		return err
	}
	if c.Runs < 1 || c.Duration <= 0 || c.Soak <= 0 || c.Scale <= 0 || c.Quiet <= 0 || c.Queries < 1 || c.LogsGB <= 0 {
		return errors.New("--runs, --duration, --soak, --scale, --quiet, --queries and --logs-gb must be above 0")
	}
	work, err := os.MkdirTemp(c.Work, "shale-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	systems, s, err := c.prepare(ctx, work, chosen, out.stderr)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	file := filepath.Join(c.Out, time.Now().UTC().Format("20060102T150405")+".jsonl")
	machine := proc.ThisMachine(work)
	fmt.Fprintf(out.stderr, "on %s\n", machine)
	for _, sys := range systems {
		fmt.Fprintf(out.stderr, "%s: %s\n", sys.Name, sys.Version)
	}
	failed := 0
	total := planned(chosen, systems) * c.Runs
	n := 0
	for _, l := range chosen {
		for run := range c.Runs {
			for _, sys := range systems {
				if !l.fits(&sys) {
					continue
				}
				n++
				records := one(ctx, l, sys, run, s, work, machine)
				if ctx.Err() != nil {
					return fmt.Errorf("interrupted; what was measured before is in %s", file)
				}
				if err := result.Append(file, records...); err != nil {
					return err
				}
				fmt.Fprintf(out.stderr, "[%d/%d] %s\n", n, total, describe(&records[0], l.columns))
				for i := range records {
					if i > 0 {
						fmt.Fprintf(out.stderr, "    %s\n", describe(&records[i], []string{"result-lines", "result-points", "cold-s", "first-s", "p50-s", "p99-s", "cpu-s", "scanned-lines", "pages-read", "bucket-requests"}))
					}
					if records[i].Error != "" {
						failed++
					}
				}
			}
		}
	}
	if err := summary(out.stdout, chosen, file); err != nil {
		return err
	}
	fmt.Fprintf(out.stderr, "results are in %s\n", file)
	if failed > 0 {
		return fmt.Errorf("%d of %d runs failed", failed, n)
	}
	return nil
}

func planned(chosen []*load, systems []system.System) (n int) {
	for _, l := range chosen {
		for _, sys := range systems {
			if l.fits(&sys) {
				n++
			}
		}
	}
	return n
}

// prepare builds Shale and looks at the given binaries.
func (c *runCmd) prepare(ctx context.Context, work string, chosen []*load, log io.Writer) (systems []system.System, s settings, err error) {
	s = settings{
		Duration: c.Duration, Soak: c.Soak, Scale: c.Scale, Quiet: c.Quiet, Settle: c.Settle, Queries: c.Queries, Memory: c.Memory, LogsGB: c.LogsGB, S3: c.S3, Work: work, Log: log,
		agreed: &agreement{},
	}
	shale := c.Shale
	if shale == "" {
		shale = filepath.Join(work, thisTree)
		fmt.Fprintln(log, "building this tree")
		if err := c.buildThis(ctx, &s, chosen, shale); err != nil {
			return nil, s, err
		}
	}
	s.Loader = shale
	base := ""
	if c.Base != "" {
		fmt.Fprintf(log, "building %s\n", c.Base)
		base = filepath.Join(work, baseTree)
		if err := withBase(ctx, c.Base, work, func(tree string) error { return build(ctx, tree, base, shaleProgram) }); err != nil {
			return nil, s, err
		}
	}
	for _, g := range []struct {
		name   string
		kind   system.Kind
		binary string
		flags  []string
	}{
		{thisTree, system.Shale, shale, c.ShaleFlags}, {baseTree, system.Shale, base, c.ShaleFlags},
		{"victoriametrics", system.VictoriaMetrics, c.Victoria, nil}, {"prometheus", system.Prometheus, c.Prometheus, nil},
		{"loki", system.Loki, c.Loki, nil}, {"victorialogs", system.VictoriaLogs, c.VLogs, nil},
	} {
		if g.binary == "" {
			continue
		}
		sys, err := system.New(ctx, g.name, g.kind, g.binary, g.flags)
		if err != nil {
			return nil, s, err
		}
		if g.kind == system.Prometheus {
			s.Feeder = &sys
		}
		if c.wants(g.name) {
			systems = append(systems, sys)
		}
	}
	if len(systems) == 0 {
		return nil, s, fmt.Errorf("no system is left of --only %s", strings.Join(c.Only, ","))
	}
	return systems, s, nil
}

// buildThis builds this tree, and the slow server if a load needs it.
func (c *runCmd) buildThis(ctx context.Context, s *settings, chosen []*load, shale string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	if err := build(ctx, root, shale, shaleProgram); err != nil {
		return err
	}
	needsSlow := func(l *load) bool {
		return slices.Contains([]string{slowSyncLoad, slowSyncNewLoad, queriesLoad}, l.name)
	}
	if !slices.ContainsFunc(chosen, needsSlow) {
		return nil
	}
	s.Slow = shale + "-slow"
	return build(ctx, root, s.Slow, slowProgram)
}

func (c *runCmd) wants(name string) bool {
	for _, o := range c.Only {
		if o == name {
			return true
		}
	}
	return len(c.Only) == 0
}

// one runs a load against a system once.
func one(ctx context.Context, l *load, sys system.System, run int, s settings, work string, machine proc.Machine) []result.Record {
	rec := result.Record{Load: l.name, System: sys.Name, Version: sys.Version, Run: run, Began: time.Now().UTC(), Machine: machine, Seconds: s.Duration.Seconds()}
	if s.Scale != 1 {
		rec.Scale = s.Scale
		rec.Note("a trial with %g of the series", s.Scale)
	}
	dir, err := os.MkdirTemp(work, l.name+"-")
	t := &trial{settings: s, sys: sys, rec: &rec, dir: dir}
	if err == nil {
		err = errors.Join(l.run(ctx, t), os.RemoveAll(dir))
	}
	if err != nil {
		rec.Error = err.Error()
	}
	return append([]result.Record{rec}, t.extra...)
}

// describe returns the figures of a run in a line.
func describe(r *result.Record, columns []string) string {
	text := fmt.Sprintf("%s, %s, run %d: ", r.Load, r.System, r.Run+1)
	if r.Error != "" {
		return text + "FAILED: " + r.Error
	}
	var parts []string
	for _, c := range columns {
		if v, ok := r.Values[c]; ok {
			parts = append(parts, result.Describe(c, v))
		}
	}
	return text + strings.Join(parts, ", ")
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/bench/proc"
	"github.com/shaledb/shale/bench/system"
	"github.com/shaledb/shale/internal/config"
)

// pressureFlags are the flags of the commands memory and mix.
type pressureFlags struct {
	Shale      []string `type:"path" placeholder:"PATH" help:"Binaries of Shale; may be repeated, to compare them. Default: a new build of this tree."`
	ShaleFlags []string `sep:"none" placeholder:"FLAG" help:"Further flag for shale serve; may be repeated."`
	Scale      float64  `default:"1" help:"Share of the data to use, for trials."`
	Work       string   `type:"path" placeholder:"DIR" help:"Folder for data; bench removes its data. Default: the system's folder for temporary files."`
}

// memoryCmd is bench memory.
type memoryCmd struct {
	pressureFlags `embed:""`
	Prometheus    string        `type:"path" placeholder:"PATH" help:"Binary of Prometheus, for the queries of metrics."`
	Memory        []string      `default:"256MiB,1GiB" help:"Budgets of Shale (its --memory)."`
	Clients       []int         `default:"1,32" help:"Numbers of clients, each of which sends a query after the other."`
	Storm         []string      `default:"no,yes" enum:"no,yes" help:"Without and with a storm of new series."`
	Queries       []string      `placeholder:"TEXT" help:"Only the queries whose names contain one of the texts."`
	Cell          time.Duration `default:"8s" help:"How long the clients of a cell send queries. The cell ends with their last response."`
}

// Help returns examples.
func (*memoryCmd) Help() string {
	return `Measure the peak of memory of each query, at each budget, with and without new series:

    go run ./bench memory --prometheus /path/to/prometheus

Compare two binaries in one cell:

    go run ./bench memory --shale /tmp/base --shale /tmp/head --memory 256MiB --clients 32 --storm yes --queries quantile`
}

// systems returns the systems to run, and builds this tree if no binary is given.
func (f *pressureFlags) systems(ctx context.Context, work string, log io.Writer) (systems []system.System, s settings, err error) {
	s = settings{Scale: f.Scale, Work: work, Log: log}
	binaries := f.Shale
	if len(binaries) == 0 {
		root, err := moduleRoot(ctx)
		if err != nil {
			return nil, s, err
		}
		binaries = []string{filepath.Join(work, thisTree)}
		fmt.Fprintln(log, "building this tree")
		if err := build(ctx, root, binaries[0], shaleProgram); err != nil {
			return nil, s, err
		}
	}
	s.Loader = binaries[0]
	for _, b := range binaries {
		sys, err := system.New(ctx, filepath.Base(b), system.Shale, b, f.ShaleFlags)
		if err != nil {
			return nil, s, err
		}
		systems = append(systems, sys)
	}
	return systems, s, nil
}

// inWork calls do with a temporary folder.
func (f *pressureFlags) inWork(do func(work string) error) error {
	work, err := os.MkdirTemp(f.Work, "shale-bench-")
	if err != nil {
		return err
	}
	return errors.Join(do(work), os.RemoveAll(work))
}

// Run prints the table.
func (c *memoryCmd) Run(ctx context.Context, out *streams) error {
	return c.inWork(func(work string) error {
		systems, s, err := c.systems(ctx, work, out.stderr)
		if err != nil {
			return err
		}
		if c.Prometheus != "" {
			sys, err := system.New(ctx, "prometheus", system.Prometheus, c.Prometheus, nil)
			if err != nil {
				return err
			}
			systems = append(systems, sys)
		}
		var cells []cell
		for i, sys := range systems {
			budgets := c.Memory
			if sys.Kind != system.Shale {
				budgets = []string{""}
			}
			for _, memory := range budgets {
				dir, err := os.MkdirTemp(work, fmt.Sprintf("memory-%d-", i))
				if err != nil {
					return err
				}
				some, err := c.server(ctx, s, sys, dir, memory)
				cells = append(cells, some...)
				if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
					return errors.Join(err, writeCells(out.stdout, cells))
				}
			}
		}
		if err := writeCells(out.stdout, cells); err != nil {
			return err
		}
		return judge(cells)
	})
}

// cell is a line of the table.
type cell struct {
	system, memory, query string
	clients               int
	storm                 string
	bound, peak           int64 // bound 0: none
	got                   responses
	seconds               float64
}

func (c *cell) fits() bool { return c.bound == 0 || c.peak <= c.bound }

// judge returns an error if a cell is over its bound or has a response that no client may get.
func judge(cells []cell) error {
	bad := slices.DeleteFunc(cells, func(c cell) bool { return c.fits() && c.got.err() == nil })
	if len(bad) == 0 {
		return nil
	}
	text := fmt.Errorf("%d cells are over their bound, or have a wrong response or one that was cut, such as %s", len(bad), bad[0].row())
	return errors.Join(text, bad[0].got.err())
}

// boundOf is what a server may take with a budget: docs/operations.md.
func boundOf(memory string) (int64, error) {
	var size config.Size
	if memory == "" {
		return 0, nil
	}
	if err := size.UnmarshalText([]byte(memory)); err != nil {
		return 0, err
	}
	return int64(size)*115/100 + 64<<20, nil
}

// server measures all cells of one server.
func (c *memoryCmd) server(ctx context.Context, s settings, sys system.System, dir, memory string) (cells []cell, err error) {
	bound, err := boundOf(memory)
	if err != nil {
		return nil, err
	}
	p, err := startPressure(ctx, s, sys, dir, memory)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.srv.Alive(), p.srv.Stop()) }()
	seed := 1000
	for _, storm := range c.Storm {
		stormy, end := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if storm == "yes" {
				p.storm(stormy, &seed)
			}
		}()
		for _, q := range heavyShapes() {
			if q.isLogs() && !sys.Speaks("logs") || !c.wants(q.name) {
				continue
			}
			for _, clients := range c.Clients {
				one := cell{system: sys.Name, memory: memory, query: q.name, clients: clients, storm: storm, bound: bound}
				if err = c.measure(ctx, p, q, &one); err != nil {
					break
				}
				cells = append(cells, one)
				fmt.Fprintln(s.Log, one.row())
			}
		}
		end()
		<-ended
		if err = errors.Join(err, ctx.Err()); err != nil {
			return cells, err
		}
	}
	return cells, nil
}

func (c *memoryCmd) wants(name string) bool {
	return len(c.Queries) == 0 || slices.ContainsFunc(c.Queries, func(text string) bool { return strings.Contains(name, text) })
}

func (c *memoryCmd) measure(ctx context.Context, p *pressure, q shape, one *cell) error {
	if err := errors.Join(p.idle(ctx), proc.ClearPeak(p.srv.PID)); err != nil {
		return err
	}
	began := time.Now()
	for _, got := range p.crowd(ctx, c.Cell, one.clients, 0, func(int) shape { return q }) {
		one.got.add(got)
	}
	one.seconds = time.Since(began).Seconds()
	if err := p.srv.Alive(); err != nil {
		return err
	}
	u, err := p.srv.Usage()
	one.peak = u.Peak
	return err
}

func (c *cell) row() string {
	bound, fits := "", ""
	if c.bound > 0 {
		bound, fits = mebibytes(c.bound), "yes"
	}
	if !c.fits() {
		fits = "**no**"
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %s | %s | %s | %s | %d | %d | %d | %s | %.1f | %s | %s |", c.system, c.memory, c.query, c.clients, c.storm, bound, mebibytes(c.peak), fits,
		c.got.codes[http.StatusOK], c.got.codes[http.StatusServiceUnavailable], c.got.cut, c.got.others(), float64(len(c.got.took))/c.seconds, c.got.quantile(0.5), c.got.quantile(0.99))
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

func writeCells(out io.Writer, cells []cell) error {
	var sb strings.Builder
	sb.WriteString("| system | --memory | query | clients | storm | bound | peak RSS | inside | 200 | 503 | cut | other | 200/s | p50 | p99 |\n|" + strings.Repeat("---|", 15) + "\n")
	for i := range cells {
		sb.WriteString(cells[i].row() + "\n")
	}
	_, err := io.WriteString(out, sb.String())
	return err
}

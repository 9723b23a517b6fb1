package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/bench/result"
)

// mixCmd is bench mix.
type mixCmd struct {
	pressureFlags `embed:""`
	Memory        string        `default:"512MiB" help:"Budget of Shale (its --memory)."`
	Clients       int           `default:"200" help:"Number of clients. Three of five send light queries, the others heavy ones."`
	Duration      time.Duration `default:"5m" help:"How long to measure."`
	Pause         time.Duration `default:"1s" help:"Average pause of a client between a response and its next query."`
}

// Help returns an example.
func (*mixCmd) Help() string {
	return `Send light and heavy queries of metrics and logs from 200 clients, while samples and lines are written:

    go run ./bench mix

It fails if a response is cut, or is 5xx but not 503 with Retry-After, or if the server takes more memory than it may.`
}

// Run prints the table.
func (c *mixCmd) Run(ctx context.Context, out *streams) error {
	return c.inWork(func(work string) error {
		systems, s, err := c.systems(ctx, work, out.stderr)
		if err != nil {
			return err
		}
		bound, err := boundOf(c.Memory)
		if err != nil {
			return err
		}
		var errs []error
		for _, sys := range systems {
			dir := filepath.Join(work, "mix")
			if err := os.Mkdir(dir, 0o755); err != nil {
				return err
			}
			p, err := startPressure(ctx, s, sys, dir, c.Memory)
			if err != nil {
				return err
			}
			err = c.measure(ctx, p, bound, out.stdout)
			errs = append(errs, err, p.srv.Alive(), p.srv.Stop(), os.RemoveAll(dir))
		}
		return errors.Join(errs...)
	})
}

func (c *mixCmd) measure(ctx context.Context, p *pressure, bound int64, out io.Writer) error {
	var writing sync.WaitGroup
	writing.Go(func() {
		c.write(ctx, p, "remote-write", "--url", p.srv.WriteURL(), "--name", "mix", "--rate", "20000", "--series-interval", "1m")
	})
	writing.Go(func() { c.write(ctx, p, "logs", "--url", p.srv.PushURL(), "--seed", "2", "--rate", "1") })
	light, heavy := lightShapes(), heavyShapes()
	got := p.crowd(ctx, c.Duration, c.Clients, c.Pause, func(client int) shape {
		if client%5 < 3 {
			return light[client/5%len(light)]
		}
		return heavy[client/5%len(heavy)]
	})
	writing.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	u, err := p.srv.Usage()
	if err != nil {
		return err
	}
	var sb strings.Builder
	sb.WriteString("| queries | query | 200 | 503 | cut | other | p50 | p99 |\n|" + strings.Repeat("---|", 8) + "\n")
	every := new(responses)
	for _, kind := range []struct {
		name   string
		shapes []shape
	}{{"light", light}, {"heavy", heavy}} {
		all := new(responses)
		row := func(name string, r *responses) {
			fmt.Fprintf(&sb, "| %s | %s | %d | %d | %d | %s | %s | %s |\n", kind.name, name, r.codes[http.StatusOK], r.codes[http.StatusServiceUnavailable], r.cut, r.others(), r.quantile(0.5), r.quantile(0.99))
		}
		for _, q := range kind.shapes {
			if r := got[q.name]; r != nil {
				all.add(r)
				row(q.name, r)
			}
		}
		row("all", all)
		every.add(all)
	}
	fmt.Fprintf(&sb, "\n%s, %s, %d clients, %s: peak RSS %s of %s\n", p.sys.Name, p.sys.Version, c.Clients, c.Duration, mebibytes(u.Peak), mebibytes(bound))
	if _, err := io.WriteString(out, sb.String()); err != nil {
		return err
	}
	if u.Peak > bound {
		err = fmt.Errorf("the server took %s, more than %s", mebibytes(u.Peak), mebibytes(bound))
	}
	return errors.Join(err, every.err())
}

// write sends samples or lines until the context ends.
func (c *mixCmd) write(ctx context.Context, p *pressure, args ...string) {
	one := &trial{settings: p.settings, sys: p.sys, rec: &result.Record{}, dir: p.dir}
	// The server counts what it refuses, and a load that is cut off at the end has not failed.
	_, _ = one.load(ctx, c.Duration, append(args, "--duration", c.Duration.String())...)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/shaledb/shale/bench/neighbours"
	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
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

// tenantsCmd is bench tenants.
type tenantsCmd struct {
	pressureFlags `embed:""`
	Memory        string        `default:"1GiB" help:"Budget of Shale (its --memory)."`
	Tenants       int           `default:"49" help:"Tenants that behave."`
	Rounds        int           `default:"3" help:"Rounds of each way; the table has the medians."`
	Phase         time.Duration `default:"10s" help:"How long each half of a round takes: without and with the tenant that misbehaves."`
	Ways          []string      `placeholder:"NAME" help:"Only these ways to misbehave."`
	Control       bool          `help:"Measure also what the clients of the tenant that misbehaves do to the others by their own work: towards a server that computes nothing."`
}

// Help returns an example.
func (*tenantsCmd) Help() string {
	return `Print what one tenant that misbehaves in eight ways does to 49 others:

    go run ./bench tenants`
}

// Run prints the table.
func (c *tenantsCmd) Run(ctx context.Context, out *streams) error {
	return c.inWork(func(work string) error {
		// The limits of queries are the defaults again: package system lifts them.
		c.ShaleFlags = append([]string{"--query.max-samples=50000000", "--query.max-series=2000000", "--max-age=7d", "--max-future=10m"}, c.ShaleFlags...)
		systems, _, err := c.systems(ctx, work, out.stderr)
		if err != nil {
			return err
		}
		ways := slices.DeleteFunc(neighbours.Ways(), func(w neighbours.Way) bool { return len(c.Ways) > 0 && !slices.Contains(c.Ways, w.Name) })
		var errs []error
		for i, sys := range systems {
			srv, err := system.Start(ctx, sys, system.Options{Dir: filepath.Join(work, fmt.Sprint("tenants-", i)), Memory: c.Memory})
			if err != nil {
				return err
			}
			// The clients of the tenants that behave would be on machines of their own.
			if err := setPriority(-10); err != nil {
				fmt.Fprintln(out.stderr, "the clients compete with the server for processors:", err)
			}
			url := "http://" + srv.HTTP
			o := neighbours.Options{
				URL: url, Tenants: c.Tenants, Rounds: c.Rounds, Phase: c.Phase, Ways: ways, Log: out.stderr,
				Misbehave: func(ctx context.Context, w *neighbours.Way) (got map[int]int, err error) {
					text, err := misbehaveApart(ctx, w.Name, "--url", url)
					if err != nil {
						return nil, err
					}
					return got, json.Unmarshal(text, &got)
				},
			}
			if c.Control {
				o.Control = func(ctx context.Context, w *neighbours.Way, got map[int]int) error {
					text, err := json.Marshal(got)
					if err == nil {
						_, err = misbehaveApart(ctx, w.Name, "--alone", string(text))
					}
					return err
				}
			}
			errs = append(errs, neighbours.Run(ctx, o, out.stdout), srv.Alive(), srv.Stop())
		}
		return errors.Join(errs...)
	})
}

// misbehaveApart runs this program again, as the tenant that misbehaves, until the context ends, and returns
// what it prints.
func misbehaveApart(ctx context.Context, way string, flags ...string) ([]byte, error) {
	deadline, _ := ctx.Deadline()
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, append([]string{"misbehave", way, "--for", time.Until(deadline).String()}, flags...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("misbehaving: %w: %s", err, stderr.String())
	}
	return stdout.Bytes(), nil
}

// setPriority sets the priority of all threads of this process. Further ones inherit it.
func setPriority(nice int) error {
	threads, err := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		id, parseErr := strconv.Atoi(t.Name())
		err = errors.Join(err, parseErr, syscall.Setpriority(syscall.PRIO_PROCESS, id, nice))
	}
	return err
}

// misbehaveCmd is bench misbehave, which bench tenants runs.
type misbehaveCmd struct {
	Way   string        `arg:"" help:"Name of the way."`
	URL   string        `xor:"to" required:"" help:"Of the server."`
	Alone string        `xor:"to" required:"" placeholder:"JSON" help:"Send to a server of its own instead, which computes nothing and answers with these statuses, each as often."`
	For   time.Duration `required:"" help:"How long."`
}

// Run misbehaves, and prints the statuses of the responses.
func (c *misbehaveCmd) Run(ctx context.Context, out *streams) error {
	if err := setPriority(10); err != nil {
		return err
	}
	ways := neighbours.Ways()
	i := slices.IndexFunc(ways, func(w neighbours.Way) bool { return strings.EqualFold(w.Name, c.Way) })
	if i < 0 {
		return fmt.Errorf("no way %q", c.Way)
	}
	ctx, cancel := context.WithTimeout(ctx, c.For)
	defer cancel()
	if c.Alone == "" {
		return json.NewEncoder(out.stdout).Encode(ways[i].Misbehave(ctx, c.URL))
	}
	var got map[int]int
	if err := json.Unmarshal([]byte(c.Alone), &got); err != nil {
		return err
	}
	return ways[i].Alone(ctx, got, c.For)
}

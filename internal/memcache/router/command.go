package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Command has the flags of `shale memcached router`. Those of twemproxy have its letters.
type Command struct {
	Conf       string `short:"c" default:"conf/nutcracker.yml" placeholder:"FILE" help:"Configuration file of twemproxy."`
	TestConf   bool   `short:"t" help:"Check the configuration, and exit."`
	Against    string `placeholder:"FILE" help:"Print how many keys would move from this configuration to that of --conf, and exit."`
	Output     string `short:"o" placeholder:"FILE" help:"Error log. Without it, standard error."`
	StatsAddr  string `short:"a" default:"127.0.0.1" placeholder:"HOST" help:"Address for the counters of twemproxy."`
	StatsPort  int    `short:"s" default:"22222" placeholder:"PORT" help:"Port for the counters of twemproxy; 0: off."`
	Metrics    string `default:"127.0.0.1:22223" placeholder:"HOST:PORT" help:"Address for metrics of Prometheus; empty: off."`
	MaxClients int    `default:"20000" placeholder:"N" help:"How many clients a pool takes."`
	PidFile    string `short:"p" placeholder:"FILE" help:"File to write the process ID to."`
	Interval   int    `short:"i" hidden:"" help:"For twemproxy: counters are always those of now."`
	MbufSize   int    `short:"m" hidden:"" help:"For twemproxy: buffers have the size that they need."`
	Verbose    int    `short:"v" hidden:"" help:"For twemproxy: the error log has all errors."`
}

// Help teaches the command by examples.
func (*Command) Help() string {
	return `Serve the pools of twemproxy, in its place:

    shale memcached router -c /etc/nutcracker/nutcracker.yml

Take a changed file into use, without losing clients:

    kill -HUP PID

How many keys would the change move?

    shale memcached router -c new.yml --against /etc/nutcracker/nutcracker.yml

docs/memcached.md has the differences from twemproxy, the error log and the metrics.`
}

func load(file string) ([]Pool, error) {
	const most = 10 << 20
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > most:
		return nil, fmt.Errorf("%s has more than %d bytes", file, most)
	}
	pools, err := ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return pools, nil
}

// Run serves until the context ends.
func (c *Command) Run(ctx context.Context, stdout io.Writer) error {
	pools, err := load(c.Conf)
	switch {
	case err != nil:
		return err
	case c.TestConf:
		_, err := fmt.Fprintf(stdout, "%s is valid: %s\n", c.Conf, english.Plural(len(pools), "pool", ""))
		return err
	case c.Against != "":
		return c.compare(stdout, pools)
	}
	var out io.Writer = os.Stderr
	if c.Output != "" {
		f, err := os.OpenFile(c.Output, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // each line was written at once
		out = f
	}
	if c.PidFile != "" {
		if err := os.WriteFile(c.PidFile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
			return err
		}
		defer func() { _ = os.Remove(c.PidFile) }() // an old number does no harm
	}
	log := NewErrorLog(out)
	r, err := Start(Options{MaxClients: c.MaxClients, Log: log}, pools)
	if err != nil {
		return err
	}
	defer r.Close()
	stop, err := c.report(r)
	if err != nil {
		return err
	}
	defer stop()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hup:
			if pools, err = load(c.Conf); err == nil {
				err = r.Reload(pools)
			}
			if err != nil {
				log.l.Error("the configuration is not taken into use", "error", err.Error())
			} else {
				log.l.Info("the configuration is in use", "file", c.Conf, "pools", len(pools))
			}
		}
	}
}

// report serves counters and metrics.
func (c *Command) report(r *Router) (stop func(), err error) {
	var closers []io.Closer
	stop = func() {
		for _, closer := range closers {
			_ = closer.Close() // it only served readers
		}
	}
	if c.StatsPort != 0 {
		l, err := net.Listen("tcp", net.JoinHostPort(c.StatsAddr, strconv.Itoa(c.StatsPort)))
		if err != nil {
			return nil, err
		}
		closers = append(closers, l)
		go r.ServeStats(l)
	}
	if c.Metrics != "" {
		l, err := net.Listen("tcp", c.Metrics)
		if err != nil {
			stop()
			return nil, err
		}
		registry := prometheus.NewRegistry()
		registry.MustRegister(r)
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
		closers = append(closers, server)
		go func() { _ = server.Serve(l) }() // it ends when it is closed
	}
	return stop, nil
}

// compare says how many keys move from one configuration to another.
func (c *Command) compare(stdout io.Writer, pools []Pool) error {
	const keys = 100_000
	old, err := load(c.Against)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pools {
		line := fmt.Sprintf("%s: new", p.Name)
		for _, o := range old {
			if o.Name != p.Name {
				continue
			}
			share, err := Moved(o, p, keys)
			if err != nil {
				return err
			}
			line = fmt.Sprintf("%s: %.1f %% of keys move", p.Name, 100*share)
		}
		_, err := fmt.Fprintln(stdout, line)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

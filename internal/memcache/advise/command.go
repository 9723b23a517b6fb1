package advise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/shaledb/shale/internal/load/progress"
)

// Command has the flags of `shale memcached advise`.
type Command struct {
	From    []string      `arg:"" name:"addr" help:"Servers as HOST:PORT or a path of a socket; or a file with the table of memcached-tool, lines of SIZE COUNT, or a dump; - for standard input."`
	Factor  []float64     `short:"f" placeholder:"N" help:"A growth factor to judge too, such as 1.07."`
	Memory  int64         `short:"m" placeholder:"MB" help:"With a file: memory of the server in megabytes, as -m of memcached. The listed items are assumed to fill it."`
	Price   float64       `default:"4.43" placeholder:"DOLLARS" help:"Price of a GB of memory in a month."`
	Items   int           `default:"5000000" placeholder:"N" help:"How many items of each server to look at."`
	Timeout time.Duration `default:"5s" placeholder:"TIME" help:"How long a server may take for a line of its response."`
	Watch   time.Duration `placeholder:"TIME" help:"Watch the requests of one server for this long, such as 10m. Predicts its hit ratio with half, twice and four times the memory."`
	Keys    int           `default:"100000" placeholder:"N" help:"How many keys --watch simulates at most, at 500 bytes each. If there are more, it takes a sample."`
	Quiet   bool          `short:"q" help:"Do not show the progress of --watch."`
	Emit    bool          `help:"Print only the advised command line of the server."`
	JSON    bool          `name:"json" help:"Print the report as JSON."`
}

// Help teaches the command by examples.
func (*Command) Help() string {
	return `Where does the memory of two servers go, and what would hold more?

    shale memcached advise 10.0.0.5 10.0.0.6:11212

From a table that was kept, with a factor that somebody proposes:

    memcached-tool 10.0.0.5:11211 display | shale memcached advise -m 4096 -f 1.07 -

What would more memory bring?

    shale memcached advise 10.0.0.5 --watch 10m

Servers are read, never changed. docs/memcached.md explains the report.`
}

// Validate returns what is wrong with the flags.
func (c *Command) Validate() error {
	switch {
	case c.Items < 1:
		return fmt.Errorf("--items: expected at least 1, got %d", c.Items)
	case c.Memory < 0 || c.Memory > 1<<30:
		return fmt.Errorf("--memory: expected megabytes, got %d", c.Memory)
	case c.Timeout <= 0:
		return fmt.Errorf("--timeout: expected more than 0, got %s", c.Timeout)
	case c.Watch < 0 || c.Watch > 0 && c.Watch < time.Second:
		return fmt.Errorf("--watch: expected at least 1s, got %s", c.Watch)
	case c.Watch > 0 && (len(c.From) != 1 || c.Emit):
		return errors.New("--watch: expected one server, and no --emit")
	case c.Keys < 1000 || c.Keys > 100_000_000:
		return fmt.Errorf("--keys: expected 1,000 to 100,000,000, got %d", c.Keys)
	}
	for _, f := range c.Factor {
		if !(f > 1 && f <= 100) {
			return fmt.Errorf("--factor: expected more than 1, up to 100, got %g", f)
		}
	}
	return nil
}

// Run reads the servers and prints the report.
func (c *Command) Run(ctx context.Context, stdout io.Writer, show progress.Progress) error {
	if c.Watch > 0 {
		return c.watch(ctx, stdout, show)
	}
	servers := make([]*Server, len(c.From))
	errs := make([]error, len(c.From))
	var reads sync.WaitGroup
	for i, from := range c.From {
		reads.Go(func() { servers[i], errs[i] = c.read(ctx, from) })
	}
	reads.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	r, err := Advise(servers, Ask{Factors: c.Factor, Memory: c.Memory << 20, Price: c.Price})
	switch {
	case err != nil:
		return err
	case c.Emit:
		_, err = fmt.Fprintln(stdout, strings.Join(r.CommandLine, " "))
		return err
	case c.JSON:
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.Print(stdout)
}

// read reads a server, or a file if there is one of that name.
func (c *Command) read(ctx context.Context, from string) (*Server, error) {
	if from == "-" {
		return Read("standard input", os.Stdin)
	}
	info, err := os.Stat(from)
	if err != nil || info.Mode().Type() == os.ModeSocket {
		return Observe(ctx, from, c.Timeout, c.Items)
	}
	f, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return Read(from, f)
}

// watch predicts the hit ratio of other sizes, and shows on a terminal how far it is.
func (c *Command) watch(ctx context.Context, stdout io.Writer, show progress.Progress) (err error) {
	if c.Quiet {
		show = progress.Progress{}
	}
	var w *Watched
	var lines atomic.Int64
	begun := time.Now()
	show.During(progress.Meter{
		Name: "watch", Total: int64(c.Watch), Read: func() int64 { return int64(min(time.Since(begun), c.Watch)) },
		Detail: func() string { return humanize.Comma(lines.Load()) + " lines" },
	}, func() {
		w, err = Watch(ctx, c.From[0], c.Timeout, c.Watch, c.Keys, &lines)
	})
	switch {
	case err != nil:
		return err
	case c.JSON:
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(w)
	}
	return w.Print(stdout)
}

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/shaledb/shale/internal/cache/ssd"
)

// Size is a number of bytes as memcached has it: -m is in megabytes, -I takes k and m. KiB, MiB, GiB and TiB
// are taken, too.
type Size int64

// parseSize reads a size; a number without a unit is in such units.
func parseSize(text string, unit int64) (Size, error) {
	at := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if at < 0 {
		at = len(text)
	}
	n, err := strconv.ParseInt(text[:at], 10, 64)
	switch strings.ToLower(text[at:]) {
	case "":
	case "k", "kib":
		unit = 1 << 10
	case "m", "mib":
		unit = 1 << 20
	case "g", "gib":
		unit = 1 << 30
	case "t", "tib":
		unit = 1 << 40
	default:
		err = errors.New("no such unit")
	}
	if err != nil || n < 1 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("expected a size such as 512MiB, got %q", text)
	}
	return Size(n * unit), nil
}

// Command has the flags of `shale memcached serve`. Those of memcached have its letters.
type Command struct {
	Listen      string        `short:"l" default:"127.0.0.1" placeholder:"HOST,..." help:"Addresses to listen on, with or without a port."`
	Port        int           `short:"p" default:"11211" placeholder:"PORT" help:"TCP port; 0: any."`
	UDP         int           `short:"U" hidden:"" default:"0" help:"For memcached: UDP is not served."`
	Socket      string        `short:"s" placeholder:"PATH" help:"Path of a Unix socket to listen on instead."`
	Memory      string        `short:"m" default:"64" placeholder:"MB" help:"Memory for items and their index: megabytes, or a size such as 4GiB."`
	ConnLimit   int           `short:"c" default:"1024" placeholder:"N" help:"Most connections."`
	MaxItem     string        `short:"I" name:"max-item-size" default:"1m" placeholder:"SIZE" help:"Largest item: bytes, or a size such as 32m."`
	IdleTimeout time.Duration `default:"0s" placeholder:"TIME" help:"Close a connection that has sent no request for this long; 0: never."`
	SSD         string        `name:"ssd" placeholder:"DIR:SIZE" help:"Folder and size of the disk cache, at least 64MiB. It keeps items that were read again, and survives restarts. Empty: memory only."`
	Writes      int           `name:"ssd-writes-per-day" default:"3" placeholder:"N" help:"Most bytes that are written to the disk in a day, in multiples of its size."`
	SameRead    time.Duration `default:"30s" placeholder:"TIME" help:"Count reads of an item within this time as one. An item that is read again later goes to the disk."`
	DrainTo     string        `placeholder:"HOST:PORT" help:"Server to hand all items to before this one exits."`
	Metrics     string        `default:"127.0.0.1:11212" placeholder:"HOST:PORT" help:"Address for metrics of Prometheus; empty: off."`
	PidFile     string        `short:"P" placeholder:"FILE" help:"File to write the process ID to."`
	Threads     int           `short:"t" hidden:"" help:"For memcached: all processors are used."`
	Verbose     int           `short:"v" type:"counter" hidden:"" help:"For memcached: the log has one level."`
}

// Help teaches the command by examples.
func (*Command) Help() string {
	return `Serve memcached clients, with 4 GiB of memory and 100 GiB of a disk that keeps its content over restarts:

    shale memcached serve -m 4096 -I 32m --ssd /var/cache/shale:100GiB

Give what it has to a successor, and end:

    shale memcached serve -m 4096 --ssd /var/cache/shale:100GiB --drain-to 10.0.0.6:11211
    kill -TERM PID

docs/memcached.md says what holds after a restart, and how it differs from memcached.`
}

// Validate returns what is wrong with the flags.
func (c *Command) Validate() error {
	switch {
	case c.ConnLimit < 1 || c.ConnLimit > 1<<20:
		return fmt.Errorf("--conn-limit: expected 1 to %d, got %d", 1<<20, c.ConnLimit)
	case c.UDP != 0:
		return fmt.Errorf("--udp: UDP is not served: expected 0, got %d", c.UDP)
	case c.Writes < 1:
		return fmt.Errorf("--ssd-writes-per-day: expected at least 1, got %d", c.Writes)
	case c.SameRead < time.Second:
		return fmt.Errorf("--same-read: expected at least 1s, got %s", c.SameRead)
	case c.IdleTimeout < 0:
		return fmt.Errorf("--idle-timeout: expected at least 0, got %s", c.IdleTimeout)
	}
	return nil
}

// The shares of the memory that the disk takes: for what is known of its records, and for values that wait to
// be written.
const (
	diskIndexShare = 8
	diskQueueShare = 16
)

// options opens the disk.
func (c *Command) options(registry prometheus.Registerer, log *slog.Logger) (o Options, err error) {
	memory, err := parseSize(c.Memory, 1<<20)
	if err != nil {
		return o, fmt.Errorf("--memory: %w", err)
	}
	item, err := parseSize(c.MaxItem, 1)
	if err != nil {
		return o, fmt.Errorf("--max-item-size: %w", err)
	}
	o = Options{
		Memory: int64(memory), MaxItem: int(min(item, 1<<31)), MaxConns: c.ConnLimit, IdleTimeout: c.IdleTimeout, SameRead: c.SameRead, Logger: log,
	}
	if c.SSD == "" {
		return o, nil
	}
	at := strings.LastIndexByte(c.SSD, ':')
	if at < 1 {
		return o, fmt.Errorf("--ssd: expected DIR:SIZE, got %q", c.SSD)
	}
	size, err := parseSize(c.SSD[at+1:], 1)
	if err != nil {
		return o, fmt.Errorf("--ssd: %w", err)
	}
	index, queue := o.Memory/diskIndexShare, o.Memory/diskQueueShare
	o.DiskMemory = index + queue
	o.Disk, err = ssd.Open(ssd.Options{
		FS: vfs.Default, Dir: c.SSD[:at], MaxBytes: int64(size), Limits: ssd.Limits{WritesPerDay: c.Writes}, IndexBytes: index, QueueBytes: queue,
		Mutable: true, Boot: boot(), Registerer: registry, Logger: log,
	})
	return o, err
}

// boot names the start of the machine. Where there is no such name, what a killed server has written is not
// kept.
func boot() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// garbage bounds the memory that waits to be collected. Items are in memory that never is, so that without a
// bound as much garbage could gather.
const garbage = 64 << 20

// plainErrors writes errors as their text. Those of the file system have the stack of the call, too.
func plainErrors(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(err.Error())
	}
	return a
}

// Run serves until the context ends.
func (c *Command) Run(ctx context.Context, stdout io.Writer) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: plainErrors}))
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	o, err := c.options(registry, log)
	if err != nil {
		return err
	}
	debug.SetGCPercent(int(max(100*garbage/max(o.Memory, 1), 2)))
	s, err := New(o)
	if err != nil {
		if o.Disk != nil {
			err = errors.Join(err, o.Disk.Close())
		}
		return err
	}
	registry.MustRegister(s)
	err = c.serve(ctx, s, registry, stdout)
	if err == nil && c.DrainTo != "" {
		s.StopServing()
		err = s.DrainTo(context.Background(), c.DrainTo)
	}
	return errors.Join(err, s.Close())
}

func (c *Command) serve(ctx context.Context, s *Server, registry *prometheus.Registry, stdout io.Writer) error {
	if c.Socket != "" {
		// The socket of a process that was killed is still there.
		if i, err := os.Lstat(c.Socket); err == nil && i.Mode()&os.ModeSocket != 0 {
			if err := os.Remove(c.Socket); err != nil {
				return err
			}
		}
		l, err := net.Listen("unix", c.Socket)
		if err != nil {
			return err
		}
		s.Serve(l)
		if _, err := fmt.Fprintf(stdout, "serving memcached clients at %s\n", l.Addr()); err != nil {
			return err
		}
	} else {
		for _, host := range strings.Split(c.Listen, ",") {
			addr := host
			if _, _, err := net.SplitHostPort(host); err != nil {
				addr = net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(c.Port))
			}
			l, err := net.Listen("tcp", addr)
			if err != nil {
				return err
			}
			s.Serve(l)
			if _, err := fmt.Fprintf(stdout, "serving memcached clients at %s\n", l.Addr()); err != nil {
				return err
			}
		}
	}
	if c.Metrics != "" {
		l, err := net.Listen("tcp", c.Metrics)
		if err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
		defer func() { _ = server.Close() }() // it only served readers
		go func() { _ = server.Serve(l) }()   // it ends when it is closed
		if _, err := fmt.Fprintf(stdout, "metrics at http://%s/metrics\n", l.Addr()); err != nil {
			return err
		}
	}
	if c.PidFile != "" {
		if err := os.WriteFile(c.PidFile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
			return err
		}
		defer func() { _ = os.Remove(c.PidFile) }() // an old number does no harm
	}
	<-ctx.Done()
	return nil
}

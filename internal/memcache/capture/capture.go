package capture

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/memcache/stats"
	"github.com/shaledb/shale/internal/terminal"
)

// Commands are the subcommands of `shale memcached capture`.
type Commands struct {
	Record Record `cmd:"" default:"withargs" help:"Record what happens on a server."`
	Show   Show   `cmd:"" help:"Show what a recording has for a moment."`
}

// Record has the flags of `shale memcached capture`.
type Record struct {
	Addr    string        `arg:"" help:"Server as HOST:PORT or a path of a socket."`
	For     time.Duration `default:"10s" placeholder:"TIME" help:"How long to record."`
	Out     string        `required:"" placeholder:"FILE" help:"File for the record."`
	Watch   []string      `default:"fetchers,mutations,evictions" placeholder:"NAMES" help:"What to record: fetchers, mutations, evictions, and what else the watch command of the server knows."`
	MaxSize int64         `default:"1024" placeholder:"MB" help:"Stop when the recording reaches this many megabytes."`
	Timeout time.Duration `default:"5s" placeholder:"TIME" help:"How long the server may take to begin."`
}

// Help teaches the command by examples.
func (*Record) Help() string {
	return `Record a server for a minute, and look at a second of it:

    shale memcached capture 10.0.0.5:11211 --for 1m --out minute.log
    shale memcached capture show minute.log --at 14:49:40`
}

// Validate returns what is wrong with the flags.
func (c *Record) Validate() error {
	for _, name := range c.Watch {
		if name == "" || strings.ContainsAny(name, " \r\n\t") {
			return fmt.Errorf("--watch: %q is not a name", name)
		}
	}
	if c.For <= 0 || c.MaxSize <= 0 || c.Timeout <= 0 {
		return errors.New("--for, --max-size and --timeout: expected more than 0")
	}
	return nil
}

// Run records, and says how much.
func (c *Record) Run(ctx context.Context, stdout io.Writer) (err error) {
	conn, err := stats.Dial(ctx, c.Addr, c.Timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	f, err := os.Create(c.Out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 256<<10)
	ctx, cancel := context.WithTimeout(ctx, c.For)
	defer cancel()
	stop := context.AfterFunc(ctx, conn.Close)
	defer stop()
	var lines, skipped, size int64
	err = conn.Watch(c.Watch, func(line []byte) bool {
		lines++
		size += int64(len(line)) + 1
		if count, ok := strings.CutPrefix(string(line), "skipped="); ok {
			n, _ := strconv.ParseInt(count, 10, 64) // it is a number, or the server is broken
			skipped += n
		}
		_, err := w.Write(append(line, '\n')) // a later Flush has the error
		return err == nil && size < c.MaxSize<<20
	})
	if err = errors.Join(unless(ctx.Err() != nil, err), w.Flush()); err != nil {
		return err
	}
	text := fmt.Sprintf("%s, %d bytes", english.Plural(int(lines), "line", ""), size)
	if skipped > 0 {
		text += fmt.Sprintf("; the server left out %s, because it has more than it can log", english.Plural(int(skipped), "line", ""))
	}
	if size >= c.MaxSize<<20 {
		text += "; it ended early, at --max-size"
	}
	_, err = fmt.Fprintln(stdout, text)
	return err
}

// unless drops the error of a connection that was closed because the time is over.
func unless(over bool, err error) error {
	if over {
		return nil
	}
	return err
}

// Show has the flags of `shale memcached capture show`.
type Show struct {
	File   string        `arg:"" help:"Record."`
	At     string        `placeholder:"TIME" help:"Moment to show, as 14:49:40 of the day of the record or 2006-01-02T15:04:05Z. Without it, everything."`
	Within time.Duration `default:"1s" placeholder:"TIME" help:"How long after the moment to show."`
	Type   string        `placeholder:"NAME" help:"Show only one type of line: item_get, item_store, eviction."`
	UTC    bool          `name:"utc" help:"Times are UTC, not of the local time zone."`
}

// Run prints lines, each with its time.
func (c *Show) Run(stdout io.Writer) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	zone := time.Local
	if c.UTC {
		zone = time.UTC
	}
	return c.show(f, stdout, zone)
}

func (c *Show) show(f io.Reader, stdout io.Writer, zone *time.Location) error {
	lines := bufio.NewScanner(f)
	out := bufio.NewWriter(stdout)
	var from, before time.Time
	found := false
	for n := 1; lines.Scan(); n++ {
		at, rest, err := parseLine(lines.Text())
		if err != nil {
			if !strings.HasPrefix(rest, "skipped=") {
				return fmt.Errorf("%s, line %d: %w", c.File, n, err)
			}
			at = before // the server left lines out, and does not say when
		}
		at = at.In(zone)
		before = at
		if c.At != "" && from.IsZero() {
			if from, err = moment(c.At, at); err != nil {
				return err
			}
		}
		if c.At != "" && (at.Before(from) || !at.Before(from.Add(c.Within))) || c.Type != "" && !strings.Contains(rest+" ", "type="+c.Type+" ") {
			continue
		}
		found = true
		if _, err := fmt.Fprintln(out, at.Format("2006-01-02T15:04:05.000000Z07:00"), terminal.EscapeLines(rest)); err != nil {
			return err
		}
	}
	if err := errors.Join(lines.Err(), out.Flush()); err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%s has no line of that moment", c.File)
	}
	return nil
}

// parseLine returns the time of a line, and the rest of it.
func parseLine(line string) (at time.Time, rest string, err error) {
	text, ok := strings.CutPrefix(line, "ts=")
	if !ok {
		return at, line, fmt.Errorf("expected ts=, got %.60q", line)
	}
	text, rest, _ = strings.Cut(text, " ")
	whole, part, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return at, rest, fmt.Errorf("expected a time, got %.60q", text)
	}
	// The part after the point is a number of microseconds, without leading zeros.
	micros, err := strconv.ParseInt(part, 10, 64)
	if err != nil || micros < 0 || micros > 999_999 {
		return at, rest, fmt.Errorf("expected a time, got %.60q", text)
	}
	return time.Unix(seconds, micros*1000), rest, nil
}

// moment reads a time of the day of a record, or a full one.
func moment(text string, day time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	clock, err := time.Parse("15:04:05", text)
	if err != nil {
		return day, fmt.Errorf("--at: expected a time such as 14:49:40, got %q", text)
	}
	y, m, d := day.Date()
	return time.Date(y, m, d, clock.Hour(), clock.Minute(), clock.Second(), 0, day.Location()), nil
}

package top

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/memcache/stats"
	"github.com/shaledb/shale/internal/terminal"
)

// Line is what a server did in an interval. Rates are for a second.
type Line struct {
	Time   time.Time `json:"time"`
	Server string    `json:"server"`
	// Error says why the rest is not known.
	Error   string  `json:"error,omitempty"`
	Queries float64 `json:"queries"`
	Gets    float64 `json:"gets"`
	Sets    float64 `json:"sets"`
	// HitRatio is of the gets of the interval; it is left out if there were none.
	HitRatio    *float64 `json:"hit_ratio,omitempty"`
	Connections int64    `json:"connections"`
	BytesIn     float64  `json:"bytes_in"`
	BytesOut    float64  `json:"bytes_out"`
	Evictions   float64  `json:"evictions"`
	// Unread is how many of them were never read. Replaced is how many times in an hour all items are evicted.
	Unread       float64 `json:"evicted_unread"`
	Replaced     float64 `json:"replaced_an_hour"`
	DiskReads    float64 `json:"disk_reads"`
	DiskEvicted  float64 `json:"disk_evictions"`
	ProbeSeconds float64 `json:"probe_seconds"`
}

// server is a server that is watched.
type server struct {
	addr    string
	timeout time.Duration
	conn    *stats.Conn
	before  map[string]string
	at      time.Time
}

// read asks the server, and returns what it did since it was asked before. The first time there is nothing to
// compare with.
func (s *server) read(ctx context.Context) (l Line, first bool) {
	l = Line{Time: time.Now(), Server: s.addr}
	m, err := s.ask(ctx, &l)
	if err != nil {
		l.Error = err.Error()
		s.before = nil
		if s.conn != nil {
			s.conn.Close()
			s.conn = nil
		}
		return l, false
	}
	before, seconds := s.before, l.Time.Sub(s.at).Seconds()
	s.before, s.at = m, l.Time
	if before == nil || seconds <= 0 || number(m, "uptime") < number(before, "uptime") {
		return l, true
	}
	l.fill(before, m, seconds)
	return l, false
}

func (s *server) ask(ctx context.Context, l *Line) (m map[string]string, err error) {
	if s.conn == nil {
		if s.conn, err = stats.Dial(ctx, s.addr, s.timeout); err != nil {
			return nil, err
		}
	}
	begun := time.Now()
	if _, err := s.conn.Version(); err != nil {
		return nil, err
	}
	l.ProbeSeconds = time.Since(begun).Seconds()
	all, err := s.conn.Ask("")
	return all.Map(), err
}

func number(m map[string]string, name string) float64 {
	n, _ := strconv.ParseFloat(m[name], 64) // what a server lacks is 0
	return n
}

func (l *Line) fill(before, now map[string]string, seconds float64) {
	rate := func(names ...string) (sum float64) {
		for _, name := range names {
			sum += max(0, number(now, name)-number(before, name)) / seconds
		}
		return sum
	}
	l.Gets, l.Sets = rate("cmd_get"), rate("cmd_set")
	l.Queries = l.Gets + l.Sets + rate("cmd_touch", "delete_hits", "delete_misses", "incr_hits", "incr_misses", "decr_hits", "decr_misses")
	if hits, misses := rate("get_hits"), rate("get_misses"); hits+misses > 0 {
		ratio := hits / (hits + misses)
		l.HitRatio = &ratio
	}
	l.Connections = int64(number(now, "curr_connections"))
	l.BytesIn, l.BytesOut = rate("bytes_read"), rate("bytes_written")
	l.Evictions, l.Unread = rate("evictions"), rate("evicted_unfetched")
	if items := number(now, "curr_items"); items > 0 {
		l.Replaced = l.Evictions * 3600 / items
	}
	l.DiskReads, l.DiskEvicted = rate("get_extstore"), rate("extstore_objects_evicted")
}

// Command has the flags of `shale memcached top`.
type Command struct {
	Addr    []string      `arg:"" help:"Servers as HOST:PORT or a path of a socket."`
	Every   time.Duration `default:"1s" placeholder:"TIME" help:"Interval."`
	Count   int           `short:"n" placeholder:"N" help:"Stop after this many intervals; 0: run until interrupted."`
	JSON    bool          `name:"json" help:"Print a line of JSON for each server and interval."`
	Timeout time.Duration `default:"1s" placeholder:"TIME" help:"How long a server may take for a line of its response."`
}

// Help teaches the command by examples.
func (*Command) Help() string {
	return `Watch three servers:

    shale memcached top 10.0.0.5 10.0.0.6 10.0.0.7

Keep what they do, for scripts:

    shale memcached top --json -n 60 10.0.0.5 > minute.json`
}

// Validate returns what is wrong with the flags.
func (c *Command) Validate() error {
	if c.Every < 10*time.Millisecond || c.Timeout <= 0 || c.Count < 0 {
		return fmt.Errorf("expected --every of at least 10ms, --timeout of more than 0 and --count of at least 0")
	}
	return nil
}

// Run prints until the context ends. The environment says what a terminal shows.
func (c *Command) Run(ctx context.Context, stdout io.Writer, environ []string) error {
	servers := make([]*server, len(c.Addr))
	for i, addr := range c.Addr {
		servers[i] = &server{addr: stats.Address(addr), timeout: c.Timeout}
	}
	defer func() {
		for _, s := range servers {
			if s.conn != nil {
				s.conn.Close()
			}
		}
	}()
	live := false
	if f, ok := stdout.(*os.File); ok && !c.JSON {
		info, err := f.Stat()
		live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for shown := -1; ; { // the first answers are only compared with
		lines, known := readAll(ctx, servers)
		if shown++; shown > 0 || known {
			if err := c.print(stdout, lines, live); err != nil {
				return err
			}
		}
		if c.Count > 0 && shown >= c.Count {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// readAll asks all servers at the same time. known: there is something to show of each.
func readAll(ctx context.Context, servers []*server) (lines []Line, known bool) {
	lines = make([]Line, len(servers))
	firsts := make([]bool, len(servers))
	var reads sync.WaitGroup
	for i, s := range servers {
		reads.Go(func() { lines[i], firsts[i] = s.read(ctx) })
	}
	reads.Wait()
	known = true
	for _, first := range firsts {
		known = known && !first
	}
	return lines, known
}

func (c *Command) print(w io.Writer, lines []Line, live bool) error {
	if c.JSON {
		e := json.NewEncoder(w)
		for _, l := range lines {
			if err := e.Encode(l); err != nil {
				return err
			}
		}
		return nil
	}
	if live {
		if _, err := io.WriteString(w, "\x1b[H\x1b[2J"); err != nil {
			return err
		}
	}
	rows := [][]string{{"server", "queries", "gets", "hits", "sets", "conns", "in", "out", "evicted", "unread", "replaced/h", "disk reads", "disk evicted", "probe"}}
	var failed []string
	for _, l := range lines {
		if l.Error != "" {
			failed = append(failed, l.Server+": "+l.Error)
			continue
		}
		hits, unread := "-", "-"
		if l.HitRatio != nil {
			hits = fmt.Sprintf("%.1f %%", 100**l.HitRatio)
		}
		if l.Evictions > 0 {
			unread = fmt.Sprintf("%.0f %%", 100*l.Unread/l.Evictions)
		}
		rows = append(rows, []string{l.Server, rate(l.Queries), rate(l.Gets), hits, rate(l.Sets), strconv.FormatInt(l.Connections, 10), rate(l.BytesIn), rate(l.BytesOut), rate(l.Evictions), unread,
			fmt.Sprintf("%.2f", l.Replaced), rate(l.DiskReads), rate(l.DiskEvicted), fmt.Sprintf("%.2f ms", 1000*l.ProbeSeconds)})
	}
	if err := terminal.Table(w, rows); err != nil {
		return err
	}
	if failed != nil {
		_, err := fmt.Fprintln(w, terminal.EscapeLines(strings.Join(failed, "\n")))
		return err
	}
	return nil
}

// rate writes a rate in at most five characters.
func rate(n float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		if n < 10 && n != math.Trunc(n) {
			return fmt.Sprintf("%.1f%s", n, unit)
		}
		if n < 1000 {
			return fmt.Sprintf("%.0f%s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.0fT", n)
}

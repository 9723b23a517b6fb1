package stats

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	// maxLine is the longest line of a response. The longest known is that of an item with a key of 250 bytes,
	// each of them encoded by three.
	maxLine = 8 << 10
	// maxStats bounds the lines of one response. `stats sizes` has at most 32,768, each class of items has 30.
	maxStats = 100_000
)

// ErrUnsupported: the server does not know the command, or was told not to carry it out.
var ErrUnsupported = errors.New("the memcached server does not carry it out")

// Stat is a line of a response.
type Stat struct{ Name, Value string }

// Stats are the lines of a response, in their order.
type Stats []Stat

// Map returns the values by name.
func (s Stats) Map() map[string]string {
	m := make(map[string]string, len(s))
	for _, stat := range s {
		m[stat.Name] = stat.Value
	}
	return m
}

// Conn is a connection to a server. It is not safe for concurrent use.
type Conn struct {
	// Addr is HOST:PORT, or the path of a socket.
	Addr string
	// Patience is how long the server may take for the next line.
	Patience time.Duration

	conn net.Conn
	r    *bufio.Reader
}

// Address returns HOST:PORT of what a user gave, which may lack the port. A path stays as it is.
func Address(given string) string {
	if strings.Contains(given, "/") {
		return given
	}
	if _, _, err := net.SplitHostPort(given); err == nil {
		return given
	}
	return net.JoinHostPort(strings.Trim(given, "[]"), "11211")
}

// Dial connects to a server.
func Dial(ctx context.Context, addr string, patience time.Duration) (*Conn, error) {
	c := &Conn{Addr: Address(addr), Patience: patience}
	network := "tcp"
	if strings.Contains(c.Addr, "/") {
		network = "unix"
	}
	dialer := net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(ctx, network, c.Addr)
	if err != nil {
		return nil, err
	}
	c.conn, c.r = conn, bufio.NewReaderSize(conn, maxLine)
	return c, nil
}

// Close ends the connection.
func (c *Conn) Close() { _ = c.conn.Close() }

// send sends a command.
func (c *Conn) send(command string) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.Patience)); err != nil {
		return err
	}
	_, err := c.conn.Write([]byte(command + "\r\n"))
	return err
}

// line reads a line, which is valid until the next one is read.
func (c *Conn) line() ([]byte, error) {
	if c.r.Buffered() == 0 {
		if err := c.conn.SetReadDeadline(time.Now().Add(c.Patience)); err != nil {
			return nil, err
		}
	}
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, fmt.Errorf("memcached %s sends a line of more than %d bytes", c.Addr, maxLine)
		}
		return nil, fmt.Errorf("memcached %s: %w", c.Addr, err)
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// Ask sends `stats`, with a name such as settings or items if it is not empty.
func (c *Conn) Ask(name string) (Stats, error) {
	command := strings.TrimSpace("stats " + name)
	if err := c.send(command); err != nil {
		return nil, err
	}
	var all Stats
	for {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		stat, end, err := parse(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("memcached %s, %s: %w", c.Addr, command, err)
		case end:
			return all, nil
		case len(all) == maxStats:
			return nil, fmt.Errorf("memcached %s sends more than %d lines for %s", c.Addr, maxStats, command)
		}
		all = append(all, stat)
	}
}

// parse reads a line of statistics.
func parse(line []byte) (s Stat, end bool, err error) {
	word, rest, _ := strings.Cut(string(line), " ")
	switch word {
	case "STAT":
		s.Name, s.Value, _ = strings.Cut(rest, " ")
		if s.Name == "" {
			return s, false, errors.New("a statistic without a name")
		}
		return s, false, nil
	case "END", "RESET":
		return s, true, nil
	case "ERROR", "CLIENT_ERROR", "SERVER_ERROR":
		return s, false, fmt.Errorf("%w: %.100q", ErrUnsupported, line)
	}
	return s, false, fmt.Errorf("expected a statistic, got %.100q", line)
}

// Version asks for the version.
func (c *Conn) Version() (string, error) {
	if err := c.send("version"); err != nil {
		return "", err
	}
	line, err := c.line()
	if err != nil {
		return "", err
	}
	version, ok := bytes.CutPrefix(line, []byte("VERSION "))
	if !ok {
		return "", fmt.Errorf("memcached %s: expected its version, got %.100q", c.Addr, line)
	}
	return string(version), nil
}

// Item is a line of a dump of what a server holds.
type Item struct {
	// Key is as the server sends it: URI encoded.
	Key string
	// Expires and Used are seconds since 1970; Expires is -1 for an item that does not expire.
	Expires, Used int64
	Fetched       bool
	Class         int
	// Size is what the item takes, with its header.
	Size uint32
}

// KeyLength is the length of the key that was stored.
func (it *Item) KeyLength() int { return len(it.Key) - 2*strings.Count(it.Key, "%") }

// Dump hands out the items of a server, in no order, until yield returns false. The server goes on to serve
// its clients meanwhile. The connection must not be used after that.
func (c *Conn) Dump(yield func(Item) bool) error {
	for attempt := 0; ; attempt++ {
		if err := c.send("lru_crawler metadump all"); err != nil {
			return err
		}
		busy, err := c.dump(yield)
		if err != nil || !busy {
			return err
		}
		if attempt == 20 {
			return fmt.Errorf("memcached %s: its crawler is busy with another dump", c.Addr)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (c *Conn) dump(yield func(Item) bool) (busy bool, err error) {
	for {
		line, err := c.line()
		if err != nil {
			return false, err
		}
		switch {
		case bytes.Equal(line, []byte("END")):
			return false, nil
		case bytes.HasPrefix(line, []byte("BUSY")):
			return true, nil
		case bytes.Equal(line, []byte("OK")):
			continue // of older versions
		}
		it, err := ParseItem(string(line))
		if err != nil {
			return false, fmt.Errorf("memcached %s: %w", c.Addr, err)
		}
		if !yield(it) {
			return false, nil
		}
	}
}

// ParseItem reads a line of a dump.
func ParseItem(line string) (it Item, err error) {
	if !strings.HasPrefix(line, "key=") {
		if strings.HasPrefix(line, "ERROR") || strings.HasPrefix(line, "CLIENT_ERROR") {
			return it, fmt.Errorf("%w: %.100q", ErrUnsupported, line)
		}
		return it, fmt.Errorf("expected an item, got %.100q", line)
	}
	sized := false
	for word := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(word, "=")
		var n int64
		if name == "exp" || name == "la" || name == "cls" || name == "size" {
			if n, err = strconv.ParseInt(value, 10, 64); err != nil {
				return it, fmt.Errorf("expected a number, got %.100q", word)
			}
		}
		switch name {
		case "key":
			it.Key = value
		case "exp":
			it.Expires = n
		case "la":
			it.Used = n
		case "cls":
			it.Class = int(n)
		case "fetch":
			it.Fetched = value == "yes"
		case "size":
			if n < 0 || n > 1<<30 {
				return it, fmt.Errorf("expected the size of an item, got %.100q", word)
			}
			it.Size, sized = uint32(n), true
		}
	}
	if !sized {
		return it, fmt.Errorf("an item without a size: %.100q", line)
	}
	return it, nil
}

// On returns a connection on an open one. What the server sends beyond the responses to what is asked may be
// lost.
func On(conn net.Conn, addr string, patience time.Duration) *Conn {
	return &Conn{Addr: addr, Patience: patience, conn: conn, r: bufio.NewReaderSize(conn, maxLine)}
}

// Watch hands out what a server logs of what happens on it, until yield returns false or the connection ends.
// A line is valid until the next one. The connection must not be used after that.
func (c *Conn) Watch(names []string, yield func(line []byte) bool) error {
	if err := c.send("watch " + strings.Join(names, " ")); err != nil {
		return err
	}
	line, err := c.line()
	if err != nil {
		return err
	}
	if string(line) != "OK" {
		return fmt.Errorf("memcached %s: %w: %.100q", c.Addr, ErrUnsupported, line)
	}
	if err := c.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("memcached %s: %w", c.Addr, err)
		}
		if !yield(bytes.TrimRight(line, "\r\n")) {
			return nil
		}
	}
}

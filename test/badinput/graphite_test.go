//go:build e2e

package badinput

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// lines are sent by both transports. The input describes them in the golden file.
var lines = []struct{ input, lines string }{
	{"empty lines and white space", "\n\n   \n\t\n\r\n"},
	{"one token", "bi.one\n"},
	{"two tokens", "bi.two 1\n"},
	{"four tokens", "bi.four 1 NOW more\n"},
	{"CRLF", "bi.crlf 1 NOW\r\n"},
	{"CR without LF between two lines", "bi.cr 1 NOW\rbi.cr2 1 NOW\n"},
	{"tabs and double spaces", "bi.tabs\t1\t NOW  \n"},
	{"value: NaN", "bi.nan NaN NOW\n"},
	{"value: -nan", "bi.nan -nan NOW\n"},
	{"value: inf, -Infinity", "bi.inf inf NOW\nbi.ninf -Infinity NOW\n"},
	{"value: 0x10", "bi.hex 0x10 NOW\n"},
	{"value: 1e400", "bi.huge 1e400 NOW\n"},
	{"value: 10,000 digits", "bi.digits " + strings.Repeat("9", 10000) + " NOW\n"},
	{"value: 1e-400", "bi.tiny 1e-400 NOW\n"},
	{"value: 1e99999999999", "bi.exp 1e99999999999 NOW\n"},
	{"value: 1e", "bi.exp 1e NOW\n"},
	{"value: 1_000", "bi.under 1_000 NOW\n"},
	{"value: 1,5", "bi.comma 1,5 NOW\n"},
	{"value: a word", "bi.word high NOW\n"},
	{"value: Arabic digits", "bi.arab \u0661\u0662 NOW\n"},
	{"time: a word", "bi.t 1 now\n"},
	{"time: -1", "bi.t1 1 -1\n"},
	{"time: -2", "bi.t 1 -2\n"},
	{"time: 0", "bi.t 1 0\n"},
	{"time: 1e300", "bi.t 1 1e300\n"},
	{"time: NaN", "bi.t 1 nan\n"},
	{"time: NOW.75", "bi.tf 1 NOW.75\n"},
	{"time: in milliseconds", "bi.t 1 NOW000\n"},
	{"time: in nanoseconds", "bi.t 1 NOW000000000\n"},
	{"time: 10,000 digits", "bi.t 1 " + strings.Repeat("9", 10000) + "\n"},
	{"time: two days ago", "bi.t 1 OLD\n"},
	{"time: in an hour", "bi.t 1 NEW\n"},
	{"NUL in the name", "bi.n\x00ul 1 NOW\n"},
	{"NUL alone", "\x00\n"},
	{"invalid UTF-8 in the name", "bi.\xff\xfe 1 NOW\n"},
	{"a line of 16,384 bytes", "bi." + strings.Repeat("n", 4000) + " " + strings.Repeat("0", 12000) + "1 NOW\n"},
	{"a name of 5,000 bytes", "bi." + strings.Repeat("n", 5000) + " 1 NOW\n"},
	{"a name of dots", "...... 1 NOW\n"},
	{"a name with quotes, braces and slashes", `../../etc/"passwd"{a='b'} 1 NOW` + "\n"},
	{"tags: nothing after the semicolon", "bi.tag; 1 NOW\n"},
	{"tags: without =", "bi.tag;a 1 NOW\n"},
	{"tags: no value", "bi.tag;a= 1 NOW\n"},
	{"tags: no name", "bi.tag;=b 1 NOW\n"},
	{"tags: twice the same", "bi.tag2;a=1;a=2 1 NOW\n"},
	{"tags: __name__", "bi.tag;__name__=x 1 NOW\n"},
	{"tags: name", "bi.tagn;name=x 1 NOW\n"},
	{"tags: value with ~", "bi.tag;a=~b 1 NOW\n"},
	{"tags: no metric name", ";a=b 1 NOW\n"},
	{"tags: 100", "bi.tag" + manyTags(100) + " 1 NOW\n"},
	{"tags: 1,000", "bi.tag" + manyTags(1000) + " 1 NOW\n"},
	{"tags: a value of 5,000 bytes", "bi.tag;a=" + strings.Repeat("v", 5000) + " 1 NOW\n"},
	{"tags: a name of 2,000 bytes", "bi.tag;" + strings.Repeat("n", 2000) + "=v 1 NOW\n"},
	{"tags of OpenMetrics", `bi.om{a="b",c="d"} 1 NOW` + "\n"},
	{"tags of OpenMetrics: no value", `bi.om{a=""} 1 NOW` + "\n"},
	{"an HTTP request", "GET / HTTP/1.1\r\nHost: shale\r\nContent-Length: 3\r\n\r\nabc\n"},
	{"Graphite pickle", "\x00\x00\x00\x2e(lp0\n(S'a'\np1\n(L1L\nF1.0\ntp2\ntp3\na."},
	{"good lines around a bad one", "bi.good1 1 NOW\nbad\nbi.good2 2 NOW\n"},
}

func manyTags(n int) string {
	var sb strings.Builder
	for i := range n {
		fmt.Fprintf(&sb, ";t%d=v", i)
	}
	return sb.String()
}

func stamped(text string) string {
	now := time.Now()
	return strings.NewReplacer("NOW", strconv.FormatInt(now.Unix(), 10), "OLD", strconv.FormatInt(now.Add(-48*time.Hour).Unix(), 10),
		"NEW", strconv.FormatInt(now.Add(time.Hour).Unix(), 10)).Replace(text)
}

// byGraphite sends by any means and returns how many lines were stored, and what the log says.
func byGraphite(send func(t *testing.T, s *server)) func(*testing.T, *server) (string, string) {
	return func(t *testing.T, s *server) (outcome, text string) {
		// The log shows one bad line a second.
		time.Sleep(time.Until(s.lastBadLine.Add(1100 * time.Millisecond)))
		at, before := s.logSize(), s.counters(t)
		send(t, s)
		after := s.settled(t)
		text = badLineText(s.logSince(at))
		if text != "" {
			s.lastBadLine = time.Now()
		}
		delta := func(name string) (n int) {
			for k, v := range after {
				if k == name || strings.HasPrefix(k, name+"{") {
					n += int(v - before[k])
				}
			}
			return n
		}
		return fmt.Sprintf("%d of %d lines stored", delta("shale_graphite_received_points_total"), delta("shale_graphite_lines_total")), text
	}
}

// settled waits until no connection is open and no counter moves.
func (s *server) settled(t *testing.T) map[string]float64 {
	last, quiet := s.counters(t), 0
	for began := time.Now(); quiet < 3 && time.Since(began) < 20*time.Second; {
		time.Sleep(60 * time.Millisecond)
		next := s.counters(t)
		quiet++
		for name, v := range next {
			if strings.HasPrefix(name, "shale_graphite_") && v != last[name] || name == "shale_graphite_connections" && v > 0 {
				quiet = 0
			}
		}
		last = next
	}
	return last
}

var logged = regexp.MustCompile(`level=(WARN|ERROR) msg=("(?:[^"\\]|\\.)*"|\S+)`)

// badLineText returns the messages that were logged, each once.
func badLineText(log string) string {
	var list []string
	seen := map[string]bool{}
	for _, m := range logged.FindAllStringSubmatch(log, -1) {
		text := strings.Trim(m[2], `"`)
		if text == "rows refused" { // once a minute
			continue
		}
		if !seen[text] {
			seen[text] = true
			list = append(list, text)
		}
	}
	return strings.Join(list, "; ")
}

// dial opens a connection to the Graphite port and closes it when the test ends.
func (s *server) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", s.graphiteAddr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

func write(conn net.Conn, text string) {
	// The server may close early, which is fine: the counters tell the rest.
	_ = conn.SetWriteDeadline(time.Now().Add(20 * time.Second))
	_, _ = conn.Write([]byte(text))
}

func graphiteTCP() group {
	g := group{file: "graphite-tcp", title: "Graphite lines by TCP"}
	for _, l := range lines {
		g.attacks = append(g.attacks, attack{input: l.input, anywhere: true, do: byGraphite(func(t *testing.T, s *server) {
			conn := s.dial(t)
			write(conn, stamped(l.lines))
			conn.Close()
		})})
	}
	stream := func(input string, send func(t *testing.T, s *server, c *net.TCPConn)) {
		g.attacks = append(g.attacks, attack{input: input, do: byGraphite(func(t *testing.T, s *server) {
			c := s.dial(t)
			send(t, s, c)
			c.Close()
		})})
	}
	stream("a line of 20,000 bytes, then a good one", func(t *testing.T, s *server, c *net.TCPConn) {
		write(c, stamped(strings.Repeat("n", 20000)+" 1 NOW\nbi.after 1 NOW\n"))
	})
	stream("10 MB without a newline, then a good line", func(t *testing.T, s *server, c *net.TCPConn) {
		write(c, stamped(strings.Repeat("n", 10_000_000)+"\nbi.after10 1 NOW\n"))
	})
	stream("10 MB of NUL", func(t *testing.T, s *server, c *net.TCPConn) { write(c, strings.Repeat("\x00", 10_000_000)) })
	stream("4 million newlines", func(t *testing.T, s *server, c *net.TCPConn) { write(c, strings.Repeat("\n", 4_000_000)) })
	stream("500,000 bad lines", func(t *testing.T, s *server, c *net.TCPConn) { write(c, strings.Repeat("bad\n", 500_000)) })
	stream("a million new series", func(t *testing.T, s *server, c *net.TCPConn) {
		var sb strings.Builder
		for i := range 1_000_000 {
			fmt.Fprintf(&sb, "bi.new.%d 1 NOW\n", i)
		}
		_ = c.SetWriteDeadline(time.Now().Add(60 * time.Second))
		_, _ = c.Write([]byte(stamped(sb.String())))
	})
	// The speed of the disk decides whether there is always room, and how often a retry is needed.
	last := &g.attacks[len(g.attacks)-1]
	last.uncounted = true
	send := last.do
	last.do = func(t *testing.T, s *server) (string, string) {
		outcome, text := send(t, s)
		return outcome, strings.TrimPrefix(text, "the write path refuses points for now; retrying")
	}
	stream("a last line without a newline, half closed", func(t *testing.T, s *server, c *net.TCPConn) {
		write(c, stamped("bi.half 1 NOW"))
		if err := c.CloseWrite(); err != nil {
			t.Error(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("the server did not close its half: %d %v", n, err)
		}
	})
	stream("a last line without a newline, with a cut time", func(t *testing.T, s *server, c *net.TCPConn) { write(c, stamped("bi.cut 1 NOW")[:17]) })
	stream("a connection that is reset inside a line", func(t *testing.T, s *server, c *net.TCPConn) {
		write(c, stamped("bi.reset1 1 NOW\nbi.reset2 1 1"))
		time.Sleep(200 * time.Millisecond)
		_ = c.SetLinger(0)
	})
	stream("a byte at a time", func(t *testing.T, s *server, c *net.TCPConn) {
		for _, b := range []byte(stamped("bi.slow 1 NOW\n")) {
			write(c, string(b))
			time.Sleep(5 * time.Millisecond)
		}
	})
	stream("a TLS hello", func(t *testing.T, s *server, c *net.TCPConn) {
		// Its start, with the random bytes fixed: a newline among them ends a line.
		write(c, "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\xf1\xe2\n\xd3\xc4\xff\n\xb5\xa6\xfe\n")
	})
	g.attacks = append(g.attacks, attack{input: "40 connections where 32 may be open", do: byGraphite(func(t *testing.T, s *server) {
		var open []*net.TCPConn
		for range connections + 8 {
			open = append(open, s.dial(t))
		}
		time.Sleep(300 * time.Millisecond)
		for i, c := range open {
			write(c, stamped(fmt.Sprintf("bi.conn.%d 1 NOW\n", i)))
		}
		time.Sleep(300 * time.Millisecond)
		for _, c := range open {
			c.Close()
		}
	})})
	return g
}

func graphiteUDP() group {
	g := group{file: "graphite-udp", title: "Graphite lines by UDP"}
	datagram := func(input string, send func(t *testing.T, c net.Conn)) {
		g.attacks = append(g.attacks, attack{input: input, do: byGraphite(func(t *testing.T, s *server) {
			conn, err := net.Dial("udp", s.graphiteAddr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			send(t, conn)
			time.Sleep(100 * time.Millisecond)
		})})
	}
	for _, l := range lines {
		switch l.input {
		case "empty lines and white space", "two tokens", "value: NaN", "time: 1e300", "invalid UTF-8 in the name", "good lines around a bad one",
			"tags: without =", "time: two days ago", "CR without LF between two lines", "tags of OpenMetrics":
			datagram(l.input, func(t *testing.T, c net.Conn) { write(c, stamped(l.lines)) })
		}
	}
	datagram("an empty datagram", func(t *testing.T, c net.Conn) { write(c, "") })
	datagram("a datagram without a newline", func(t *testing.T, c net.Conn) { write(c, stamped("bi.udp 1 NOW")) })
	datagram("a datagram of 65,507 bytes of one line", func(t *testing.T, c net.Conn) { write(c, strings.Repeat("n", 65507)) })
	datagram("a datagram of 65,507 NULs", func(t *testing.T, c net.Conn) { write(c, strings.Repeat("\x00", 65507)) })
	datagram("a datagram of 65,507 newlines", func(t *testing.T, c net.Conn) { write(c, strings.Repeat("\n", 65507)) })
	datagram("a datagram of 65 KB of good lines, the last one cut", func(t *testing.T, c net.Conn) {
		one := stamped("bi.udp.many 1 NOW\n")
		write(c, strings.Repeat(one, 65000/len(one))+"bi.udp.cut 1")
	})
	datagram("64 random datagrams", func(t *testing.T, c net.Conn) {
		for i := range 64 {
			b := make([]byte, 1000)
			for j := range b {
				b[j] = byte((i*7919+j*104729)>>3&0xff | 0x80)
			}
			write(c, string(b))
			time.Sleep(time.Millisecond) // the system's buffer may be small
		}
	})
	return g
}

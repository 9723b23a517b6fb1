package server

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func testOptions() Options {
	return Options{Memory: 64 << 20, MaxItem: 1 << 20, MaxConns: 100, SameRead: 10 * time.Second}
}

// start runs a server. It ends with its test.
func start(t testing.TB, o Options) (*Server, string) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(l)
	return s, l.Addr().String()
}

type client struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	cl := &client{c, t, bufio.NewReader(c)}
	cl.patient()
	return cl
}

// patient gives what follows more time.
func (c *client) patient() {
	c.t.Helper()
	if err := c.SetDeadline(time.Now().Add(10 * patience)); err != nil {
		c.t.Fatal(err)
	}
}

// ask sends a request and expects a response.
func (c *client) ask(request, want string) {
	c.t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		c.t.Fatal(err)
	}
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c.r, got); err != nil || string(got) != want {
		c.t.Fatalf("%.200q: got %.300q (%v), expected %.300q", request, got[:n], err, want)
	}
}

// TestCommands: what memcached itself would say, in a session that it was tried with.
func TestCommands(t *testing.T) {
	run := func(t *testing.T, addr string) {
		c := dial(t, addr)
		for _, s := range [][2]string{
			{"get a\r\n", "END\r\n"},
			{"set a 5 0 3\r\nabc\r\n", "STORED\r\n"},
			{"get a b a\r\n", "VALUE a 5 3\r\nabc\r\nVALUE a 5 3\r\nabc\r\nEND\r\n"},
			{"add a 0 0 1\r\nx\r\n", "NOT_STORED\r\n"},
			{"append a 0 0 2\r\nde\r\nprepend a 0 0 1\r\n_\r\nget a\r\n", "STORED\r\nSTORED\r\nVALUE a 5 6\r\n_abcde\r\nEND\r\n"},
			{"set n 0 0 1 noreply\r\n9\r\nincr n 1\r\ndecr n 11\r\nincr n x\r\nincr a 1\r\n", "10\r\n0\r\nCLIENT_ERROR invalid numeric delta argument\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n"},
			{"cas a 0 0 1 1\r\nx\r\ncas none 0 0 1 1\r\nx\r\n", "EXISTS\r\nNOT_FOUND\r\n"},
			{"touch a 100\r\ntouch none 100\r\ngat 0 a\r\n", "TOUCHED\r\nNOT_FOUND\r\nVALUE a 5 6\r\n_abcde\r\nEND\r\n"},
			{"set gone 0 -1 1\r\nx\r\nget gone\r\n", "STORED\r\nEND\r\n"},
			{"set big 0 0 2000000\r\n" + strings.Repeat("x", 2000000) + "\r\nget big a\r\n", "SERVER_ERROR object too large for cache\r\nVALUE a 5 6\r\n_abcde\r\nEND\r\n"},
			{"set a 0 0 3\r\nabcd\r\n", "CLIENT_ERROR bad data chunk\r\n"},
			{"\r\n", "ERROR\r\nERROR\r\n"},
			{"nonsense\r\nset a\r\nget\r\n", "ERROR\r\nERROR\r\nERROR\r\n"},
			{"get " + strings.Repeat("k", 251) + "\r\n", "CLIENT_ERROR bad command line format\r\n"},
			{"mg a v f s k Oxy\r\n", "VA 6 f5 s6 ka Oxy\r\n_abcde\r\n"},
			{"mg none v\r\nmg none v q\r\nmn\r\n", "EN\r\nMN\r\n"},
			{"ms m 2 T100 F7\r\nhi\r\nmg m v f t\r\n", "HD\r\nVA 2 f7 t100\r\nhi\r\n"},
			{"ms Zm9v 2 b k\r\nhi\r\nmg Zm9v b k v\r\nget foo\r\n", "HD kZm9v b\r\nVA 2 kZm9v b\r\nhi\r\nVALUE foo 0 2\r\nhi\r\nEND\r\n"},
			{"mg viv N30 v\r\nmg viv N30 v\r\nms viv 1\r\nx\r\nmg viv v N30\r\n", "VA 0 W\r\n\r\nVA 0 Z\r\n\r\nHD\r\nVA 1\r\nx\r\n"},
			{"md viv I T30\r\nmg viv v\r\nmg viv v\r\n", "HD\r\nVA 1 X W\r\nx\r\nVA 1 Z X\r\nx\r\n"},
			{"ma c\r\nma c N0 J13 v\r\nma c D7 v\r\nma c MD D100 v q\r\nma c v\r\n", "NF\r\nVA 2\r\n13\r\nVA 2\r\n20\r\nVA 1\r\n1\r\n"},
			{"md m q\r\nmd m\r\n", "NF\r\n"},
			{"ms x 1 Z\r\nx\r\nmg x q\r\nmn\r\n", "CLIENT_ERROR invalid flag\r\nMN\r\n"},
			{"delete a\r\ndelete a\r\n", "DELETED\r\nNOT_FOUND\r\n"},
			{"verbosity 1\r\nflush_all\r\nget foo\r\n", "OK\r\nOK\r\nEND\r\n"},
			{"set f 0 0 1\r\nx\r\nflush_all 1000\r\nget f\r\n", "STORED\r\nOK\r\nVALUE f 0 1\r\nx\r\nEND\r\n"},
			{"shutdown\r\nstats sizes\r\nstats foo\r\n", "ERROR: shutdown not enabled\r\nSTAT sizes_status disabled\r\nEND\r\nERROR\r\n"},
		} {
			c.ask(s[0], s[1])
		}
		if _, err := io.WriteString(c, "quit\r\nget f\r\n"); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(c.r); err != nil || len(rest) > 0 {
			t.Errorf("after quit: %q, %v", rest, err)
		}
	}
	t.Run("shale", func(t *testing.T) {
		_, addr := start(t, testOptions())
		run(t, addr)
	})
	t.Run("memcached", func(t *testing.T) { run(t, memcachetest.Start(t).Addr) })
}

// TestPieces: requests may be cut anywhere.
func TestPieces(t *testing.T) {
	_, addr := start(t, testOptions())
	session := "set a 1 0 5\r\nhello\r\nget a\r\nms b 3 T0\r\nabc\r\nmg b v\r\nincr a 1\r\nget " + strings.Repeat("k", 30) + " a b\r\ndelete a noreply\r\nmn\r\n"
	want := "STORED\r\nVALUE a 1 5\r\nhello\r\nEND\r\nHD\r\nVA 3\r\nabc\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\nVALUE a 1 5\r\nhello\r\nVALUE b 0 3\r\nabc\r\nEND\r\nMN\r\n"
	for cut := 1; cut < len(session); cut++ {
		c := dial(t, addr)
		if _, err := io.WriteString(c, session[:cut]); err != nil {
			t.Fatal(err)
		}
		c.ask(session[cut:], want)
		_ = c.Close()
	}
	c := dial(t, addr)
	for i := range len(session) - 1 {
		if _, err := io.WriteString(c, session[i:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	c.ask(session[len(session)-1:], want)
}

// TestBinary: a client of the binary protocol gets a response that it can read.
func TestBinary(t *testing.T) {
	_, addr := start(t, testOptions())
	c := dial(t, addr)
	request := make([]byte, 24)
	request[0], request[1], request[15] = 0x80, 0x0b, 7
	if _, err := c.Write(request); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c.r)
	if err != nil || len(got) < 24 || got[0] != 0x81 || got[1] != 0x0b || got[7] != 0x81 || got[15] != 7 || int(got[11]) != len(got)-24 || !strings.Contains(string(got[24:]), "text") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLimits: connections, idle ones, lines and buffers are bounded.
func TestLimits(t *testing.T) {
	o := testOptions()
	o.MaxConns, o.IdleTimeout = 2, time.Minute
	s, addr := start(t, o)
	a, b := dial(t, addr), dial(t, addr)
	a.ask("mn\r\n", "MN\r\n")
	b.ask("mn\r\n", "MN\r\n")
	if text, err := io.ReadAll(dial(t, addr)); err != nil || string(text) != "ERROR Too many open connections\r\n" {
		t.Errorf("a client too many: %q, %v", text, err)
	}
	if _, err := io.WriteString(b, strings.Repeat("x", 3000)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(b.r) // it is closed, with or without a reset
	for end := time.Now().Add(patience); s.count.conns.Load() > 1 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if n := s.count.conns.Load(); n != 1 {
		t.Errorf("%d connections after a line without an end", n)
	}
	// Without memory for buffers, large values are refused, and small ones served.
	s.buffers.left.Store(0)
	a.ask("set a 0 0 1\r\nx\r\n", "STORED\r\n")
	a.ask("set a 0 0 100000\r\n"+strings.Repeat("x", 100000)+"\r\nget a\r\n", noStore+"\r\nEND\r\n")
	a.ask("ms a 100000\r\n"+strings.Repeat("x", 100000)+"\r\nmg a\r\n", noStore+"\r\nEN\r\n")
	s.buffers.left.Store(s.buffers.total)
	a.ask("set a 0 0 100000\r\n"+strings.Repeat("x", 100000)+"\r\n", "STORED\r\n")
	if s.count.noMemory.Load() != 2 {
		t.Errorf("%d refusals for want of memory", s.count.noMemory.Load())
	}
}

// TestWriteTimeout: the time for a response begins with it, and not with the one before.
func TestWriteTimeout(t *testing.T) {
	s, err := New(testOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.writeTimeout = time.Second
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(l)
	c := dial(t, l.Addr().String())
	value := strings.Repeat("v", 100_000)
	c.ask("set a 0 0 100000\r\n"+value+"\r\nget a\r\n", "STORED\r\nVALUE a 0 100000\r\n"+value+"\r\nEND\r\n")
	time.Sleep(1100 * time.Millisecond) // the time of the response before is over
	c.ask("mn\r\n", "MN\r\n")
}

// TestIdle: a connection that asks for nothing is closed.
func TestIdle(t *testing.T) {
	o := testOptions()
	o.IdleTimeout = 50 * time.Millisecond
	s, addr := start(t, o)
	if _, err := io.ReadAll(dial(t, addr).r); err != nil {
		t.Error(err)
	}
	if s.count.idle.Load() != 1 {
		t.Errorf("%d connections were idle", s.count.idle.Load())
	}
}

// TestNoAllocations: gets of memory and sets allocate nothing, the client's part included.
func TestNoAllocations(t *testing.T) {
	_, addr := start(t, testOptions())
	c := dial(t, addr)
	value := strings.Repeat("v", 1000)
	for _, s := range []struct{ name, request, want string }{
		{"set", "set key 3 0 1000\r\n" + value + "\r\n", "STORED\r\n"},
		{"get", "get key\r\n", "VALUE key 3 1000\r\n" + value + "\r\nEND\r\n"},
		{"gets", "get key none\r\n", "VALUE key 3 1000\r\n" + value + "\r\nEND\r\n"},
		{"ms", "ms key 1000 T0\r\n" + value + "\r\n", "HD\r\n"},
		{"mg", "mg key v s k q O123\r\n", "VA 1000 s1000 kkey O123\r\n" + value + "\r\n"},
		{"delete", "delete none\r\n", "NOT_FOUND\r\n"},
	} {
		request, got := []byte(s.request), make([]byte, len(s.want))
		if n := testing.AllocsPerRun(1000, func() {
			if _, err := c.Write(request); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c.r, got); err != nil {
				t.Fatal(err)
			}
		}); n > 0.1 || string(got) != s.want {
			t.Errorf("%s: %.2f allocations; %.100q", s.name, n, got)
		}
	}
}

// TestStats: tools find what they look for.
func TestStats(t *testing.T) {
	_, addr := start(t, testOptions())
	c := dial(t, addr)
	c.ask("set a 0 0 1\r\nx\r\nget a b\r\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n")
	for kind, want := range map[string][]string{
		"":          {"cmd_get 2", "get_hits 1", "get_misses 1", "curr_items 1", "limit_maxbytes 67108864", "curr_connections 1", "version " + Version},
		" settings": {"item_size_max 1048576", "maxbytes 67108864", "udpport 0"},
		" slabs":    {"active_slabs 0"}, " conns": {":state conn_parse_cmd"},
	} {
		if _, err := io.WriteString(c, "stats"+kind+"\r\n"); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for !strings.HasSuffix(text.String(), "END\r\n") {
			line, err := c.r.ReadString('\n')
			if err != nil {
				t.Fatalf("%v after %q", err, text.String())
			}
			text.WriteString(line)
		}
		for _, w := range want {
			if !strings.Contains(text.String(), w+"\r\n") {
				t.Errorf("stats%s: no %q in\n%s", kind, w, text.String())
			}
		}
	}
}

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

package router

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/logtest"
	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logged keeps the lines of an error log.
type logged struct{ logtest.Buffer }

func (l *logged) lines() (all []map[string]any) {
	for line := range strings.Lines(l.String()) {
		m := map[string]any{}
		if json.Unmarshal([]byte(line), &m) == nil {
			all = append(all, m)
		}
	}
	return all
}

// start runs a router for servers, with more lines of configuration.
func start(t testing.TB, more string, servers ...string) (addr string, r *Router, log *logged) {
	t.Helper()
	pools, err := ParseConfig([]byte(config("127.0.0.1:1", more, servers...)))
	if err != nil {
		t.Fatal(err)
	}
	pools[0].Listen = "127.0.0.1:0"
	log = &logged{}
	if r, err = Start(Options{MaxClients: 1000, Log: NewErrorLog(log)}, pools); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r.Addr("p").String(), r, log
}

func config(listen, more string, servers ...string) string {
	text := "p:\n  listen: " + listen + "\n" + more + "  servers:\n"
	for i, s := range servers {
		text += fmt.Sprintf("   - %s:1 server%d\n", s, i)
	}
	return text
}

// conn is a client.
type conn struct {
	net.Conn
	r *bufio.Reader
	t testing.TB
}

func dial(t testing.TB, addr string) *conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	return &conn{c, bufio.NewReader(c), t}
}

// ask sends a text and expects a response.
func (c *conn) ask(text, want string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
	c.expect(text, want)
}

func (c *conn) expect(text, want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c.r, got)
	if string(got[:n]) != want {
		c.t.Fatalf("%.200q: got %.200q, want %.200q, %v", text, got[:n], want, err)
	}
}

func memcacheds(t testing.TB, n int, args ...string) (addrs []string) {
	t.Helper()
	for range n {
		addrs = append(addrs, memcachetest.Start(t, append([]string{"-m", "64"}, args...)...).Addr)
	}
	return addrs
}

func TestCommands(t *testing.T) {
	addr, r, _ := start(t, "", memcacheds(t, 3)...)
	c := dial(t, addr)
	for _, step := range [][2]string{
		{"get a\r\n", "END\r\n"},
		{"set a 5 0 3\r\nfoo\r\n", "STORED\r\n"},
		{"get a\r\n", "VALUE a 5 3\r\nfoo\r\nEND\r\n"},
		{"add a 0 0 1\r\nx\r\n", "NOT_STORED\r\n"},
		{"append a 0 0 3\r\nbar\r\n", "STORED\r\n"},
		{"prepend a 0 0 1\r\n-\r\n", "STORED\r\n"},
		{"get a\r\n", "VALUE a 5 7\r\n-foobar\r\nEND\r\n"},
		{"replace none 0 0 1\r\nx\r\n", "NOT_STORED\r\n"},
		{"set n 0 0 1\r\n5\r\n", "STORED\r\n"},
		{"incr n 10\r\n", "15\r\n"}, {"decr n 20\r\n", "0\r\n"}, {"incr none 1\r\n", "NOT_FOUND\r\n"},
		{"touch a 100\r\n", "TOUCHED\r\n"}, {"gat 0 a\r\n", "VALUE a 5 7\r\n-foobar\r\nEND\r\n"},
		{"set b 0 -1 1\r\nx\r\n", "STORED\r\n"}, {"get b\r\n", "END\r\n"},
		{"delete a\r\n", "DELETED\r\n"}, {"delete a\r\n", "NOT_FOUND\r\n"},
		// Neither noreply nor q gets a response, whatever the server says.
		{"set q 0 0 1 noreply\r\nx\r\ndelete none noreply\r\nincr q 1 noreply\r\nget q\r\n", "VALUE q 0 1\r\nx\r\nEND\r\n"},
		{"mg none v q\r\nmg q v q k\r\nms m 2 q T0\r\nhi\r\nmd none q\r\nmn\r\n", "VA 1 kq\r\nx\r\nMN\r\n"},
		{"mg m v O77 k\r\n", "VA 2 O77 km\r\nhi\r\n"}, {"ms m 2 ME\r\nxx\r\n", "NS\r\n"}, {"ma n q D3\r\nmg n v\r\n", "VA 2\r\n3 \r\n"},
		// Mistakes are answered, and the connection goes on.
		{"hello\r\n", "ERROR\r\n"}, {"get\r\n", "ERROR\r\n"}, {"set k x 0 1\r\n", badLine + "\r\n"}, {"get " + strings.Repeat("k", 251) + "\r\n", badKey + "\r\n"},
		{"set k 0 0 2\r\nabcd", "CLIENT_ERROR bad data chunk\r\n"}, {"get q\r\n", "VALUE q 0 1\r\nx\r\nEND\r\n"},
		{"\r\nmn\r\n", "MN\r\n"},
	} {
		c.ask(step[0], step[1])
	}
	var all, want strings.Builder
	for i := range 60 {
		key := fmt.Sprintf("multi%d", i)
		if i%3 != 0 {
			c.ask(fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(key), key), "STORED\r\n")
			fmt.Fprintf(&want, "VALUE %s 0 %d\r\n%s\r\n", key, len(key), key)
		}
		all.WriteString(" " + key)
	}
	got := ""
	if _, err := io.WriteString(c, "get"+all.String()+"\r\n"); err != nil {
		t.Fatal(err)
	}
	for !strings.HasSuffix(got, "END\r\n") {
		line, err := c.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		got += line
	}
	if len(got) != want.Len()+len("END\r\n") {
		t.Errorf("a get of 60 keys: got %d bytes, want %d", len(got), want.Len()+5)
	}
	for i := range 60 {
		if has := strings.Contains(got, fmt.Sprintf("VALUE multi%d 0", i)); has != (i%3 != 0) {
			t.Errorf("multi%d: %v", i, has)
		}
	}
	var stats bytes.Buffer
	if err := r.WriteStats(&stats); err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Service string
		P       map[string]json.RawMessage
	}
	if err := json.Unmarshal(stats.Bytes(), &parsed); err != nil || parsed.Service != "nutcracker" || len(parsed.P) != 6+3 {
		t.Errorf("%s: %v, %v", stats.Bytes(), parsed, err)
	}
	c.ask("quit\r\n", "")
	if _, err := c.r.ReadByte(); err != io.EOF {
		t.Errorf("after quit: %v", err)
	}
}

// TestTooLarge is the story of a report: a value of 2,987,402 bytes, which twemproxy sent on, so that all
// that waited on the same connection failed.
func TestTooLarge(t *testing.T) {
	addr, r, log := start(t, "", memcacheds(t, 1)...)
	stop := make(chan struct{})
	var strangers sync.WaitGroup
	for i := range 4 {
		c := dial(t, addr)
		strangers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				c.ask(fmt.Sprintf("set s%d 0 0 1\r\nx\r\nget s%d\r\n", i, i), fmt.Sprintf("STORED\r\nVALUE s%d 0 1\r\nx\r\nEND\r\n", i))
			}
		})
	}
	c := dial(t, addr)
	const size = 2987402
	value := strings.Repeat("b", size)
	c.ask(fmt.Sprintf("set 6f425180black_base.bank_codes 0 86700 %d\r\n%s\r\n", size, value), "SERVER_ERROR object too large for cache\r\n")
	c.ask(fmt.Sprintf("get s0\r\nset 6f425180black_base.bank_codes 0 86700 %d noreply\r\n%s\r\nmn\r\n", size, value), "VALUE s0 0 1\r\nx\r\nEND\r\nMN\r\n")
	close(stop)
	strangers.Wait()
	lines := log.lines()
	if len(lines) != 2 {
		t.Fatalf("%d lines: %v", len(lines), lines)
	}
	for name, want := range map[string]any{"class": "too_large", "op": "set", "key_prefix": "6f425180black_", "value_bytes": float64(size), "requests_failed": float64(1), "bytes_sent": float64(0), "pool": "p"} {
		if lines[0][name] != want {
			t.Errorf("%s is %v, want %v", name, lines[0][name], want)
		}
	}
	if b := r.pools[0].state.Load().backends[0]; b.c.tooLarge.Load() != 2 || b.itemMax.Load() != 1<<20 || b.c.errors.Load() != 0 {
		t.Errorf("%d refused, limit %d, %d errors", b.c.tooLarge.Load(), b.itemMax.Load(), b.c.errors.Load())
	}
}

// TestFragments sends requests byte by byte, and in pieces of all sizes: the responses are the same.
func TestFragments(t *testing.T) {
	addr, _, _ := start(t, "", memcacheds(t, 2)...)
	text := "set a 0 0 5\r\nhello\r\nget a b\r\nset b 0 0 3 noreply\r\nbye\r\nget b\r\nmg a v k\r\nbad\r\ndelete a\r\ngets none\r\nms c 2\r\nxx\r\nmn\r\n"
	want := "STORED\r\nVALUE a 0 5\r\nhello\r\nEND\r\nVALUE b 0 3\r\nbye\r\nEND\r\nVA 5 ka\r\nhello\r\nERROR\r\nDELETED\r\nEND\r\nHD\r\nMN\r\n"
	c := dial(t, addr)
	for piece := 1; piece <= len(text); piece += 1 + piece/3 {
		for at := 0; at < len(text); at += piece {
			if _, err := io.WriteString(c, text[at:min(len(text), at+piece)]); err != nil {
				t.Fatal(err)
			}
		}
		c.expect(fmt.Sprintf("pieces of %d", piece), want)
		c.ask("delete b\r\n", "DELETED\r\n")
	}
}

// TestFaults breaks the way to a server: each request gets a response, no response is another's, and the log
// names each fault.
func TestFaults(t *testing.T) {
	server := memcachetest.Start(t, "-m", "64")
	proxy := memcachetest.NewProxy(t, server.Addr)
	addr, _, log := start(t, "  timeout: 300\n", proxy.Addr)
	c := dial(t, addr)
	read := func() string {
		line, err := c.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	c.ask("set k 0 0 1\r\n1\r\n", "STORED\r\n")
	for _, fault := range []struct {
		name  string
		f     memcachetest.Faults
		class string
	}{
		{"cut", memcachetest.Faults{Cut: 1}, "eof"}, {"refused", memcachetest.Faults{Refuse: true}, "eof"}, {"garbage", memcachetest.Faults{Flip: 1}, "timeout"}, {"stalled", memcachetest.Faults{Stall: true}, "timeout"},
		{"late", memcachetest.Faults{Delay: 500 * time.Millisecond}, "timeout"},
	} {
		before := len(log.lines())
		proxy.Inject(fault.f)
		if fault.f.Refuse {
			proxy.Drop()
		}
		failed := 0
		for range 6 {
			if _, err := io.WriteString(c, "get k\r\n"); err != nil {
				t.Fatal(err)
			}
			switch line := read(); {
			case strings.HasPrefix(line, "SERVER_ERROR "):
				failed++
			case line == "VALUE k 0 1\r\n":
				if read()+read() != "1\r\nEND\r\n" {
					t.Fatalf("%s: a wrong value", fault.name)
				}
			default:
				t.Fatalf("%s: %q", fault.name, line)
			}
		}
		found := false
		for _, line := range log.lines()[before:] {
			found = found || line["class"] == fault.class || line["class"] == "reset"
		}
		if failed == 0 || !found {
			t.Errorf("%s: %d requests failed, logged %v", fault.name, failed, log.lines()[before:])
		}
		proxy.Inject(memcachetest.Faults{})
		proxy.Drop()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if _, err := io.WriteString(c, "get k\r\n"); err != nil {
				t.Fatal(err)
			}
			if line := read(); line == "VALUE k 0 1\r\n" {
				if read()+read() != "1\r\nEND\r\n" {
					t.Fatalf("after %s: a wrong value", fault.name)
				}
				break
			}
			if time.Now().After(end) {
				t.Fatalf("after %s the server is not used again", fault.name)
			}
		}
	}
	server.Kill()
	for range 3 { // the first one may find that the open connection ends
		if _, err := io.WriteString(c, "get k\r\n"); err != nil {
			t.Fatal(err)
		}
		if line := read(); !strings.HasPrefix(line, "SERVER_ERROR Connection ") {
			t.Errorf("a server that is down: %q", line)
		}
	}
}

// TestSlowStart: a server takes longer to name its limit than the router waits for it. That response is not
// taken for one of a request.
func TestSlowStart(t *testing.T) {
	proxy := memcachetest.NewProxy(t, memcacheds(t, 1)[0])
	proxy.Inject(memcachetest.Faults{Delay: settingsTimeout + 200*time.Millisecond})
	addr, _, log := start(t, "", proxy.Addr)
	c := dial(t, addr)
	if _, err := io.WriteString(c, "set k 0 0 1\r\nx\r\nget k\r\n"); err != nil {
		t.Fatal(err)
	}
	c.expect("a slow server", "STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n")
	if lines := log.lines(); lines != nil {
		t.Errorf("%v", lines)
	}
}

// TestEjection: after two failures a server is left out, and its keys are on the others.
func TestEjection(t *testing.T) {
	servers := []*memcachetest.Server{memcachetest.Start(t), memcachetest.Start(t), memcachetest.Start(t)}
	addr, r, _ := start(t, "  auto_eject_hosts: true\n  server_retry_timeout: 100000\n  server_failure_limit: 2\n", servers[0].Addr, servers[1].Addr, servers[2].Addr)
	servers[1].Kill()
	c := dial(t, addr)
	failed := 0
	for i := range 200 {
		if _, err := fmt.Fprintf(c, "set key%d 0 0 1\r\nx\r\n", i); err != nil {
			t.Fatal(err)
		}
		line, err := c.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line != "STORED\r\n" {
			failed++
		}
	}
	if ejects := r.pools[0].c.ejects.Load(); failed != 2 || ejects != 1 {
		t.Errorf("%d requests failed, %d ejects", failed, ejects)
	}
	s := r.pools[0].state.Load()
	s.now = func() time.Time { return time.Now().Add(101 * time.Second) }
	if s.pick([]byte("x")); s.rebuild.Load() != 0 {
		t.Error("the server does not come back")
	}
}

// TestReload takes servers away and adds others, while clients are served.
func TestReload(t *testing.T) {
	servers := memcacheds(t, 4)
	addr, r, _ := start(t, "", servers[:3]...)
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		c := dial(t, addr)
		clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("c%d.%d", i, n)
				c.ask("set "+key+" 0 0 1\r\nx\r\n", "STORED\r\n")
			}
		})
	}
	for i := range 12 {
		list := servers[:3]
		if i%2 == 0 {
			list = servers[1:]
		}
		pools, err := ParseConfig([]byte(config("127.0.0.1:1", "", list...)))
		if err != nil {
			t.Fatal(err)
		}
		pools[0].Listen = "127.0.0.1:0"
		if err := r.Reload(pools); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	close(stop)
	clients.Wait()
	old, _ := ParseConfig([]byte(config("127.0.0.1:1", "", servers[:3]...)))
	with, _ := ParseConfig([]byte(config("127.0.0.1:1", "", servers...)))
	if share, err := Moved(old[0], with[0], 20_000); err != nil || share < 0.15 || share > 0.4 {
		t.Errorf("a fourth server moves %.2f of the keys, %v", share, err)
	}
	if share, err := Moved(old[0], old[0], 1000); err != nil || share != 0 {
		t.Errorf("no change moves %.2f of the keys, %v", share, err)
	}
}

// TestManyClients: each reads what it wrote, over several connections to each server.
func TestManyClients(t *testing.T) {
	addr, _, _ := start(t, "  server_connections: 3\n", memcacheds(t, 3)...)
	var clients sync.WaitGroup
	for i := range 50 {
		c := dial(t, addr)
		clients.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for n := range 40 {
				var ask, want strings.Builder
				for range 1 + r.IntN(20) {
					key, value := fmt.Sprintf("k%d.%d", i, r.IntN(10)), fmt.Sprintf("%d.%d.%s", i, n, strings.Repeat("v", r.IntN(3000)))
					fmt.Fprintf(&ask, "set %s 0 0 %d\r\n%s\r\nget %s\r\n", key, len(value), value, key)
					fmt.Fprintf(&want, "STORED\r\nVALUE %s 0 %d\r\n%s\r\nEND\r\n", key, len(value), value)
				}
				c.ask(ask.String(), want.String())
			}
		})
	}
	clients.Wait()
}

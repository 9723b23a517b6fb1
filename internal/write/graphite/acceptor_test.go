package graphite

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/auth/certstest"
	"github.com/shaledb/shale/internal/model"
)

func TestConnectionLimit(t *testing.T) {
	b := start(t, newStore(), Options{MaxConnections: 2}, limits())
	first, second := b.dial(t, "tcp"), b.dial(t, "tcp")
	b.want(t, b.metrics.connections, 2)
	third := b.dial(t, "tcp")
	if n, err := third.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Fatalf("%d, %v", n, err)
	}
	b.want(t, b.metrics.refused, 1)
	first.Close()
	b.want(t, b.metrics.connections, 1)
	fourth := b.dial(t, "tcp")
	say(t, fourth, "a 1 1700000000\n")
	say(t, second, "a 1 1700000000\n")
	b.s.wait(t, 2)
}

// dialFrom connects from another address of this host.
func dialFrom(t *testing.T, from string, to net.Addr) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	nc, err := d.Dial("tcp", to.String())
	if err != nil {
		t.Skip("no second address of this host: ", err) // only Linux has all of 127.0.0.0/8
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

// wantEnd expects the server to close a connection.
func wantEnd(t *testing.T, nc net.Conn) {
	t.Helper()
	_ = nc.SetReadDeadline(time.Now().Add(time.Minute))
	var slow net.Error
	if n, err := nc.Read(make([]byte, 1)); n != 0 || err == nil || errors.As(err, &slow) && slow.Timeout() {
		t.Errorf("%d, %v", n, err)
	}
}

// peers returns those of an acceptor that did not give way.
func (b *bench) peers(a *acceptor) (all []*peer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range a.conns {
		if p.in != nil {
			all = append(all, p)
		}
	}
	return all
}

// wantRead waits until all connections are being read.
func (b *bench) wantRead(t *testing.T, a *acceptor) {
	t.Helper()
	eventually(t, func() bool {
		return !slices.ContainsFunc(b.peers(a), func(p *peer) bool { return p.waits.Load() == 0 })
	}, b.log.String)
}

// TestFairConnections: a host that holds all connections does not keep others out. Of its connections the one
// that has been silent longest gives way, as long as it has more than the other host. None gives way while
// its lines are being taken.
func TestFairConnections(t *testing.T) {
	s := newStore()
	s.Gate = make(chan struct{})
	small := limits()
	small.MaxInflightBytes = 1 << 20
	b := start(t, s, Options{MaxConnections: 3}, small)
	first, silent, third := b.dial(t, "tcp"), b.dial(t, "tcp"), b.dial(t, "tcp")
	b.want(t, b.metrics.connections, 3)
	const lines = 100_000
	sent := make(chan error, 3)
	for i, nc := range []net.Conn{first, silent, third} {
		go func() {
			_, err := io.WriteString(nc, strings.Repeat(fmt.Sprintf("n%d 1 1700000000\n", i), lines))
			sent <- err
		}()
	}
	last := -1.
	eventually(t, func() bool { // all wait for memory, or for room in their queues
		before := last
		last = testutil.ToFloat64(b.metrics.tcp.bytes)
		time.Sleep(50 * time.Millisecond)
		return last == before && !slices.ContainsFunc(b.peers(b.text), func(p *peer) bool { return p.waits.Load() != 0 })
	}, b.log.String)
	wantEnd(t, dialFrom(t, "127.0.0.2", b.Addr()))
	close(s.Gate)
	for range 3 {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	s.wait(t, 3*lines)
	say(t, first, "a 1 1700000000\n")
	say(t, third, "b 1 1700000000\n")
	s.wait(t, 3*lines+2)
	b.wantRead(t, b.text)
	other := dialFrom(t, "127.0.0.2", b.Addr())
	wantEnd(t, silent)
	b.want(t, b.metrics.connections, 3)
	wantEnd(t, dialFrom(t, "127.0.0.2", b.Addr())) // two and one: it would only turn around
	wantEnd(t, b.dial(t, "tcp"))
	b.want(t, b.metrics.refused, 3)
	b.want(t, b.metrics.displaced, 1)
	for i, nc := range []net.Conn{first, third, other} {
		say(t, nc, fmt.Sprintf("c%d 1 1700000000\n", i))
	}
	s.wait(t, 3*lines+5)
}

// TestGiveWayDurable: a connection that gives way ends when its lines are durable, as any other, and not
// before.
func TestGiveWayDurable(t *testing.T) {
	for _, c := range []struct {
		name, sends string
		rows        int
		at          func(*bench) *acceptor
	}{
		{"lines", "a 1 1700000000\n", 1, func(b *bench) *acceptor { return b.text }},
		{"pickles", frameOf("a", 2, 1700000000) + "\x00\x00", 2, func(b *bench) *acceptor { return b.pickle }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore()
			s.Gate = make(chan struct{})
			b := start(t, s, Options{MaxConnections: 3, PickleListen: "127.0.0.1:0"}, limits())
			a := c.at(b)
			stored := make(chan int, 3)
			var held []net.Conn
			for range 3 {
				nc := dialFrom(t, "127.0.0.1", a.addr())
				say(t, nc, c.sends)
				held = append(held, nc)
			}
			full := func() bool {
				all := b.peers(a)
				return len(all) == 3 && !slices.ContainsFunc(all, func(p *peer) bool { return p.durable() || p.waits.Load() == 0 })
			}
			eventually(t, full, b.log.String)
			for _, nc := range held {
				go func() {
					_, _ = nc.Read(make([]byte, 1))
					stored <- s.stored()
				}()
			}
			dialFrom(t, "127.0.0.2", a.addr())
			b.want(t, b.metrics.displaced, 1)
			select {
			case n := <-stored:
				t.Fatalf("a connection ended when %d rows were durable", n)
			case <-time.After(100 * time.Millisecond):
			}
			close(s.Gate)
			if n := <-stored; n < c.rows {
				t.Errorf("a connection ended when %d of its %d rows were durable", n, c.rows)
			}
			s.wait(t, 3*c.rows)
			if c.name == "pickles" { // whose end was cut off
				b.wantLost(t, cutOff, 1)
			}
		})
	}
}

// TestGiveWayInTheMiddle: a connection in the middle of a line or of a frame keeps its place while others of
// its host are idle, however lately these were opened.
func TestGiveWayInTheMiddle(t *testing.T) {
	text, pickles := func(b *bench) *acceptor { return b.text }, func(b *bench) *acceptor { return b.pickle }
	small, large := frameOf("a", 2, 1), frameOf(strings.Repeat("a", 100), 1000, 1)
	for _, c := range []struct {
		name, begin, rest string // the begin ends in the middle
		before, after     int    // points
		at                func(*bench) *acceptor
	}{
		{"a line", "a 1 17000", "00000\n", 0, 1, text},
		{"a line after others", "a 1 1700000000\na 2 1700000001\na 3 17", "00000002\n", 2, 3, text},
		{"the length of a pickle", small[:2], small[2:], 0, 2, pickles},
		{"a pickle", small[:20], small[20:], 0, 2, pickles},
		{"a large pickle after a small one", small + large[:50_000], large[50_000:], 2, 1002, pickles},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore()
			b := start(t, s, Options{MaxConnections: 3, PickleListen: "127.0.0.1:0"}, limits())
			a := c.at(b)
			begun := dialFrom(t, "127.0.0.1", a.addr())
			say(t, begun, c.begin)
			s.wait(t, c.before)
			eventually(t, func() bool { return len(b.peers(a)) == 1 }, b.log.String)
			p := b.peers(a)[0]
			eventually(t, func() bool { return p.begun.Load() != 0 && p.waits.Load() != 0 && p.durable() }, b.log.String)
			dialFrom(t, "127.0.0.1", a.addr())
			dialFrom(t, "127.0.0.1", a.addr())
			b.want(t, b.metrics.connections, 3)
			b.wantRead(t, a)
			dialFrom(t, "127.0.0.2", a.addr())
			b.want(t, b.metrics.displaced, 1)
			say(t, begun, c.rest)
			s.wait(t, c.after)
			eventually(t, func() bool { return p.begun.Load() == 0 && p.waits.Load() != 0 }, b.log.String)
		})
	}
}

// TestDisplacedAreBounded: connections that gave way hold memory until their lines are durable. While the
// disk stalls there may be few of them.
func TestDisplacedAreBounded(t *testing.T) {
	const most, spare = 4, 4
	s := newStore()
	s.setFail(fmt.Errorf("%w: the disk stalls", model.ErrTransient))
	b := start(t, s, Options{MaxConnections: most}, limits())
	hold := func() { // with a line
		nc := b.dial(t, "tcp")
		before := testutil.ToFloat64(b.metrics.tcp.lines)
		say(t, nc, "a 1 1700000000\n")
		b.want(t, b.metrics.tcp.lines, before+1)
	}
	for range most {
		hold()
	}
	lines, refused := most, 0.
	for range 50 {
		b.wantRead(t, b.text)
		before := testutil.ToFloat64(b.metrics.accepted)
		other := dialFrom(t, "127.0.0.2", b.Addr())
		eventually(t, func() bool {
			return testutil.ToFloat64(b.metrics.accepted)+testutil.ToFloat64(b.metrics.refused) > before+refused
		}, b.log.String)
		if n := testutil.ToFloat64(b.metrics.connections); n > most+spare {
			t.Fatalf("%v connections are open, and the limit is %d", n, most)
		}
		if n := testutil.ToFloat64(b.metrics.refused); n > refused {
			refused = n
			continue
		}
		other.Close()
		eventually(t, func() bool { return len(b.peers(b.text)) == most-1 }, b.log.String)
		hold()
		lines++
	}
	if n := testutil.ToFloat64(b.metrics.displaced); n != spare || refused != 50-spare {
		t.Errorf("%v gave way, and %v were refused", n, refused)
	}
	s.setFail(nil)
	s.wait(t, lines)
	b.want(t, b.metrics.connections, most)
	dialFrom(t, "127.0.0.2", b.Addr()) // as before
	b.want(t, b.metrics.displaced, spare+1)
}

// TestStrangersGiveWay: over TLS, a connection of a client that is not known takes no place of one that is.
func TestStrangersGiveWay(t *testing.T) {
	servers, clients := certstest.New(t, "servers"), certstest.New(t, "clients")
	s := newStore()
	b := start(t, s, Options{MaxConnections: 3, Doors: Doors{
		Listen: "127.0.0.1:0",
		TLS: &tls.Config{
			Certificates: []tls.Certificate{servers.Server(t, "shale").TLS(t)}, ClientCAs: clients.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		},
		Tenant: func(*tls.ConnectionState) (string, error) { return "team", nil },
	}}, limits())
	text, _ := b.SecureAddrs()
	known := func(from string) net.Conn {
		t.Helper()
		nc := tls.Client(dialFrom(t, from, text), &tls.Config{
			RootCAs: servers.Pool(), ServerName: "localhost", Certificates: []tls.Certificate{clients.Client(t, "team").TLS(t)},
		})
		if err := nc.Handshake(); err != nil {
			t.Fatal(err)
		}
		return nc
	}
	var held []net.Conn
	for range 3 {
		held = append(held, known("127.0.0.1"))
	}
	for i, nc := range held {
		say(t, nc, "a 1 -1\n")
		s.wait(t, i+1)
	}
	const spare = 4
	var strangers []net.Conn
	for i := range spare {
		strangers = append(strangers, dialFrom(t, "127.0.0.2", text))
		b.want(t, b.metrics.connections, float64(4+i))
	}
	b.wantRead(t, b.secureText)
	wantEnd(t, dialFrom(t, "127.0.0.2", text)) // one more of them
	b.want(t, b.metrics.refused, 1)
	b.want(t, b.metrics.displaced, 0)
	for i, nc := range held {
		say(t, nc, "a 1 -1\n")
		s.wait(t, 3+i+1)
	}
	b.wantRead(t, b.secureText)
	// A client that is known takes the place of a stranger for its handshake, and then that of another one.
	other := known("127.0.0.3")
	say(t, other, "a 1 -1\n")
	s.wait(t, 7)
	wantEnd(t, strangers[0])
	wantEnd(t, held[0])
	b.want(t, b.metrics.displaced, 2)
	if n := testutil.ToFloat64(b.metrics.unidentified); n != 0 || strings.Contains(b.log.String(), "handshake failed") {
		t.Errorf("%v unidentified clients; log: %s", n, b.log)
	}
	// And one that would only turn around is closed.
	wantEnd(t, known("127.0.0.3"))
	for i, nc := range []net.Conn{held[1], held[2], other} {
		say(t, nc, "a 1 -1\n")
		s.wait(t, 8+i)
	}
}

// TestGiveWayForGood: no later deadline lets a connection that gave way be read again, whatever is above it.
func TestGiveWayForGood(t *testing.T) {
	b := start(t, newStore(), Options{}, limits())
	for _, c := range []struct {
		name  string
		above func(net.Conn) net.Conn
	}{
		{"nothing", func(nc net.Conn) net.Conn { return nc }},
		{"TLS and a proxy", func(nc net.Conn) net.Conn { return tls.Server(proxyproto.NewConn(nc), &tls.Config{}) }},
	} {
		p := &peer{Conn: b.dial(t, "tcp")}
		above := c.above(p)
		if peerOf(above) != p {
			t.Fatalf("%s: peerOf finds another one", c.name)
		}
		p.giveWay()
		b.setDeadline(above, time.Time{})
		if err := above.SetDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		end := time.AfterFunc(10*time.Second, func() { p.Conn.Close() })
		if n, err := p.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %d, %v", c.name, n, err)
		}
		end.Stop()
	}
}

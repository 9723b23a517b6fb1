package conns

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/logtest"
)

// server is one with watched connections. Its handler reads the body, then enters, and then leaves.
type server struct {
	*Connections
	t              *testing.T
	log            logtest.Buffer
	entered, leave chan struct{}
}

const headerTimeout = 150 * time.Millisecond

func serve(t *testing.T, most int, secure *tls.Config) *server {
	s := &server{t: t, entered: make(chan struct{}, 100), leave: make(chan struct{}, 100)}
	s.Connections = Watch(listen(t), most, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(&s.log, nil)))
	server := &http.Server{IdleTimeout: time.Hour, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		s.entered <- struct{}{}
		<-s.leave
	})}
	s.Serve(server)
	var l net.Listener = s.Connections
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	ended := make(chan error)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		close(s.leave)
		_ = server.Close()
		<-ended
	})
	return s
}

// dial connects from an address of this host, and sends a text.
func (s *server) dial(from, sends string) net.Conn {
	s.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		s.t.Skip("no second address of this host: ", err) // only Linux has all of 127.0.0.0/8
	}
	s.t.Cleanup(func() { conn.Close() })
	must(s.t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = io.WriteString(conn, sends)
	must(s.t, err)
	return conn
}

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// request sends a request and reads its response.
func (s *server) request(conn net.Conn) {
	s.t.Helper()
	_, err := io.WriteString(conn, get)
	must(s.t, err)
	s.leave <- struct{}{}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(s.t, err)
	must(s.t, r.Body.Close())
	<-s.entered
}

// count returns how many connections are idle, have a part of a header, and are open.
func (s *server) count() (idle, header, open int) {
	s.each(func(conn *connection) {
		open++
		switch waits := conn.waits.Load(); {
		case waits > 0:
			idle++
		case waits < 0:
			header++
		}
	})
	return idle, header, open
}

func (s *server) await(idle, header, open int) {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		i, h, o := s.count()
		if i == idle && h == header && o == open {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%d are idle, %d have a part of a header, %d are open; want %d, %d, %d", i, h, o, idle, header, open)
		}
	}
}

// age makes all connections wait for longer.
func (s *server) age(by time.Duration) {
	s.each(func(conn *connection) {
		if since := conn.waits.Load(); since > 0 {
			conn.waits.CompareAndSwap(since, since-int64(by))
		} else if since < 0 {
			conn.waits.CompareAndSwap(since, since+int64(by))
		}
	})
}

func (s *server) wantEnd(what string, conn net.Conn) {
	s.t.Helper()
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		s.t.Errorf("%s: %v", what, err)
	}
}

// wantOpen expects that connections have not ended, while no more than these are open.
func (s *server) wantOpen(what string, all ...net.Conn) {
	s.t.Helper()
	for i, conn := range all {
		must(s.t, conn.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			s.t.Errorf("%s: connection %d: %v", what, i, err)
		}
		must(s.t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	}
}

func (s *server) wantDisplaced(n float64) {
	s.t.Helper()
	if got := testutil.ToFloat64(s.displaced); got != n {
		s.t.Errorf("%v gave way, want %v", got, n)
	}
}

// TestDisplace: connections that wait for a request give way, idle ones first. One whose request is being
// served stays, also while its body comes.
func TestDisplace(t *testing.T) {
	s := serve(t, 10, nil)
	running := s.dial("127.0.0.1", strings.Repeat(get, 2)) // the second is read with the first
	<-s.entered
	upload := s.dial("127.0.0.1", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nslow")
	begun := s.dial("127.0.0.1", "GET / HT")
	s.await(0, 1, 3)
	silent := s.dial("127.0.0.1", "")
	s.await(1, 1, 4)
	s.displace() // none waits for long
	s.age(idleLeast)
	s.displace()
	s.wantEnd("the idle connection", silent)
	s.await(0, 1, 3)
	s.displace() // half of a header has not waited for long
	s.wantDisplaced(1)
	s.age(headerLeast - idleLeast)
	s.displace()
	s.wantEnd("the half of a header", begun)
	s.await(0, 0, 2)
	s.leave <- struct{}{}
	<-s.entered
	s.await(0, 0, 2) // during the second request
	s.displace()
	s.wantDisplaced(2)
	_, err := upload.Write(make([]byte, 96))
	must(t, err)
	<-s.entered
	s.leave <- struct{}{}
	s.leave <- struct{}{}
	s.await(2, 0, 2)
	s.age(idleLeast)
	s.displace()
	s.wantDisplaced(3)
	s.await(1, 0, 1)
	_, _ = running, upload
}

// TestOneByte: a client that has one byte of a request sent on each connection keeps no others out.
func TestOneByte(t *testing.T) {
	s := serve(t, 3, nil)
	for i := range 3 {
		s.request(s.dial("127.0.0.1", ""))
		s.await(i+1, 0, i+1)
	}
	s.age(idleLeast)
	for i := range 3 {
		conn := s.dial("127.0.0.2", "")
		s.request(conn)
		s.await(3-i, i, 3) // a byte that came before would wait in the server's buffer
		_, err := io.WriteString(conn, "G")
		must(t, err)
		s.await(2-i, i+1, 3)
	}
	other := s.dial("127.0.0.1", "")
	s.age(headerLeast)
	s.request(other)
	s.wantDisplaced(4)
}

// TestHostWithMost: connections of the host with the most give way first, whatever they wait for.
func TestHostWithMost(t *testing.T) {
	s := serve(t, 10, nil)
	first, second := s.dial("127.0.0.1", ""), s.dial("127.0.0.1", "")
	s.await(2, 0, 2)
	s.age(time.Minute)
	var many []net.Conn
	for i := range 4 {
		many = append(many, s.dial("127.0.0.2", "G"))
		s.await(2, i+1, 3+i)
		s.age(headerLeast)
	}
	s.displace()
	s.wantEnd("the oldest header", many[0])
	s.displace()
	s.wantEnd("the next one", many[1])
	s.await(2, 2, 4)
	s.displace() // two and two
	s.wantEnd("the one that is idle longest", first)
	s.wantDisplaced(3)
	s.wantOpen("the others", second, many[2], many[3])
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, two := s.hosts[netip.MustParseAddr("127.0.0.1")], s.hosts[netip.MustParseAddr("127.0.0.2")]; len(s.hosts) != 2 || one.open != 1 || two.open != 2 {
		t.Errorf("the hosts are %v, %v, %v", s.hosts, one, two)
	}
}

// TestBeginOfHeader: the first bytes of a further request have no longer than those of a first one.
func TestBeginOfHeader(t *testing.T) {
	s := &server{t: t, entered: make(chan struct{}, 1), leave: make(chan struct{}, 1)}
	s.Connections = Watch(listen(t), 10, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	server := &http.Server{IdleTimeout: time.Hour, ReadHeaderTimeout: headerTimeout, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		s.entered <- struct{}{}
		<-s.leave
	})}
	s.Serve(server)
	go func() { _ = server.Serve(s.Connections) }()
	defer server.Close()
	conn := s.dial("127.0.0.1", "")
	s.request(conn)
	s.await(1, 0, 1)
	time.Sleep(2 * headerTimeout) // it may be idle for longer
	s.request(conn)
	s.await(1, 0, 1)
	_, err := io.WriteString(conn, "G")
	must(t, err)
	s.wantEnd("one byte", conn)
}

// TestHandshakes: a connection whose client began a TLS handshake and goes on with none gives way, too. The
// log does not mention it. Of handshakes that failed it has one a second.
func TestHandshakes(t *testing.T) {
	certs := httptest.NewUnstartedServer(nil)
	certs.StartTLS()
	defer certs.Close()
	s := serve(t, 10, &tls.Config{Certificates: certs.TLS.Certificates})
	const hello = "\x16\x03\x01\x00\xa5\x01"
	begun, silent := s.dial("127.0.0.1", hello), s.dial("127.0.0.1", "")
	s.await(1, 1, 2)
	s.age(headerLeast)
	s.displace()
	s.wantEnd("the silent one", silent)
	s.displace()
	s.wantEnd("the one that began", begun)
	s.await(0, 0, 0)
	if text := s.log.String(); text != "" {
		t.Errorf("the log has %s", text)
	}
	for range 20 {
		s.dial("127.0.0.1", "GET / HTTP/1.1\r\n\r\n")
	}
	for end := time.Now().Add(30 * time.Second); !strings.Contains(s.log.String(), "sent an HTTP request to an HTTPS server"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log has %s", s.log.String())
		}
	}
	s.await(0, 0, 0)
	if n := strings.Count(s.log.String(), "\n"); n > 10 {
		t.Errorf("%d lines of the log: %s", n, s.log.String())
	}
}

// TestServerLog: no more than one handshake a second is logged, and everything else.
func TestServerLog(t *testing.T) {
	var l logtest.Buffer
	s := &serverLog{log: slog.New(slog.NewTextHandler(&l, nil))}
	for _, text := range []string{
		"http: TLS handshake error from 192.0.2.7:1: EOF\n", "http: TLS handshake error from 192.0.2.7:2: EOF\n",
		"http: panic serving 192.0.2.7:3: a\n", "http: panic serving 192.0.2.7:4: b\n",
		"http: TLS handshake error from 192.0.2.7:5: read tcp: " + errGaveWay.Error() + "\n",
	} {
		_, err := io.WriteString(s, text)
		must(t, err)
	}
	s.last = time.Time{}
	_, err := io.WriteString(s, "http: TLS handshake error from 192.0.2.7:6: EOF\n")
	must(t, err)
	text := l.String()
	for _, want := range []string{`7:1: EOF" not_logged=0`, "7:3: a", "7:4: b", `7:6: EOF" not_logged=1`} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %s: %s", want, text)
		}
	}
	if n := strings.Count(text, "\n"); n != 4 {
		t.Errorf("%d lines: %s", n, text)
	}
}

// TestRequestOfDisplaced: a connection may give way just when the last bytes of a request have been read. Its
// client gets no response, so the request must have no effect.
func TestRequestOfDisplaced(t *testing.T) {
	served := 0
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }), ReadHeaderTimeout: time.Second}
	new(Connections).Serve(s)
	serve := func(conn *connection) (aborted any) {
		defer func() { aborted = recover() }()
		s.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(s.ConnContext(t.Context(), conn)))
		return nil
	}
	open, closed := new(connection), new(connection)
	closed.gaveWay.Store(true)
	if got := serve(closed); got != http.ErrAbortHandler || served != 0 {
		t.Errorf("%v, %d requests are served", got, served)
	}
	if got := serve(open); got != nil || served != 1 {
		t.Errorf("%v, %d requests are served", got, served)
	}
}

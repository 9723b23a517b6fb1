package conns

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return l
}

// TestLimit: a connection beyond the limit waits for one to be closed.
func TestLimit(t *testing.T) {
	looked := make(chan struct{}, 100)
	l := limit(listen(t), 1, func() { looked <- struct{}{} })
	accepted := make(chan net.Conn)
	ended := make(chan error)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		must(t, err)
		defer c.Close()
	}
	first := <-accepted
	for range 2 { // again and again
		select {
		case <-accepted:
			t.Error("two connections with a limit of one")
		case <-looked:
		}
	}
	must(t, first.Close())
	_ = first.Close() // frees no further slot
	second := <-accepted
	<-looked
	must(t, l.Close())
	if err := <-ended; err == nil {
		t.Error("Accept goes on after Close")
	}
	_ = l.Close()
	must(t, second.Close())
}

// TestDisplaceIdle: only a connection of which nothing of a request has come gives way.
func TestDisplaceIdle(t *testing.T) {
	c := Watch(listen(t), 10, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	entered, leave := make(chan struct{}), make(chan struct{})
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	})}
	c.Serve(s)
	go func() { _ = s.Serve(c) }()
	defer s.Close()
	dial := func(sends string) net.Conn {
		conn, err := net.Dial("tcp", c.Listener.Addr().String())
		must(t, err)
		must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
		_, err = io.WriteString(conn, sends)
		must(t, err)
		return conn
	}
	// idle ages all connections, and returns how many are idle.
	idle := func() (n int) {
		c.each(func(conn *connection) {
			if since := conn.idle.Load(); since != 0 && conn.idle.CompareAndSwap(since, since-int64(idleLeast)) {
				n++
			}
		})
		return n
	}
	open := func() (n int) { c.each(func(*connection) { n++ }); return n }
	await := func(what string, until func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !until(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	silent := dial("")
	defer silent.Close()
	running := dial(strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 2)) // the second is read with the first
	defer running.Close()
	<-entered
	begun := dial("GET / HT")
	defer begun.Close()
	await("one of three is idle", func() bool { return open() == 3 && idle() == 1 })
	c.displaceIdle()
	if _, err := silent.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the idle connection: %v", err)
	}
	await("two are left", func() bool { return open() == 2 })
	c.displaceIdle()
	if n := testutil.ToFloat64(c.displaced); n != 1 || idle() != 0 {
		t.Errorf("%v gave way, and %d are idle", n, idle())
	}
	leave <- struct{}{}
	<-entered
	if n := idle(); n != 0 {
		t.Errorf("%d are idle during the second request", n)
	}
	leave <- struct{}{}
	await("the other is idle after its requests", func() bool { return idle() == 1 })
	c.displaceIdle()
	if n := testutil.ToFloat64(c.displaced); n != 2 {
		t.Errorf("%v gave way", n)
	}
	close(leave)
}

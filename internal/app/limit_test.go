package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/app/conns"
)

// TestLongRequests: URLs may be as long as Loki's. A client that sends a whole request before it reads gets
// the response to one that is too long, and an end without a reset.
func TestLongRequests(t *testing.T) {
	s := startServer(t, t.TempDir())
	defer func() { must(t, s.stop()) }()
	get := func(bytes int) string {
		const head, tail = "GET /loki/api/v1/query_range?query=%7Ba%3D%22", "%22%7D HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
		return head + strings.Repeat("b", bytes-len(head)) + tail
	}
	post := func(bytes int) string {
		return fmt.Sprintf("POST /api/v1/query HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n", bytes) + strings.Repeat("q", bytes)
	}
	for _, c := range []struct {
		name, request string
		status        int
		text          string
	}{
		{"a URL of 66,000 bytes", get(66_000), 200, `"status":"success"`},
		{"a URL of 131,000 bytes", get(131_000), 200, `"status":"success"`},
		{"a query of 131,072 bytes", get(131_300), 400, "input size too long"},
		{"a URL of 200,000 bytes", get(200_000), 431, "431 Request Header Fields Too Large"},
		{"a URL of 20 MB", get(20_000_000), 431, "431 Request Header Fields Too Large"},
		{"a form of 20 MB", post(20_000_000), 413, "the form is larger than 1048576 bytes"},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		must(t, err)
		must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
		if _, err := io.WriteString(conn, c.request); err != nil {
			t.Errorf("%s: sending: %v", c.name, err)
		}
		time.Sleep(time.Second) // the client is slow
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			conn.Close()
			continue
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != c.status || !strings.Contains(string(body), c.text) {
			t.Errorf("%s: %d %.200s %v, want %d %s", c.name, r.StatusCode, body, err, c.status, c.text)
		}
		conn.Close()
	}
}

// TestLimitConnections: a connection beyond the limit waits for one to be closed.
func TestLimitConnections(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := conns.Limit(tcp, 1)
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
	for range 2 {
		c, err := net.Dial("tcp", l.Addr().String())
		must(t, err)
		defer c.Close()
	}
	first := <-accepted
	select {
	case <-accepted:
		t.Error("two connections with a limit of one")
	case <-time.After(100 * time.Millisecond):
	}
	must(t, first.Close())
	_ = first.Close() // frees no further slot
	(<-accepted).Close()
	must(t, l.Close())
	if err := <-ended; err == nil {
		t.Error("Accept goes on after Close")
	}
	_ = l.Close()
}

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

	"github.com/shaledb/shale/internal/config"
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

// TestIdleConnectionsGiveWay: a client that holds all connections does not keep another one from writing,
// though it sends the begin of a request on each. One is closed.
func TestIdleConnectionsGiveWay(t *testing.T) {
	for _, c := range []struct{ name, begin string }{{"nothing", ""}, {"a byte", "G"}, {"half of a header", "GET / HTTP/1.1\r\n"}} {
		t.Run(c.name, func(t *testing.T) { holdConnections(t, c.begin) })
	}
}

// holdConnections holds all connections with the begin of a request on each.
func holdConnections(t *testing.T, begin string) {
	s := startServerWith(t, t.TempDir(), func(c *config.Config) { c.Connections = 3 })
	defer func() { must(t, s.stop()) }()
	var held []net.Conn
	for range 3 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		must(t, err)
		defer conn.Close()
		must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
		_, err = io.WriteString(conn, "GET /ready HTTP/1.1\r\nHost: x\r\n\r\n")
		must(t, err)
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		must(t, err)
		_, err = io.Copy(io.Discard, r.Body)
		must(t, err)
		held = append(held, conn)
	}
	time.Sleep(50 * time.Millisecond) // until the server has noted the ends of its responses
	for _, conn := range held {
		_, err := io.WriteString(conn, begin)
		must(t, err)
	}
	c := &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}
	defer c.CloseIdleConnections()
	r, err := c.Post(s.url+"/api/v1/write/graphite", "text/plain", strings.NewReader("a.b 1 -1\n"))
	if status, text := finish(t, r, err); status != 204 && status != 200 {
		t.Errorf("%d %s", status, text)
	}
	// A response may arrive before the server notes that its connection is idle, so it may be any of them.
	closed := make(chan error, len(held))
	for _, conn := range held {
		go func() {
			_, err := conn.Read(make([]byte, 1))
			closed <- err
		}()
	}
	if err := <-closed; err != io.EOF {
		t.Errorf("the connection that gave way: %v", err)
	}
	r, err = c.Get(s.url + "/metrics")
	if _, text := finish(t, r, err); !strings.Contains(text, "\nshale_http_displaced_connections_total 1\n") {
		t.Error("one connection gave way, and the counter says something else")
	}
}
